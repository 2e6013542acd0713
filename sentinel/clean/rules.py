"""Retention as somebody configured it, and what the entries of a directory are. Pure, standard
library only."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

TWO = 2
"""The newest complete ones that no setting lets go: the last may be corrupt."""

UNPROVEN = 2
"""So many more stay where no `complete` says which are whole."""


class DirectoryEntry:
    """A file or directory directly in the root, as it was looked at."""

    __slots__ = (
        "at",
        "complete",
        "content",
        "entries",
        "held",
        "identity",
        "lacks",
        "leads",
        "marker",
        "name",
        "named",
        "size",
        "unfinished",
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
        content: int | None = None,
    ) -> None:
        self.name = name
        self.at = at  # when anything in it was last changed (s UTC)
        self.size = size  # bytes on disk that its end frees
        self.entries = entries  # files and directories that its end removes
        self.complete = complete  # it holds bytes, and what `complete` names where that is given
        self.unfinished = False  # its name, or a marker beside it, says that it was not ended
        self.identity = identity  # device and inode
        self.named = named  # a pointer leads to it
        self.held = held  # why it cannot go even where it may
        self.leads: frozenset[tuple[int, int]] = frozenset()  # where links in it lead
        self.content = size if content is None else content  # bytes of its files
        self.marker: int | None = None  # bytes of the file that `complete` names
        self.lacks = ""  # a part that the names of the others number, and that is not there


class RetentionRules:
    """Retention: which names are meant, and what of them stays."""

    FIELDS = (
        "match",
        "keep_last",
        "keep_every",
        "older_than",
        "complete",
        "pointers",
        "ignore",
    )

    def __init__(
        self,
        match: str,
        *,
        keep_last: int = TWO,
        keep_every: int = 0,
        older_than: float = 0.0,
        complete: str = "",
        pointers: Sequence[str] = (),
        ignore: Sequence[str] = (),
    ) -> None:
        self.match = match  # for the whole name; a first group that is a number orders
        self.keep_last = keep_last  # so many complete ones stay
        self.keep_every = keep_every  # of numbers every so-manieth stays
        self.older_than = older_than  # seconds; what is younger stays
        self.complete = complete  # a file that only a complete one holds; a shell's pattern
        self.pointers = tuple(pointers)  # paths of links and trackers elsewhere
        self.ignore = tuple(ignore)  # patterns of names that are neither pointers nor parts
        self.pattern = re.compile(match)
        self._hidden = match.startswith(r"\.")
        self.pointing: dict[str, bool] = {}  # which names may be pointers, as far as was asked
        self._found: dict[str, tuple[bool, int | None, int]] = {}

    @classmethod
    def parse_rules(cls, text: str) -> RetentionRules:
        """From what `rules_text` gave; raises ValueError, TypeError or re.error."""
        return cls(**json.loads(text))

    def rules_text(self) -> str:
        """The same rules as one line of JSON."""
        return json.dumps({name: getattr(self, name) for name in self.FIELDS}, sort_keys=True)

    def fits_name(self, name: str) -> bool:
        """Whether the rules are about that name at all. As with a shell's `*`, a name that begins
        with a dot (.ssh, .snapshot) is only meant by a pattern that begins with one."""
        return self._search_name(name)[0]

    def step_number(self, name: str) -> int | None:
        """What the first group of the pattern caught, where that is a number."""
        return self._search_name(name)[1]

    def step_number_start(self, name: str) -> int:
        """Where in the name that number begins; -1 where there is none."""
        return self._search_name(name)[2]

    def is_ignored(self, name: str) -> bool:
        """Whether somebody said that it is neither a pointer nor a part of a checkpoint."""
        return any(fnmatchcase(name, pattern) for pattern in self.ignore)

    def is_marker(self, name: str) -> bool:
        """Whether a file of that name says that a checkpoint is complete."""
        return name == self.complete or fnmatchcase(name, self.complete)

    def _search_name(self, name: str) -> tuple[bool, int | None, int]:
        """The pattern is tried once for each name: a folder may hold 100,000."""
        known = self._found.get(name)
        if known is None:
            known = self._found[name] = self._search_uncached(name)
        return known

    def _search_uncached(self, name: str) -> tuple[bool, int | None, int]:
        if name.startswith(".") and not self._hidden:
            return False, None, -1
        found = self.pattern.fullmatch(name)
        text = found[1] if found and self.pattern.groups else None
        if found and text and text.isascii() and text.isdigit():
            return True, int(text), found.start(1)
        return found is not None, None, -1
