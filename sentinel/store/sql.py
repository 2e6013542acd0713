"""The state in SQLite or PostgreSQL: who leads, what is read and what is written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeVar

from msgspec import convert
from msgspec.structs import replace

from sentinel.alerting.handover import HANDOVER_KEY, Handover
from sentinel.alerting.silences import Ack, Orders, Remark, Silence
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Fenced, StoreBusy, StoreError
from sentinel.core.model import Alert, Batch, CheckRun, Outgoing, Receipt, Sending, Transition
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.database import Connection, Statement, Values
from sentinel.store.errors import StateUnavailable
from sentinel.store.lease import TRUSTED_TERM_SHARE, Lease, read_boot_clock
from sentinel.store.retention import DEFAULT_RETENTION, Retention
from sentinel.store.rows import (
    BatchRows,
    DeliveryOutcome,
    DeliveryRecord,
    OutboxAddress,
    StateSnapshot,
    StoredMemory,
    StoredOrder,
    assign_numbers,
    collect_orders,
    decode_stored,
    digest_parts,
    encode_batch,
    encode_stored,
    make_delivery,
    make_sent_outcome,
    mark_given_up,
)
from sentinel.store.samples import SampleHistory
from sentinel.store.session import DatabaseSession

STANDBY_KEY = "sentinel/standby"
"""Under this name the state remembers when another sentinel last wanted to lead (µs UTC)."""

STANDBY_NOTE_SPACING_S = 3600.0
"""Seconds between two such notes."""


class SqlStore(Store):
    """alerting.state.Store over a database; safe to use from several threads.

    It opens at its first use. Beyond the port's errors it raises those of store.errors.
    """

    def __init__(self, backend: Backend, keep: Retention = DEFAULT_RETENTION) -> None:
        self._backend = backend
        self._keep = keep
        self._session = DatabaseSession(backend)
        self._history = SampleHistory()
        self._lease = Lease()
        self._token: int | None = None
        self._locked_in: int | None = None
        self._until = float("-inf")
        self._noted = float("-inf")

    @property
    def has_lock(self) -> bool:
        """Whether no other sentinel can lead, even while nothing can be written."""
        return self._locked_in is not None and not self._backend.needs_session

    def open_database(self) -> None:
        """Open now, and read once all that a running sentinel needs."""
        self.read_snapshot()

    def replace_damaged(self, now: Instant) -> str:
        """After Damaged: go on with a new, empty state; returns what a person must know."""
        self._history.forget_series_ids()
        return self._session.reopen_empty(now)

    def close(self) -> None:
        self.release_lead()
        self._session.close()

    # Leading

    def take_lead(self, holder: str, now: Instant) -> int:
        try:
            return self._grant_lease(Lease(holder, now.wall))
        except StoreBusy:
            self._note_standby(now)
            raise

    def _grant_lease(self, lease: Lease) -> int:
        self._take_leader_lock(lease)
        self._history.forget_series_ids()
        began = read_boot_clock()
        with self._session.write_transaction() as connection:
            self._backend.end_expired_leader(connection)
            token = int(connection.fetch_one(statements.LEADER_TOKEN)[0])
            end, free = self._backend.get_lease_expiry(connection)
            if not free and token != self._token:
                raise self._make_busy_error(connection)
            token += 1
            granted = {"token": token, "expires": end, "body": encode_stored(lease)}
            connection.run(statements.GRANT_LEASE, granted)
        self._lease, self._token = lease, token
        self._until = began + TRUSTED_TERM_SHARE * self._backend.term
        return token

    def _note_standby(self, now: Instant) -> None:
        """Where a lease expires: its leader must not go on when the server is away."""
        if self._backend.term and read_boot_clock() - self._noted > STANDBY_NOTE_SPACING_S:
            with suppress(StoreError), self._session.write_transaction() as connection:
                self._put_memory(connection, STANDBY_KEY, {"at": now.wall})
                self._noted = read_boot_clock()

    def store_handover(self, handed: Handover) -> None:
        """Leave it to whoever leads, without leading."""
        with self._session.write_transaction() as connection:
            connection.run(statements.LEADER_TOKEN)  # one after another
            body = connection.fetch_value(statements.MEMORY_OF, {"key": digest_parts(HANDOVER_KEY)})
            before = (
                convert(decode_stored(body, StoredMemory).memory, Handover) if body else Handover()
            )
            both = {
                part: (*getattr(before, part), *getattr(handed, part))
                for part in Handover.__struct_fields__
            }
            self._put_memory(connection, HANDOVER_KEY, both)

    def _put_memory(self, connection: Connection, name: str, memory: Mapping[str, Any]) -> None:
        row = {"key": digest_parts(name), "body": encode_stored(StoredMemory(name, memory))}
        connection.run(statements.PUT_MEMORY, row)

    @property
    def term(self) -> float:
        """Seconds a lease lasts, 0 where it needs no renewing."""
        return self._backend.term

    def renew_lease(self) -> None:
        with self._leader_transaction():
            pass

    def get_lease_left_s(self) -> float:
        if not self._backend.term:
            return float("inf")
        return self._until - read_boot_clock()

    def release_lead(self) -> None:
        if self._token is not None:
            with suppress(StoreError), self._leader_transaction() as (connection, _):
                connection.run(statements.END_LEASE, {"body": encode_stored(Lease())})
        with suppress(StoreError):
            self._drop_leader_lock()
        self._lease, self._token, self._locked_in = Lease(), None, None
        self._until = float("-inf")

    def read_leader(self) -> str:
        with self._session.read_transaction() as connection:
            return str(self._backend.find_holder(connection, _read_stored_lease(connection)))

    # Reading

    def read_alerts(self) -> list[Alert]:
        with self._session.read_transaction() as connection:
            return _decode_bodies(connection, statements.ALERTS, Alert)

    def read_runs(self) -> list[CheckRun]:
        with self._session.read_transaction() as connection:
            return _decode_bodies(connection, statements.RUNS, CheckRun)

    def read_memory(self, check: str) -> Mapping[str, Any]:
        with self._session.read_transaction() as connection:
            body = connection.fetch_value(statements.MEMORY_OF, {"key": digest_parts(check)})
            return decode_stored(body, StoredMemory).memory if body is not None else {}

    def read_outbox(self) -> list[Outgoing]:
        with self._session.read_transaction() as connection:
            return _read_outbox(connection)

    def read_snapshot(self) -> StateSnapshot:
        """All that a running sentinel needs, of one moment."""
        with self._session.read_transaction() as connection:
            return _read_snapshot(connection)

    def read_transitions(self, limit: int = 100, alert: str = "") -> list[Transition]:
        wanted: Values = {"limit": limit, "alert": digest_parts(alert)}
        which = statements.TRANSITIONS_OF if alert else statements.TRANSITIONS
        with self._session.read_transaction() as connection:
            return _decode_bodies(connection, which, Transition, wanted)

    def read_deliveries(self, alert: str) -> list[DeliveryRecord]:
        with self._session.read_transaction() as connection:
            rows = connection.fetch_rows(statements.MESSAGES_ABOUT, {"alert": digest_parts(alert)})
            return [
                make_delivery(_decode_outgoing(seq, body), _decode_outcome(end))
                for seq, body, end in rows
            ]

    def read_sendings(self, since: int) -> list[Sending]:
        with self._session.read_transaction() as connection:
            rows = connection.fetch_rows(statements.MESSAGES_SENT_SINCE, {"since": since})
            told = [
                (seq, decode_stored(b, OutboxAddress), decode_stored(end, DeliveryOutcome))
                for seq, b, end in rows
            ]
        return [
            Sending(row.channel, row.group, outcome.at, outcome.message or seq)
            for seq, row, outcome in told
            if outcome.sent
        ]

    def read_samples(
        self, check: str, subject: str, name: str, since: int
    ) -> list[tuple[Instant, float]]:
        with self._session.read_transaction() as connection:
            return self._history.read_series(connection, (check, subject, name), since)

    # Writing

    def commit(self, batch: Batch) -> None:
        rows = encode_batch(batch)
        with self._leader_transaction() as (connection, last):
            connection.run_many(statements.CLOSE_ALERT, rows.closed)
            connection.run_many(statements.PUT_ALERT, rows.alerts)
            connection.run_many(statements.ADD_TRANSITION, rows.transitions)
            connection.run_many(statements.PUT_MEMORY, rows.memory)
            connection.run_many(statements.PUT_RUN, rows.runs)
            self._enqueue_rows(connection, rows, last)
            self._history.write_values(connection, rows.at, rows.samples)

    def sent(self, rows: Sequence[Outgoing], now: Instant, receipt: Receipt) -> None:
        self._finish_rows(rows, make_sent_outcome(rows, now, receipt))

    def failed(self, rows: Sequence[Outgoing]) -> None:
        changed = [{"seq": row.seq, "body": encode_stored(row)} for row in rows]
        with self._leader_transaction() as (connection, _):
            connection.run_many(statements.RETRY_MESSAGE, changed)

    def dropped(self, rows: Sequence[Outgoing], now: Instant, why: str) -> None:
        self._finish_rows(
            [mark_given_up(row, why) for row in rows], DeliveryOutcome(now, False, why)
        )

    def read_orders(self) -> Orders:
        with self._session.read_transaction() as connection:
            return collect_orders(_decode_bodies(connection, statements.ALL_ORDERS, StoredOrder))

    def put_silence(self, silence: Silence) -> None:
        self._put_order(StoredOrder(silence=silence))

    def put_ack(self, ack: Ack) -> None:
        self._put_order(StoredOrder(ack=ack))

    def put_remark(self, remark: Remark) -> None:
        self._put_order(StoredOrder(remark=remark))

    def prune(self, now: Instant) -> None:
        keep, wall = self._keep, now.wall
        with self._leader_transaction() as (connection, _):
            connection.run(statements.FORGET_ORDERS, {"now": wall})
            sent_before = {"before": wall - keep.sent * SECOND}
            connection.run(statements.FORGET_MESSAGES, sent_before)
            moved_before = {"before": wall - keep.transitions * SECOND}
            connection.run(statements.FORGET_TRANSITIONS, moved_before)
            self._history.prune_samples(connection, wall - keep.samples * SECOND)
            self._history.thin_samples(connection, wall - keep.fine * SECOND)

    def _put_order(self, order: StoredOrder) -> None:
        """In place of an earlier one of the same name."""
        key = digest_parts(order.unique_name)
        row = {"key": key, "ends": order.forget_at, "body": encode_stored(order)}
        with self._session.write_transaction() as connection:
            connection.run(statements.REMOVE_ORDER, {"key": key})
            connection.run(statements.ADD_ORDER, row)

    def _enqueue_rows(self, connection: Connection, rows: BatchRows, last: int) -> None:
        if rows.outbox:
            numbers = assign_numbers(last, (row["seq"] for row in rows.outbox))
            told = [{**row, "seq": n} for row, n in zip(rows.outbox, numbers, strict=True)]
            connection.run_many(statements.ADD_MESSAGE, told)
            connection.run(statements.NOTE_LAST_SEQ, {"seq": max(last, *numbers)})

    def _finish_rows(self, rows: Iterable[Outgoing], outcome: DeliveryOutcome) -> None:
        end = {"done": outcome.at.wall, "outcome": encode_stored(outcome)}
        done = [{"seq": row.seq, "body": encode_stored(row), **end} for row in rows]
        with self._leader_transaction() as (connection, _):
            connection.run_many(statements.FINISH_MESSAGE, done)

    @contextmanager
    def _leader_transaction(self) -> Iterator[tuple[Connection, int]]:
        """A transaction of the leader, with the number of the last outbox row."""
        if self._token is None:
            raise Fenced(f"{self._backend.place}: this sentinel does not lead")
        began = read_boot_clock()
        try:
            with self._session.write_transaction() as connection:
                yield connection, self._verify_token(connection)
        except BaseException:
            self._history.forget_series_ids()  # ids of series that were rolled back
            raise
        self._until = began + TRUSTED_TERM_SHARE * self._backend.term

    def _verify_token(self, connection: Connection) -> int:
        token, last = connection.fetch_one(statements.LEADER_TOKEN)
        if token != self._token:
            self._until = float("-inf")
            raise Fenced(
                f"{self._backend.place}: another sentinel took over "
                f"({_read_stored_lease(connection)}); this one stops"
            )
        self._retake_leader_lock(connection)
        if self._backend.term:
            expires = self._backend.get_lease_expiry(connection)[0]
            connection.run(statements.RENEW_LEASE, {"expires": expires})
        return int(last)

    def _take_leader_lock(self, lease: Lease) -> None:
        session = self._session.read_transaction if self._backend.needs_session else nullcontext
        with session() as connection:
            if self._locked_in == self._session.number:
                return
            if not self._backend.take_lock(connection, lease):
                raise self._make_busy_error(connection)
            self._locked_in = self._session.number

    def _retake_leader_lock(self, connection: Connection) -> None:
        """A lock that ended with a lost session is taken anew as long as the token is ours."""
        if self._backend.needs_session and self._locked_in != self._session.number:
            if not self._backend.take_lock(connection, self._lease):
                raise StateUnavailable(
                    f"{self._backend.place}: a lost session still holds the lock"
                )
            self._locked_in = self._session.number

    def _drop_leader_lock(self) -> None:
        session = self._session.read_transaction if self._backend.needs_session else nullcontext
        with session() as connection:
            self._backend.drop_lock(connection)

    def _make_busy_error(self, connection: Connection | None) -> StoreBusy:
        stored = _read_stored_lease(connection) if connection is not None else Lease()
        holder = self._backend.find_holder(connection, stored)
        busy = StoreBusy(f"{self._backend.place}: another sentinel leads: {holder}")
        busy.since = holder.since
        return busy


Noun = TypeVar("Noun")
_NO_VALUES: Mapping[str, Any] = {}


def _read_outbox(connection: Connection) -> list[Outgoing]:
    """Unsent rows, oldest first."""
    return [
        _decode_outgoing(seq, body)
        for seq, body in connection.fetch_rows(statements.UNSENT_MESSAGES)
    ]


def _read_snapshot(connection: Connection) -> StateSnapshot:
    """All that a running sentinel needs."""
    memory = _decode_bodies(connection, statements.ALL_MEMORY, StoredMemory)
    seq, token = connection.fetch_one(statements.LAST_SEQ)
    return StateSnapshot(
        alerts=tuple(_decode_bodies(connection, statements.ALERTS, Alert)),
        runs=tuple(_decode_bodies(connection, statements.RUNS, CheckRun)),
        memory={remembered.check: remembered.memory for remembered in memory},
        outbox=tuple(_read_outbox(connection)),
        seq=seq,
        token=token,
    )


def _read_stored_lease(connection: Connection) -> Lease:
    """The lease that was written last; its holder may be gone."""
    return decode_stored(connection.fetch_one(statements.STORED_LEASE)[0], Lease)


def _decode_bodies(
    connection: Connection, statement: Statement, kind: type[Noun], wanted: Values = _NO_VALUES
) -> list[Noun]:
    return [decode_stored(body, kind) for body in connection.fetch_column(statement, wanted)]


def _decode_outgoing(seq: int, body: str) -> Outgoing:
    return replace(decode_stored(body, Outgoing), seq=seq)


def _decode_outcome(text: str) -> DeliveryOutcome | None:
    return decode_stored(text, DeliveryOutcome) if text else None
