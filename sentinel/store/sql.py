"""The state in SQLite or PostgreSQL: takes the lead, reads and writes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from msgspec.structs import replace

from sentinel.alerting.handover import HANDOVER_KEY, Handover
from sentinel.alerting.silences import Ack, Orders, Remark, Silence
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Fenced, StoreBusy, StoreError
from sentinel.core.model import Alert, Batch, CheckRun, Outgoing, Receipt, Sending, Transition
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.stored_memory import decode_memory
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.database import Connection, Values
from sentinel.store.errors import StateUnavailable
from sentinel.store.lease import TRUSTED_TERM_SHARE, Lease, read_boot_clock
from sentinel.store.restore_note import take_restore_note
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
    digest_parts,
    encode_batch,
    encode_stored,
    make_delivery,
    make_sent_outcome,
    mark_given_up,
)
from sentinel.store.samples import SampleHistory
from sentinel.store.session import DatabaseSession
from sentinel.store.sql_reads import (
    decode_bodies,
    read_outbox_rows,
    read_snapshot_rows,
    read_stored_lease,
)
from sentinel.store.unreadable import decode_readable, set_aside_unreadable

STANDBY_KEY = "sentinel/standby"
"""Key under which the state remembers when another sentinel last wanted to lead (µs UTC)."""

STANDBY_NOTE_SPACING_S = 3600.0
"""Seconds between two such notes."""


class SqlStore(Store):
    """Implements alerting.state.Store over a database; several threads may use it.

    The database is opened at the first use. Beside the port's errors it raises those of
    store.errors."""

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
        self._notices: list[str] = []

    @property
    def has_lock(self) -> bool:
        """Whether a lock keeps others from leading, even while nothing can be written."""
        return self._locked_in is not None and not self._backend.needs_session

    def open_database(self) -> None:
        """Open the database now, and read the whole state once."""
        self.read_snapshot()

    def replace_damaged(self, now: Instant) -> str:
        """Begin a new, empty state after StateDamaged. Returns the notice for people."""
        return self._session.reopen_empty(now)

    def take_notices(self) -> tuple[str, ...]:
        notices, self._notices = tuple(self._notices), []
        return notices

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
            notices = [
                *take_restore_note(connection),
                *set_aside_unreadable(connection, self._backend.place, Instant(lease.since)),
            ]
        self._notices += notices
        self._lease, self._token = lease, token
        self._until = began + TRUSTED_TERM_SHARE * self._backend.term
        return token

    def _note_standby(self, now: Instant) -> None:
        """Note that this process stands by, if the state has a lease. The leader then knows that it
        must not go on while the server is away."""
        if self._backend.term and read_boot_clock() - self._noted > STANDBY_NOTE_SPACING_S:
            with suppress(StoreError), self._session.write_transaction() as connection:
                self._put_memory(connection, STANDBY_KEY, {"at": now.wall})
                self._noted = read_boot_clock()

    def store_handover(self, handed: Handover) -> None:
        """Store a handover without leading; another process may lead."""
        with self._session.write_transaction() as connection:
            connection.run(statements.LEADER_TOKEN)  # one after another
            body = connection.fetch_value(statements.MEMORY_OF, {"key": digest_parts(HANDOVER_KEY)})
            known = decode_readable([body] if body else [], StoredMemory)
            before = decode_memory(known[0].memory, Handover) if known else None
            before = before or Handover()
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
        """Seconds until a lease expires. 0 if it needs no renewal."""
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
            self._backend.drop_lock()
        self._lease, self._token, self._locked_in = Lease(), None, None
        self._until = float("-inf")

    def read_leader(self) -> str:
        with self._session.read_transaction() as connection:
            return str(self._backend.find_holder(connection, read_stored_lease(connection)))

    # Reading

    def read_alerts(self) -> list[Alert]:
        with self._session.read_transaction() as connection:
            return decode_bodies(connection, statements.ALERTS, Alert)

    def read_runs(self) -> list[CheckRun]:
        with self._session.read_transaction() as connection:
            return decode_bodies(connection, statements.RUNS, CheckRun)

    def read_memory(self, check: str) -> Mapping[str, Any]:
        with self._session.read_transaction() as connection:
            bodies = connection.fetch_column(statements.MEMORY_OF, {"key": digest_parts(check)})
            return next((row.memory for row in decode_readable(bodies, StoredMemory)), {})

    def read_outbox(self) -> list[Outgoing]:
        with self._session.read_transaction() as connection:
            return read_outbox_rows(connection)

    def read_snapshot(self) -> StateSnapshot:
        """The whole state that a running sentinel needs, at one moment."""
        with self._session.read_transaction() as connection:
            return read_snapshot_rows(connection)

    def read_transitions(self, limit: int = 100, alert: str = "") -> list[Transition]:
        wanted: Values = {"limit": limit, "alert": digest_parts(alert)}
        which = statements.TRANSITIONS_OF if alert else statements.TRANSITIONS
        with self._session.read_transaction() as connection:
            return decode_bodies(connection, which, Transition, wanted)

    def read_deliveries(self, alert: str) -> list[DeliveryRecord]:
        with self._session.read_transaction() as connection:
            rows = connection.fetch_rows(statements.MESSAGES_ABOUT, {"alert": digest_parts(alert)})
        return [
            make_delivery(replace(row, seq=seq), outcome)
            for seq, body, end in rows
            for row in decode_readable([body], Outgoing)
            for outcome in (decode_readable([end], DeliveryOutcome) if end else [None])
        ]

    def read_sendings(self, since: int) -> list[Sending]:
        with self._session.read_transaction() as connection:
            rows = connection.fetch_rows(statements.MESSAGES_SENT_SINCE, {"since": since})
        told = [
            (seq, row, outcome)
            for seq, body, end in rows
            for row in decode_readable([body], OutboxAddress)
            for outcome in decode_readable([end], DeliveryOutcome)
        ]
        return [
            Sending(row.channel, row.bundle, outcome.at, outcome.message or seq, row.notification)
            for seq, row, outcome in told
            if outcome.sent
        ]

    def read_samples(
        self, check: str, subject: str, name: str, since: int
    ) -> list[tuple[Instant, float]]:
        with self._session.read_transaction() as connection:
            return self._history.read_series(connection, (check, subject, name), since)

    def read_ledger(self, since: int) -> list[LedgerRow]:
        with self._session.read_transaction() as connection:
            return decode_bodies(connection, statements.LEDGER_ROWS, LedgerRow, {"since": since})

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
            connection.run_many(statements.PUT_LEDGER_ROW, rows.ledger)

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
            return collect_orders(decode_bodies(connection, statements.ALL_ORDERS, StoredOrder))

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
            ledger_before = {"before": wall - keep.ledger * SECOND}
            connection.run(statements.FORGET_LEDGER_ROWS, ledger_before)
            samples_before = wall - keep.samples * SECOND
            self._history.sort_samples(connection, wall, samples_before)
            self._history.prune_samples(connection, samples_before)
            self._history.thin_samples(connection, wall - keep.fine * SECOND)

    def _put_order(self, order: StoredOrder) -> None:
        """Store an order in place of an earlier one of the same name."""
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
            self._history.forget_series_ids()  # forget the ids of series that were rolled back
            raise
        self._until = began + TRUSTED_TERM_SHARE * self._backend.term

    def _verify_token(self, connection: Connection) -> int:
        token, last = connection.fetch_one(statements.LEADER_TOKEN)
        if token != self._token:
            self._until = float("-inf")
            raise Fenced(
                f"{self._backend.place}: another sentinel took over "
                f"({read_stored_lease(connection)}); this one stops"
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
        """Take the lock again that ended with a lost session, as long as the stored number is this
        process's."""
        if self._backend.needs_session and self._locked_in != self._session.number:
            if not self._backend.take_lock(connection, self._lease):
                raise StateUnavailable(
                    f"{self._backend.place}: a lost session still holds the lock"
                )
            self._locked_in = self._session.number

    def _make_busy_error(self, connection: Connection | None) -> StoreBusy:
        stored = read_stored_lease(connection) if connection is not None else Lease()
        holder = self._backend.find_holder(connection, stored)
        busy = StoreBusy(f"{self._backend.place}: another sentinel leads: {holder}")
        busy.since = holder.since
        return busy
