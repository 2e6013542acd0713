"""Reads the checkpoints of one training, once per run."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from sentinel import proc
from sentinel.checks.checkpoint.files import (
    MAX_LOOKS,
    CheckpointContents,
    CheckpointEntry,
    CheckpointFolder,
    find_alike_empty,
)
from sentinel.checks.checkpoint.judge import (
    ComparedCheckpoints,
    CompleteCheckpoint,
    FolderObservation,
    UnfinishedCheckpoint,
    explain_incomplete,
    find_last_change,
    find_newest_complete,
)
from sentinel.core.checkpoint_names import name_form, needs_content
from sentinel.core.checkpoint_series import count_series, find_saved_series
from sentinel.core.checkpoints import CheckpointRule
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.shown import Cell, SubjectCells
from sentinel.core.text import visible


class Memory(Struct, frozen=True, kw_only=True):
    """The state of the checkpoints after the last look into the folder."""

    complete: dict[str, CompleteCheckpoint] = {}  # Complete checkpoints, by name.
    begun: dict[str, UnfinishedCheckpoint] = {}  # Checkpoints that were not complete, by name.
    unseen: list[str] = []  # Names of checkpoints that were not looked into yet.
    looked: bool = False  # Whether the folder was ever examined.
    stuck: dict[str, proc.StuckProcess] = {}  # Child processes that hang, by path.

    def get_last_look(self, name: str) -> UnfinishedCheckpoint | None:
        """The size and times of the entry when it was last looked into. None if it never was."""
        found = self.complete.get(name)
        if found is None:
            return self.begun.get(name)
        return UnfinishedCheckpoint(size=found.size, changed=found.written, since=found.since)


class CheckpointLook:
    """One look into the folder. The constructor reads it, and raises CannotTell."""

    def __init__(
        self,
        folder: CheckpointFolder,
        rule: CheckpointRule,
        memory: Memory,
        now: Instant,
        most: int = MAX_LOOKS,
    ) -> None:
        self._folder, self._rule, self._before, self._now = folder, rule, memory, now
        self._entries = folder.list_checkpoints()
        self._pointer = folder.read_pointer(rule.latest) if rule.latest else None
        self._highest = self._pointer.find_step(self._entries) if self._pointer else None
        known = memory.complete
        self._complete = {e.name: known[e.name] for e in self._entries if e.name in known}
        self._begun: dict[str, UnfinishedCheckpoint] = {}
        self._lacks: dict[str, str] = {}
        self._inside: dict[str, CheckpointContents] = {}
        self._forms: dict[str, dict[str, int]] = {}
        self._look_into_entries(most)

    @property
    def complete(self) -> Mapping[str, CompleteCheckpoint]:
        """The complete checkpoints, by name."""
        return self._complete

    def get_observation(self, ran: float | None) -> FolderObservation:
        """The checkpoints that the look found. `ran` is how many seconds the job has run; None
        without a job."""
        begun = self._find_last_begun()
        return FolderObservation(
            at=self._now,
            complete=self._complete,
            begun=begun,
            why=self._lacks.get(begun, ""),
            ran=ran,
            unfit="" if self._entries else self._folder.describe_unfit(),
        )

    def _find_last_begun(self) -> str:
        """The name of the highest step if it is not complete. Otherwise the name of the checkpoint
        that is not complete and was written last, if it is newer than each complete one: after a
        rollback it is a lower step. Otherwise empty."""
        top = self._entries[0].name if self._entries else ""
        if top in self._lacks:
            return top
        written = {name: self._begun[name].changed for name in self._lacks}
        newest_written = max((one.written for one in self._complete.values()), default=0.0)
        last = max(written, key=lambda name: written[name], default="")
        return last if last and written[last] > newest_written else ""

    def make_memory(self) -> Memory:
        """The memory for the next look."""
        seen = {*self._complete, *self._begun}
        unseen = [e.name for e in self._entries if e.name not in seen]
        return Memory(complete=self._complete, begun=self._begun, unseen=unseen, looked=True)

    def show_checkpoints(self) -> SubjectCells:
        """A row of the table for each checkpoint, the highest step first."""
        return SubjectCells(rows=tuple(map(self._make_row, self._entries)))

    def _make_row(self, entry: CheckpointEntry) -> Mapping[str, Cell]:
        known, inside = self._complete.get(entry.name), self._inside.get(entry.name)
        size = known.size if known else inside.size if inside else None
        changed = inside.changed if inside else entry.changed
        seen = "yes" if known else f"no: {self._lacks.get(entry.name, 'not looked into')}"
        return {
            "step": entry.step,
            "size_bytes": size,
            "age_seconds": max(0.0, self._now.wall / SECOND - changed),
            "name": visible(entry.name),
            "complete": visible(seen),
        }

    def _look_into_entries(self, most: int) -> None:
        """Look into so many entries while there is time, but into one at least. Then judge these,
        oldest first, because newer ones are compared with older ones."""
        for entry in self._order_entries()[:most]:
            if self._inside and self._folder.is_short_of_time:
                break
            self._inside[entry.name] = self._folder.look_into(entry, self._rule)
        self._leave_out_notes()
        self._forms = {
            name: count_series(find_saved_series(inside.files))
            for name, inside in self._inside.items()
        }
        self._name_forms = {e.name: name_form(e.name) for e in self._entries}
        looked = [e for e in self._entries if e.name in self._inside]
        for entry in sorted(looked, key=lambda e: (e.changed, e.step)):
            self._judge_entry(entry)
        self._join_parts()

    def _leave_out_notes(self) -> None:
        """Take what was laid into a checkpoint later for no part of it, nor of its size and time."""
        usual = {form for one in self._inside.values() for form in one.forms}
        usual |= {f for n, c in self._complete.items() if n not in self._inside for f in c.forms}
        for name, one in self._inside.items():
            self._inside[name] = one.without_notes(usual)

    def _join_parts(self) -> None:
        """Mark all entries of a step as not complete if one of its parts is not complete."""
        filled = {self._name_forms[name] for name, one in self._inside.items() if one.size}
        filled |= {self._name_forms[name] for name in self._complete}
        parts = {
            entry.step: entry.name
            for entry in self._entries
            if entry.name in self._lacks and not entry.lacks
            # A marker may be empty if it is empty in every step.
            if self._name_forms[entry.name] in filled or needs_content(entry.name)
        }
        for entry in self._entries:
            lacking = parts.get(entry.step)
            if not lacking or entry.name not in self._complete:
                continue
            form = self._name_forms[entry.name]
            if self._name_forms[lacking] == form and form not in self._folder.part_forms:
                continue
            found = self._complete.pop(entry.name)
            self._lacks[entry.name] = f"{visible(lacking)} is not: {self._lacks[lacking]}"
            self._begun[entry.name] = UnfinishedCheckpoint(
                size=found.size, changed=found.written, since=found.since
            )

    def _order_entries(self) -> list[CheckpointEntry]:
        """The entries to look into, in their order.

        The first ones are the step that `latest` names and the newest complete one so far. Then
        come the highest of the other steps, entries that were not looked into yet, and entries that
        were not complete. Except for the first two, entries that are known to be complete are left
        out.
        """
        last = find_newest_complete(self._complete, self._now)
        always = [e for e in self._entries if e.step == self._highest]
        always += [e for e in self._entries if last and e.name == last[0]]
        rest = [e for e in self._entries if not self._is_untouched(e)]
        young = sorted(rest, key=lambda e: (e.changed, e.step), reverse=True)
        young.sort(key=lambda e: e.name in self._before.begun)
        return [*dict.fromkeys([*always, *rest[:1], *young])]

    def _judge_entry(self, entry: CheckpointEntry) -> None:
        inside, name = self._inside[entry.name], entry.name
        first = not self._before.looked or name in self._before.unseen
        since = find_last_change(inside, self._before.get_last_look(name), self._now, first=first)
        quiet = get_elapsed_s(since, self._now)
        self._complete.pop(name, None)
        unseen = [f.forms for n, f in self._complete.items() if n not in self._forms]
        known = ComparedCheckpoints(
            pointer=self._pointer.first_line_text if self._pointer else "",
            highest=self._highest,
            pointed=self._pointer.written if self._pointer else None,
            complete=[
                c
                for n, c in self._complete.items()
                if self._name_forms[n] == self._name_forms[name]
            ],
            looked=[*(f for n, f in self._forms.items() if n != name), *unseen],
            alike_empty=self._find_alike_empty(name) if inside.empty else (),
            sizes=[
                one.size
                for n, one in self._inside.items()
                if n != name and self._name_forms[n] == self._name_forms[name]
            ],
        )
        if why := explain_incomplete(entry, inside, self._rule, known, quiet):
            self._lacks[name] = why
            self._begun[name] = UnfinishedCheckpoint(
                size=inside.size, changed=inside.changed, since=since
            )
            return
        self._complete[name] = CompleteCheckpoint(
            step=entry.step,
            size=inside.size,
            since=since,
            changed=entry.changed,
            written=inside.changed,
            marker=inside.marker or 0,
            forms=self._forms[name],
            empty=inside.empty,
        )

    def _find_alike_empty(self, name: str) -> set[str]:
        """The empty files of that checkpoint that have no byte in those with a name of its form. Of those
        that were not looked into again only the empty files are known. The others count as filled."""
        form, looked = self._name_forms[name], self._inside
        mine = looked[name].empty
        others: list[tuple[Collection[str], Collection[str]]] = [
            (one.empty, {path for path, _, _ in one.files})
            for n, one in looked.items()
            if n != name and self._name_forms[n] == form
        ]
        others += [
            (one.empty, mine)
            for n, one in self._before.complete.items()
            if n not in looked and self._name_forms.get(n) == form
        ]
        return find_alike_empty(mine, others)

    def _is_untouched(self, entry: CheckpointEntry) -> bool:
        """Whether the entry is known to be complete and was not changed since, such as by a
        deletion that has begun."""
        known = self._complete.get(entry.name)
        return known is not None and known.changed == entry.changed
