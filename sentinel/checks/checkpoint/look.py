"""A look into a folder of checkpoints: which are complete, remembered from look to look."""

from __future__ import annotations

from msgspec import Struct

from sentinel import proc
from sentinel.checks.checkpoint.files import Entry, Folder, unknown_ones
from sentinel.checks.checkpoint.judge import (
    Begun,
    Found,
    Sight,
    highest_named,
    incomplete,
    quiet_since,
)
from sentinel.core.checkpoints import Rule
from sentinel.core.clock import Instant, elapsed


class Memory(Struct, frozen=True, kw_only=True):
    """By name: the complete checkpoints, those that were not when they were looked into, and
    those that nobody has looked into yet."""

    complete: dict[str, Found] = {}
    begun: dict[str, Begun] = {}
    unseen: list[str] = []
    looked: bool = False
    stuck: dict[str, proc.Stuck] = {}

    def before(self, name: str) -> Begun | None:
        """What was in it when it was last looked into."""
        found = self.complete.get(name)
        if found is None:
            return self.begun.get(name)
        return Begun(size=found.size, changed=found.written, since=found.since)


class Look:
    """Looks at once. Raises CannotTell."""

    def __init__(self, folder: Folder, rule: Rule, memory: Memory, now: Instant) -> None:
        self._folder, self._rule, self._before, self._now = folder, rule, memory, now
        self._entries = folder.entries()
        self._named = folder.named(rule.latest) if rule.latest else ""
        self._highest = highest_named(self._named, self._entries)
        known = memory.complete
        self._complete = {e.name: known[e.name] for e in self._entries if e.name in known}
        self._begun: dict[str, Begun] = {}
        self._lacks: dict[str, str] = {}
        self._look()

    def sight(self, ran: float | None) -> Sight:
        """What there is; `ran`: seconds that the job runs."""
        top = self._entries[0].name if self._entries else ""
        begun, why = (top, self._lacks[top]) if top in self._lacks else ("", "")
        return Sight(at=self._now, complete=self._complete, begun=begun, why=why, ran=ran)

    def memory(self) -> Memory:
        """What to remember of it."""
        seen = {*self._complete, *self._begun}
        unseen = [e.name for e in self._entries if e.name not in seen]
        return Memory(complete=self._complete, begun=self._begun, unseen=unseen, looked=True)

    def _look(self) -> None:
        """Into what is not known; at one at least, however little time there is."""
        same = {e.name for e in self._entries if e.step != self._highest and self._untouched(e)}
        for entry in unknown_ones(self._entries, same):
            if (self._complete or self._begun) and self._folder.hurries:
                break
            self._look_into(entry)

    def _look_into(self, entry: Entry) -> None:
        inside, name = self._folder.look_into(entry, self._rule), entry.name
        first = not self._before.looked or name in self._before.unseen
        since = quiet_since(inside, self._before.before(name), self._now, first=first)
        quiet = elapsed(since, self._now)
        why = incomplete(entry, inside, self._rule, self._named, self._highest, quiet)
        self._complete.pop(name, None)
        if why:
            self._lacks[name] = why
            self._begun[name] = Begun(size=inside.size, changed=inside.changed, since=since)
            return
        self._complete[name] = Found(
            step=entry.step,
            size=inside.size,
            since=since,
            changed=entry.changed,
            written=inside.changed,
        )

    def _untouched(self, entry: Entry) -> bool:
        """Known, and neither replaced nor begun to be deleted since it was looked into."""
        known = self._complete.get(entry.name)
        return known is not None and known.changed == entry.changed
