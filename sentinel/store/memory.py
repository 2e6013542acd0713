"""The state in memory: for tests and one-shots, and as the mirror while the state cannot be
written."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from sentinel.alerting.silences import Ack, Orders, Remark, Silence
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Fenced, StoreBusy
from sentinel.core.model import (
    Alert,
    Batch,
    CheckRun,
    Key,
    Outgoing,
    Receipt,
    Sending,
    SentNotification,
    Transition,
)
from sentinel.core.run_ledger import LedgerRow
from sentinel.store.lease import Lease
from sentinel.store.retention import DEFAULT_RETENTION, HOUR_US, Retention
from sentinel.store.rows import (
    DeliveryOutcome,
    Series,
    StateSnapshot,
    StoredOrder,
    collect_orders,
    collect_values,
    decode_stored,
    encode_batch,
    encode_stored,
    make_sent_outcome,
    mark_given_up,
    number_outgoing,
)

Thing = TypeVar("Thing")
MAX_RECENT_ROWS = 1000  # transitions, sent or abandoned messages, and samples of one series


class SharedState:
    """The data that several MemoryStores share, as several processes share a database."""

    def __init__(self) -> None:
        self.turn = threading.RLock()
        self.token = 0
        self.seq = 0
        self.lease = Lease()
        self.leader: MemoryStore | None = None
        self.alerts: dict[Key, Alert] = {}
        self.runs: dict[str, CheckRun] = {}
        self.memory: dict[str, str] = {}
        self.outbox: dict[int, Outgoing] = {}
        self.done: deque[tuple[Outgoing, DeliveryOutcome]] = deque(maxlen=MAX_RECENT_ROWS)
        self.transitions: deque[Transition] = deque(maxlen=MAX_RECENT_ROWS)
        self.samples: dict[Series, deque[tuple[Instant, float]]] = {}
        self.orders: dict[str, StoredOrder] = {}
        self.ledger: dict[tuple[str, ...], LedgerRow] = {}


class MemoryStore(Store):
    """Implements alerting.state.Store in memory. Of the history it keeps the newest thousand rows
    of each kind."""

    def __init__(
        self, keep: Retention = DEFAULT_RETENTION, state: SharedState | None = None
    ) -> None:
        self._keep = keep
        self._state = state or SharedState()
        self._token: int | None = None

    def close(self) -> None:
        self.release_lead()

    # Leading

    def take_lead(self, holder: str, now: Instant) -> int:
        state = self._state
        with state.turn:
            if state.leader not in (None, self):
                raise StoreBusy(f"another sentinel leads: {state.lease}")
            state.leader, state.lease = self, Lease(holder, now.wall)
            state.token += 1
            self._token = state.token
            return state.token

    term = 0.0

    def renew_lease(self) -> None:
        """Do nothing, since no lease expires here. Raises Fenced as every write does."""
        with self._state.turn:
            self._require_lead()

    def get_lease_left_s(self) -> float:
        return float("inf")

    def release_lead(self) -> None:
        with self._state.turn:
            self._token = None
            if self._state.leader is self:
                self._state.leader, self._state.lease = None, Lease()

    def read_leader(self) -> str:
        return str(self._state.lease)

    # Reading

    def read_alerts(self) -> list[Alert]:
        return list(self._state.alerts.values())

    def read_runs(self) -> list[CheckRun]:
        return list(self._state.runs.values())

    def read_memory(self, check: str) -> Mapping[str, Any]:
        text = self._state.memory.get(check)
        return {} if text is None else decode_stored(text, dict)

    def read_outbox(self) -> list[Outgoing]:
        with self._state.turn:
            return [row for _, row in sorted(self._state.outbox.items())]

    def read_transitions(self, limit: int = 100, alert: str = "") -> list[Transition]:
        newest = [t for t in reversed(self._state.transitions) if alert in ("", t.alert)]
        return newest[:limit]

    def read_deliveries(self, alert: str) -> list[tuple[Outgoing, Instant | None, str]]:
        with self._state.turn:
            waiting = [(row, None, "") for row in self._state.outbox.values()]
            done = [(row, o.at if o.sent else None, o.text) for row, o in self._state.done]
        about = [told for told in waiting + done if told[0].notification.alert == alert]
        return sorted(about, key=lambda told: told[0].seq)

    def read_sendings(self, since: int) -> list[Sending]:
        with self._state.turn:
            done = [(row, o) for row, o in self._state.done if o.sent and o.at.wall >= since]
        told = sorted(done, key=lambda d: (d[1].at.wall, d[0].seq))
        return [
            Sending(
                row.channel,
                row.bundle,
                o.at,
                o.message or row.seq,
                SentNotification(
                    row.notification.reason,
                    row.notification.alert,
                    row.notification.status,
                    row.notification.labels,
                ),
            )
            for row, o in told
        ]

    def read_samples(
        self, check: str, subject: str, name: str, since: int
    ) -> list[tuple[Instant, float]]:
        told = self._state.samples.get((check, subject, name), ())
        return [(at, value) for at, value in told if at.wall >= since]

    def read_ledger(self, since: int) -> list[LedgerRow]:
        with self._state.turn:
            rows = [row for row in self._state.ledger.values() if row.ended >= since]
        return sorted(rows, key=lambda row: row.ended)

    # Writing

    def commit(self, batch: Batch) -> None:
        encode_batch(batch)  # raises Unstorable now, as the database would later
        with self._state.turn:
            self._require_lead()
            self._apply_batch(batch)

    def sent(self, rows: Sequence[Outgoing], now: Instant, receipt: Receipt) -> None:
        self._finish_rows(rows, make_sent_outcome(rows, now, receipt))

    def failed(self, rows: Sequence[Outgoing]) -> None:
        for row in rows:
            encode_stored(row)
        with self._state.turn:
            self._require_lead()
            self._state.outbox.update({r.seq: r for r in rows if r.seq in self._state.outbox})

    def dropped(self, rows: Sequence[Outgoing], now: Instant, why: str) -> None:
        self._finish_rows(
            [mark_given_up(row, why) for row in rows], DeliveryOutcome(now, False, why)
        )

    def read_orders(self) -> Orders:
        return collect_orders(list(self._state.orders.values()))

    def put_silence(self, silence: Silence) -> None:
        self._put_order(StoredOrder(silence=silence))

    def put_ack(self, ack: Ack) -> None:
        self._put_order(StoredOrder(ack=ack))

    def put_remark(self, remark: Remark) -> None:
        self._put_order(StoredOrder(remark=remark))

    def prune(self, now: Instant) -> None:
        state, keep = self._state, self._keep
        with state.turn:
            self._require_lead()
            state.orders = {n: o for n, o in state.orders.items() if o.forget_at >= now.wall}
            _drop_older(state.done, now.wall - keep.sent * SECOND, lambda done: done[1].at)
            _drop_older(state.transitions, now.wall - keep.transitions * SECOND, lambda t: t.at)
            for told in state.samples.values():
                _drop_older(told, now.wall - keep.samples * SECOND, lambda sample: sample[0])
                _thin_hourly(told, now.wall - keep.fine * SECOND)
            oldest = now.wall - keep.ledger * SECOND
            state.ledger = {k: row for k, row in state.ledger.items() if row.ended >= oldest}
            state.samples = {series: told for series, told in state.samples.items() if told}

    # Mirroring

    def read_snapshot(self) -> StateSnapshot:
        """The whole state that a running sentinel needs, at one moment."""
        state = self._state
        with state.turn:
            return StateSnapshot(
                alerts=tuple(state.alerts.values()),
                runs=tuple(state.runs.values()),
                memory={check: decode_stored(text, dict) for check, text in state.memory.items()},
                outbox=tuple(self.read_outbox()),
                seq=state.seq,
            )

    def load_snapshot(self, snapshot: StateSnapshot) -> None:
        """Replace the state by the snapshot; the history is empty then."""
        fresh = SharedState()
        fresh.seq = snapshot.seq
        fresh.alerts = {alert.key: alert for alert in snapshot.alerts}
        fresh.runs = {run.check: run for run in snapshot.runs}
        fresh.memory = {check: encode_stored(memory) for check, memory in snapshot.memory.items()}
        fresh.outbox = {row.seq: row for row in snapshot.outbox}
        self._state, self._token = fresh, None

    def number_outgoing(self, rows: Sequence[Outgoing]) -> tuple[Outgoing, ...]:
        """Rows with the numbers that `commit` would give them."""
        return number_outgoing(rows, self._state.seq)

    def get_outcomes(self) -> dict[int, DeliveryOutcome]:
        """Outcomes of messages that were recently sent or abandoned, by row number."""
        return {row.seq: outcome for row, outcome in self._state.done}

    def get_finished_rows(self) -> list[tuple[Outgoing, DeliveryOutcome]]:
        """Messages that were recently sent or abandoned, with their outcomes."""
        return list(self._state.done)

    def forget_history(self) -> None:
        """Forget samples and the ledger of runs: they are stored elsewhere."""
        self._state.samples.clear()
        self._state.ledger.clear()

    def _apply_batch(self, batch: Batch) -> None:
        state = self._state
        for key in batch.closed:
            state.alerts.pop(key, None)
        state.alerts |= {alert.key: alert for alert in batch.alerts}
        state.runs |= {run.check: run for run in batch.runs}
        state.memory |= {check: encode_stored(memory) for check, memory in batch.memory.items()}
        known = {t.id for t in state.transitions}
        state.transitions.extend(t for t in batch.transitions if t.id not in known)
        self._enqueue_rows(batch.outbox)
        for series, value in collect_values(batch.samples).items():
            _append_sample(
                state.samples.setdefault(series, deque(maxlen=MAX_RECENT_ROWS)), batch.at, value
            )

        for row in batch.ledger:
            before = state.ledger.pop(row.unique_parts, row)
            state.ledger[row.unique_parts] = row if row.supersedes(before) else before
        for name in list(state.ledger)[:-MAX_RECENT_ROWS]:
            del state.ledger[name]

    def _enqueue_rows(self, rows: Sequence[Outgoing]) -> None:
        state, done = self._state, self.get_outcomes()
        told = self.number_outgoing(rows)
        new = (row for row in told if row.seq not in done and row.seq not in state.outbox)
        state.outbox |= {row.seq: row for row in new}
        state.seq = max([state.seq, *(row.seq for row in told)])

    def _finish_rows(self, rows: Iterable[Outgoing], outcome: DeliveryOutcome) -> None:
        encode_stored(outcome)
        with self._state.turn:
            self._require_lead()
            for row in rows:
                if self._state.outbox.pop(row.seq, None) is not None:
                    self._state.done.append((row, outcome))

    def _put_order(self, order: StoredOrder) -> None:
        encode_stored(order)  # raises Unstorable, as the database would
        with self._state.turn:
            self._state.orders[order.unique_name] = order

    def _require_lead(self) -> None:
        if self._token is None or self._token != self._state.token:
            raise Fenced("another sentinel took over; this one stops")


def _append_sample(told: deque[tuple[Instant, float]], at: Instant, value: float) -> None:
    if told and told[-1][0] == at:
        told.pop()
    told.append((at, value))


def _thin_hourly(told: deque[tuple[Instant, float]], before: int) -> None:
    """Keep only the last sample of each hour (UTC) that was over at the moment `before` (µs UTC),
    as the SQL does."""
    kept: list[tuple[Instant, float]] = []
    for hour, group in groupby(list(told), key=lambda sample: sample[0].wall // HOUR_US):
        several = list(group)
        kept += several[-1:] if (hour + 1) * HOUR_US <= before else several
    told.clear()
    told.extend(kept)


def _drop_older(things: deque[Thing], since: int, when: Callable[[Thing], Instant]) -> None:
    kept = [thing for thing in things if when(thing).wall >= since]
    things.clear()
    things.extend(kept)
