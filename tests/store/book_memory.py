"""The audit log and the ledger of nodes in memory, for tests: fast, and held to the same contract."""

import threading
from collections.abc import Callable, Sequence

from sentinel.core.actions import ActionRecord, Decision, Past, Reading, Switch
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Node
from sentinel.nodes import history
from sentinel.store.retention import USUAL, Keep
from sentinel.store.rows import encode


class BookState:
    """What several MemoryBooks share, as several processes share a database."""

    def __init__(self) -> None:
        self.turn = threading.RLock()
        self.records: dict[str, ActionRecord] = {}
        self.readings: list[Reading] = []
        self.switches: dict[str, Switch] = {}
        self.looked: Instant | None = None


class MemoryBooks:
    """core.ports.Books in memory."""

    def __init__(self, state: BookState | None = None, keep: Keep = USUAL) -> None:
        self._state, self._keep = state or BookState(), keep

    def past(self, target: str) -> Past:
        state = self._state
        with state.turn:
            return Past(
                records=tuple(state.records.values()),
                left=tuple(r for r in reversed(state.readings) if r.left),
                returned=tuple(r for r in state.readings if r.returned),
                maintenance=state.switches.get("maintenance"),
                breaker=state.switches.get("breaker"),
            )

    def intend(self, target: str, decide: Callable[[Past], Decision]) -> Decision:
        with self._state.turn:
            decision = decide(self.past(target))
            if decision.write:
                encode(decision.record)  # refuses here what a database would refuse
                self._state.records[decision.record.id] = decision.record
            if decision.breaker:
                self._state.switches["breaker"] = decision.breaker
            return decision

    def conclude(self, record: ActionRecord) -> bool:
        encode(record)
        with self._state.turn:
            before = self._state.records.get(record.id)
            if before is None or not before.outcome.open:
                return False
            self._state.records[record.id] = record
            return True

    def unresolved(self) -> list[ActionRecord]:
        with self._state.turn:
            return [r for r in self._state.records.values() if r.outcome.open]

    def records(self, target: str = "", limit: int = 100) -> list[ActionRecord]:
        with self._state.turn:
            newest = reversed(self._state.records.values())
            return [r for r in newest if target in ("", r.target)][:limit]

    def observe(self, nodes: Sequence[Node], now: Instant, *, whole: bool = True) -> list[Reading]:
        state = self._state
        with state.turn:
            last = {r.node: r for r in state.readings}
            new = list(history.news(nodes, last, state.looked, now))
            state.readings += new
            state.looked = now if whole else state.looked
            return new

    def readings(self, node: str, limit: int = 100) -> list[Reading]:
        with self._state.turn:
            return [r for r in reversed(self._state.readings) if r.node == node][:limit]

    def switch(self, name: str, switch: Switch | None) -> None:
        with self._state.turn:
            self._state.switches.pop(name, None)
            if switch:
                self._state.switches[name] = switch

    def prune(self, now: Instant) -> None:
        """Only what is over, and never the newest thousand."""
        before, state = now.wall - self._keep.actions * SECOND, self._state
        with state.turn:
            for record in list(state.records.values())[:-1000]:
                if record.at.wall < before and not record.outcome.open:
                    del state.records[record.id]

    def close(self) -> None: ...
