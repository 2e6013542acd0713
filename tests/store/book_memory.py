"""The audit log and the ledger of nodes in memory, for tests: fast, and held to the same contract."""

import threading
from collections.abc import Callable, Sequence

from sentinel.core.actions import (
    ActionHistory,
    ActionRecord,
    ActionSwitch,
    GuardDecision,
    NodeReading,
)
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Node
from sentinel.nodes import history
from sentinel.store.retention import DEFAULT_RETENTION, Retention
from sentinel.store.rows import encode_stored


class BookState:
    """What several MemoryBooks share, as several processes share a database."""

    def __init__(self) -> None:
        self.turn = threading.RLock()
        self.records: dict[str, ActionRecord] = {}
        self.readings: list[NodeReading] = []
        self.switches: dict[str, ActionSwitch] = {}
        self.looked: Instant | None = None


class MemoryBooks:
    """core.ports.AuditLog in memory."""

    def __init__(self, state: BookState | None = None, keep: Retention = DEFAULT_RETENTION) -> None:
        self._state, self._keep = state or BookState(), keep

    def read_past_actions(self, target: str) -> ActionHistory:
        state = self._state
        with state.turn:
            return ActionHistory(
                records=tuple(state.records.values()),
                left=tuple(r for r in reversed(state.readings) if r.left),
                returned=tuple(r for r in state.readings if r.returned),
                maintenance=state.switches.get("maintenance"),
                breaker=state.switches.get("breaker"),
            )

    def record_intent(
        self, target: str, decide: Callable[[ActionHistory], GuardDecision]
    ) -> GuardDecision:
        with self._state.turn:
            decision = decide(self.read_past_actions(target))
            if decision.write:
                encode_stored(decision.record)  # refuses here what a database would refuse
                self._state.records[decision.record.id] = decision.record
            if decision.breaker:
                self._state.switches["breaker"] = decision.breaker
            return decision

    def record_outcome(self, record: ActionRecord) -> bool:
        encode_stored(record)
        with self._state.turn:
            before = self._state.records.get(record.id)
            if before is None or not before.outcome.is_open:
                return False
            self._state.records[record.id] = record
            return True

    def read_unresolved(self) -> list[ActionRecord]:
        with self._state.turn:
            return [r for r in self._state.records.values() if r.outcome.is_open]

    def records(self, target: str = "", limit: int = 100) -> list[ActionRecord]:
        with self._state.turn:
            newest = reversed(self._state.records.values())
            return [r for r in newest if target in ("", r.target)][:limit]

    def record_readings(
        self, nodes: Sequence[Node], now: Instant, *, whole: bool = True
    ) -> list[NodeReading]:
        state = self._state
        with state.turn:
            last = {r.node: r for r in state.readings}
            new = list(history.news(nodes, last, state.looked, now))
            state.readings += new
            state.looked = now if whole else state.looked
            return new

    def readings(self, node: str, limit: int = 100) -> list[NodeReading]:
        with self._state.turn:
            return [r for r in reversed(self._state.readings) if r.node == node][:limit]

    def set_switch(self, name: str, switch: ActionSwitch | None) -> None:
        with self._state.turn:
            self._state.switches.pop(name, None)
            if switch:
                self._state.switches[name] = switch

    def prune(self, now: Instant) -> None:
        """Only what is over, and never the newest thousand."""
        before, state = now.wall - self._keep.actions * SECOND, self._state
        with state.turn:
            for record in list(state.records.values())[:-1000]:
                if record.at.wall < before and not record.outcome.is_open:
                    del state.records[record.id]

    def close(self) -> None: ...
