"""Which of a directory's entries may go. Pure, standard library only."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

TWO = 2
"""The newest complete ones that no setting lets go: the last may be corrupt."""


class Entry:
    """A file or directory directly in the root. `at`: when anything in it was last changed (s UTC);
    `size`: bytes on disk that its end frees; `complete`: it has what a complete one has; `named`:
    a pointer leads to it; `leads`: what links and trackers in it lead to, by device and inode;
    `held`: why it cannot go even where it may."""

    __slots__ = (
        "at",
        "complete",
        "entries",
        "held",
        "identity",
        "leads",
        "name",
        "named",
        "size",
    )

    def __init__(
        self,
        name: str,
        at: float,
        size: int,
        *,
        entries: int = 1,
        complete: bool = True,
        identity: tuple[int, int] = (0, 0),
        named: bool = False,
        held: str = "",
    ) -> None:
        self.name, self.at, self.size, self.entries = name, at, size, entries
        self.complete, self.identity = complete, identity
        self.named, self.held = named, held
        self.leads: frozenset[tuple[int, int]] = frozenset()


class Rules:
    """Retention. `match`: a regular expression for the whole name, whose first group, where it has
    one, is the number that orders; `keep_last` complete ones stay, of numbers every
    `keep_every`-th, and what is younger than `older_than` seconds; `complete`: the name of a file
    in a directory that is whole; `pointers`: paths of links and trackers elsewhere that name what
    has to stay."""

    FIELDS = ("match", "keep_last", "keep_every", "older_than", "complete", "pointers")

    def __init__(
        self,
        match: str,
        *,
        keep_last: int = TWO,
        keep_every: int = 0,
        older_than: float = 0.0,
        complete: str = "",
        pointers: Sequence[str] = (),
    ) -> None:
        self.match, self.keep_last, self.keep_every = match, keep_last, keep_every
        self.older_than, self.complete = older_than, complete
        self.pointers = tuple(pointers)
        self.pattern = re.compile(match)
        self._hidden = match.startswith(r"\.")

    @classmethod
    def parse(cls, text: str) -> Rules:
        """From what `text` gave; raises ValueError, TypeError or re.error."""
        return cls(**json.loads(text))

    def text(self) -> str:
        """The same rules as one line of JSON."""
        return json.dumps({name: getattr(self, name) for name in self.FIELDS}, sort_keys=True)

    def fits(self, name: str) -> bool:
        """Whether the rules are about that name at all. As with a shell's `*`, a name that begins
        with a dot (.ssh, .snapshot) is only meant by a pattern that begins with one."""
        if name.startswith(".") and not self._hidden:
            return False
        return self.pattern.fullmatch(name) is not None

    def number(self, name: str) -> int | None:
        """What the first group of the pattern caught, where that is a number."""
        found = self.pattern.fullmatch(name)
        text = found[1] if found and self.pattern.groups else None
        return int(text) if text and text.isascii() and text.isdigit() else None


def removable(entries: Sequence[Entry], rules: Rules, now: float) -> list[Entry]:
    """What may go, the oldest first. Whatever is in doubt stays.

    The newest are spared by number and by time: a run that began anew counts from 1 again.
    """
    ordered = _ordered([e for e in entries if rules.fits(e.name)], rules)
    whole = [e for e in ordered if e.complete]
    spared = max(TWO, rules.keep_last)
    if len(whole) <= spared:
        return []
    latest = sorted(whole, key=lambda e: (e.at, e.name))[-spared:]
    safe = {e.name for e in (*whole[-spared:], *latest)}
    older = ordered[: ordered.index(whole[-spared])]
    return [e for e in older if e.name not in safe and _may_go(e, rules, now)]


def still_removable(
    names: Collection[str], entries: Sequence[Entry], rules: Rules, now: float
) -> tuple[list[Entry], list[Entry]]:
    """Of those names the ones that may go now, and the ones that are there and may not or cannot."""
    asked = [e for e in removable(entries, rules, now) if e.name in names]
    free = [e for e in asked if not e.held]
    return free, [e for e in entries if e.name in names and e not in free]


def _ordered(entries: Sequence[Entry], rules: Rules) -> list[Entry]:
    """The oldest first: by number, or by time where no name has one. Where only some have one,
    nobody knows the place of the others: they stay, and count for nothing."""
    numbers = {e.name: n for e in entries if (n := rules.number(e.name)) is not None}
    if not numbers:
        return sorted(entries, key=lambda e: (e.at, e.name))
    known = [e for e in entries if e.name in numbers]
    return sorted(known, key=lambda e: (numbers[e.name], e.at, e.name))


def _may_go(entry: Entry, rules: Rules, now: float) -> bool:
    number = rules.number(entry.name)
    if entry.named or (rules.keep_every and (number is None or number % rules.keep_every == 0)):
        return False
    return now - entry.at >= rules.older_than
