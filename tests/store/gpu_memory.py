"""The ledger of GPUs in memory, for tests: fast, and held to the same contract."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import (
    GpuEvent,
    GpuMove,
    GpuSighting,
    GpuStanding,
    LedgerEntry,
    Mark,
    Stay,
)
from sentinel.core.lemon_policy import DEFAULT_POLICY, LemonPolicy
from sentinel.gpu import ledger_update
from sentinel.store.retention import DEFAULT_RETENTION, Retention
from sentinel.store.rows import encode_stored


class GpuState:
    """What several MemoryGpus share, as several processes share a database."""

    def __init__(self) -> None:
        self.turn = threading.RLock()
        self.entries: dict[str, LedgerEntry] = {}
        self.stays: dict[str, list[Stay]] = {}
        self.events: dict[str, GpuEvent] = {}


class MemoryGpus:
    """core.gpus.Gpus in memory."""

    def __init__(
        self,
        state: GpuState | None = None,
        policy: LemonPolicy = DEFAULT_POLICY,
        keep: Retention = DEFAULT_RETENTION,
    ) -> None:
        self.policy = policy
        self._state, self._keep = state or GpuState(), keep

    def record_sightings(self, sightings: Sequence[GpuSighting], now: Instant) -> Sequence[GpuMove]:
        with self._state.turn:
            latest = {s.uuid: s for s in sightings}
            return [move for s in latest.values() for move in self._place(s, now)]

    def add_events(self, events: Sequence[GpuEvent]) -> Sequence[GpuEvent]:
        encode_stored(list(events))  # refuses here what a database would refuse
        state = self._state
        with state.turn:
            named: dict[str, GpuEvent] = {}
            for event in events:
                named.setdefault(event.id, event)
            fresh = [event for name, event in named.items() if name not in state.events]
            state.events |= {event.id: event for event in fresh}
            for event in fresh:
                state.entries.setdefault(event.subject, ledger_update.first_heard(event))
            for subject in dict.fromkeys(event.subject for event in fresh):
                self._count(subject)
            return fresh

    def set_mark(self, subject: str, mark: Mark, reason: str, by: str, now: Instant) -> None:
        state = self._state
        with state.turn:
            entry = state.entries.get(subject) or LedgerEntry(subject=subject, first=now, seen=now)
            event = ledger_update.marking(entry, mark, reason, by, now)
            encode_stored(event)
            state.events[event.id] = event
            state.entries[subject] = ledger_update.marked(entry, mark, reason, by, now)

    def forget_events(
        self, subject: str, kinds: Collection[str], since: int, reason: str, by: str, now: Instant
    ) -> int:
        state = self._state
        with state.turn:
            entry = state.entries.get(subject)
            if entry is None:
                return 0
            wrong = ledger_update.mistaken(self.read_events(subject, 10**9), kinds, since)
            for event in wrong:
                del state.events[event.id]
            if wrong and ledger_update.is_unfounded(
                entry, self.read_events(subject), self.read_stays(subject)
            ):
                del state.entries[subject]
            elif wrong:
                notes = ledger_update.forgetting(entry, wrong, reason, by, now)
                state.events |= {note.id: note for note in notes}
                self._count(subject)
            return len(wrong)

    def prune(self, now: Instant) -> None:
        before, state = now.wall - self._keep.actions * SECOND, self._state
        with state.turn:
            state.events = {k: e for k, e in state.events.items() if e.at.wall >= before}
            for uuid, stays in state.stays.items():
                kept = [stay for stay in stays[:-1] if stay.began.wall >= before]
                state.stays[uuid] = [*kept, stays[-1]]

    def read_entry(self, subject: str) -> LedgerEntry | None:
        with self._state.turn:
            return self._state.entries.get(subject)

    def read_entries(self, node: str = "") -> Sequence[LedgerEntry]:
        with self._state.turn:
            return [e for e in self._state.entries.values() if node in ("", e.node)]

    def read_events(self, subject: str, limit: int = 1000) -> Sequence[GpuEvent]:
        with self._state.turn:
            mine = [e for e in self._state.events.values() if e.subject == subject]
            numbered = sorted(enumerate(mine), key=lambda pair: (-pair[1].at.wall, -pair[0]))
            return [event for _, event in numbered[:limit]]

    def read_stays(self, uuid: str) -> Sequence[Stay]:
        with self._state.turn:
            stays, entry = list(self._state.stays.get(uuid, [])), self.read_entry(uuid)
            if stays and entry:
                stays[-1] = replace(stays[-1], ended=entry.seen)
            return stays

    def read_standings(self, now: Instant) -> Mapping[str, GpuStanding]:
        with self._state.turn:
            for entry in list(self._state.entries.values()):
                if entry.recipe not in ("", self.policy.counting_recipe):
                    self._count(entry.subject)
            telling = [e for e in self._state.entries.values() if e.heat > 0 or e.mark]
            return {e.subject: ledger_update.standing(e, now, self.policy) for e in telling}

    def close(self) -> None: ...

    def _place(self, sighting: GpuSighting, now: Instant) -> list[GpuMove]:
        state, stay = (
            self._state,
            Stay(node=sighting.node, slot=sighting.slot, began=now, ended=now),
        )
        entry = state.entries.get(sighting.uuid)
        state.entries[sighting.uuid] = (
            ledger_update.placed(entry, sighting, now)
            if entry
            else ledger_update.first_seen(sighting, now)
        )
        stays = state.stays.setdefault(sighting.uuid, [])
        if entry is None or not ledger_update.has_moved(entry, sighting):
            stays += [] if stays else [stay]
            return []
        began = stays[-1].began if stays else entry.first
        stays[-1:] = [*(replace(s, ended=entry.seen) for s in stays[-1:]), stay]
        return [ledger_update.move(entry, sighting, began, now, self.policy)]

    def _count(self, subject: str) -> None:
        events = [e for e in self._state.events.values() if e.subject == subject]
        entry = self._state.entries[subject]
        self._state.entries[subject] = ledger_update.counted(entry, events, self.policy)
