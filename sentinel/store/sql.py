"""The state in SQLite or PostgreSQL: who leads, what is read and what is written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeVar

from msgspec import convert
from msgspec.structs import replace

from sentinel.alerting.handover import HANDED, Handed
from sentinel.alerting.silences import Ack, Orders, Remark, Silence
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Fenced, StoreBusy, StoreError
from sentinel.core.model import Alert, Batch, Outgoing, Receipt, Run, Sending, Transition
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.database import Connection, Statement, Values
from sentinel.store.errors import Unavailable
from sentinel.store.lease import TRUSTED, Lease, boot_clock
from sentinel.store.retention import USUAL, Keep
from sentinel.store.rows import (
    Addressed,
    Delivery,
    Order,
    Outcome,
    Remembered,
    Rows,
    Snapshot,
    decode,
    delivery,
    digest,
    encode,
    given_up,
    numbers_after,
    rows_of,
    taken,
    together,
)
from sentinel.store.samples import History
from sentinel.store.session import Session

STANDBY = "sentinel/standby"
"""Under this name the state remembers when another sentinel last wanted to lead (µs UTC)."""

NOTED = 3600.0
"""Seconds between two such notes."""


class SqlStore(Store):
    """alerting.state.Store over a database; safe to use from several threads.

    It opens at its first use. Beyond the port's errors it raises those of store.errors.
    """

    def __init__(self, backend: Backend, keep: Keep = USUAL) -> None:
        self._backend = backend
        self._keep = keep
        self._session = Session(backend)
        self._history = History()
        self._lease = Lease()
        self._token: int | None = None
        self._locked_in: int | None = None
        self._until = float("-inf")
        self._noted = float("-inf")

    @property
    def locked(self) -> bool:
        """Whether no other sentinel can lead, even while nothing can be written."""
        return self._locked_in is not None and not self._backend.needs_session

    def prepare(self) -> None:
        """Open now, and read once all that a running sentinel needs."""
        self.snapshot()

    def reopen(self, now: Instant) -> str:
        """After Damaged: go on with a new, empty state; returns what a person must know."""
        self._history.forget_ids()
        return self._session.reopen(now)

    def close(self) -> None:
        self.release()
        self._session.close()

    # Leading

    def lead(self, holder: str, now: Instant) -> int:
        try:
            return self._lead(Lease(holder, now.wall))
        except StoreBusy:
            self._note_standby(now)
            raise

    def _lead(self, lease: Lease) -> int:
        self._lock(lease)
        self._history.forget_ids()
        began = boot_clock()
        with self._session.writing() as connection:
            self._backend.make_way(connection)
            token = int(connection.one(statements.TOKEN)[0])
            end, free = self._backend.expires(connection)
            if not free and token != self._token:
                raise self._busy(connection)
            token += 1
            granted = {"token": token, "expires": end, "body": encode(lease)}
            connection.run(statements.GRANT_LEASE, granted)
        self._lease, self._token = lease, token
        self._until = began + TRUSTED * self._backend.term
        return token

    def _note_standby(self, now: Instant) -> None:
        """Where a lease expires: its leader must not go on when the server is away."""
        if self._backend.term and boot_clock() - self._noted > NOTED:
            with suppress(StoreError), self._session.writing() as connection:
                self._remember(connection, STANDBY, {"at": now.wall})
                self._noted = boot_clock()

    def hand_over(self, handed: Handed) -> None:
        """Leave it to whoever leads, without leading."""
        with self._session.writing() as connection:
            connection.run(statements.TOKEN)  # one after another
            body = connection.value(statements.MEMORY_OF, {"key": digest(HANDED)})
            before = convert(decode(body, Remembered).memory, Handed) if body else Handed()
            both = {
                part: (*getattr(before, part), *getattr(handed, part))
                for part in Handed.__struct_fields__
            }
            self._remember(connection, HANDED, both)

    def _remember(self, connection: Connection, name: str, memory: Mapping[str, Any]) -> None:
        row = {"key": digest(name), "body": encode(Remembered(name, memory))}
        connection.run(statements.PUT_MEMORY, row)

    @property
    def term(self) -> float:
        """Seconds a lease lasts, 0 where it needs no renewing."""
        return self._backend.term

    def renew(self) -> None:
        with self._leading():
            pass

    def lease_left(self) -> float:
        if not self._backend.term:
            return float("inf")
        return self._until - boot_clock()

    def release(self) -> None:
        if self._token is not None:
            with suppress(StoreError), self._leading() as (connection, _):
                connection.run(statements.END_LEASE, {"body": encode(Lease())})
        with suppress(StoreError):
            self._unlock()
        self._lease, self._token, self._locked_in = Lease(), None, None
        self._until = float("-inf")

    def leader(self) -> str:
        with self._session.reading() as connection:
            return str(self._backend.holder(connection, _stored_lease(connection)))

    # Reading

    def alerts(self) -> list[Alert]:
        with self._session.reading() as connection:
            return _bodies(connection, statements.ALERTS, Alert)

    def runs(self) -> list[Run]:
        with self._session.reading() as connection:
            return _bodies(connection, statements.RUNS, Run)

    def memory(self, check: str) -> Mapping[str, Any]:
        with self._session.reading() as connection:
            body = connection.value(statements.MEMORY_OF, {"key": digest(check)})
            return decode(body, Remembered).memory if body is not None else {}

    def outbox(self) -> list[Outgoing]:
        with self._session.reading() as connection:
            return _outbox(connection)

    def snapshot(self) -> Snapshot:
        """All that a running sentinel needs, of one moment."""
        with self._session.reading() as connection:
            return _snapshot(connection)

    def history(self, limit: int = 100, alert: str = "") -> list[Transition]:
        wanted: Values = {"limit": limit, "alert": digest(alert)}
        which = statements.TRANSITIONS_OF if alert else statements.TRANSITIONS
        with self._session.reading() as connection:
            return _bodies(connection, which, Transition, wanted)

    def deliveries(self, alert: str) -> list[Delivery]:
        with self._session.reading() as connection:
            rows = connection.rows(statements.MESSAGES_ABOUT, {"alert": digest(alert)})
            return [delivery(_numbered(seq, body), _outcome(end)) for seq, body, end in rows]

    def sendings(self, since: int) -> list[Sending]:
        with self._session.reading() as connection:
            rows = connection.rows(statements.SENT_SINCE, {"since": since})
            told = [(seq, decode(b, Addressed), decode(end, Outcome)) for seq, b, end in rows]
        return [
            Sending(row.channel, row.group, outcome.at, outcome.message or seq)
            for seq, row, outcome in told
            if outcome.sent
        ]

    def samples(
        self, check: str, subject: str, name: str, since: int
    ) -> list[tuple[Instant, float]]:
        with self._session.reading() as connection:
            return self._history.read(connection, (check, subject, name), since)

    # Writing

    def commit(self, batch: Batch) -> None:
        rows = rows_of(batch)
        with self._leading() as (connection, last):
            connection.run_many(statements.CLOSE_ALERT, rows.closed)
            connection.run_many(statements.PUT_ALERT, rows.alerts)
            connection.run_many(statements.ADD_TRANSITION, rows.transitions)
            connection.run_many(statements.PUT_MEMORY, rows.memory)
            connection.run_many(statements.PUT_RUN, rows.runs)
            self._enqueue(connection, rows, last)
            self._history.write(connection, rows.at, rows.samples)

    def sent(self, rows: Sequence[Outgoing], now: Instant, receipt: Receipt) -> None:
        self._finish(rows, taken(rows, now, receipt))

    def failed(self, rows: Sequence[Outgoing]) -> None:
        changed = [{"seq": row.seq, "body": encode(row)} for row in rows]
        with self._leading() as (connection, _):
            connection.run_many(statements.RETRY_MESSAGE, changed)

    def dropped(self, rows: Sequence[Outgoing], now: Instant, why: str) -> None:
        self._finish([given_up(row, why) for row in rows], Outcome(now, False, why))

    def orders(self) -> Orders:
        with self._session.reading() as connection:
            return together(_bodies(connection, statements.ORDERS, Order))

    def silence(self, silence: Silence) -> None:
        self._order(Order(silence=silence))

    def acknowledge(self, ack: Ack) -> None:
        self._order(Order(ack=ack))

    def remark(self, remark: Remark) -> None:
        self._order(Order(remark=remark))

    def prune(self, now: Instant) -> None:
        keep, wall = self._keep, now.wall
        with self._leading() as (connection, _):
            connection.run(statements.FORGET_ORDERS, {"now": wall})
            sent_before = {"before": wall - keep.sent * SECOND}
            connection.run(statements.FORGET_MESSAGES, sent_before)
            moved_before = {"before": wall - keep.transitions * SECOND}
            connection.run(statements.FORGET_TRANSITIONS, moved_before)
            self._history.prune(connection, wall - keep.samples * SECOND)
            self._history.thin(connection, wall - keep.fine * SECOND)

    def _order(self, order: Order) -> None:
        """In place of an earlier one of the same name."""
        key = digest(order.name)
        row = {"key": key, "ends": order.ends, "body": encode(order)}
        with self._session.writing() as connection:
            connection.run(statements.REMOVE_ORDER, {"key": key})
            connection.run(statements.ADD_ORDER, row)

    def _enqueue(self, connection: Connection, rows: Rows, last: int) -> None:
        if rows.outbox:
            numbers = numbers_after(last, (row["seq"] for row in rows.outbox))
            told = [{**row, "seq": n} for row, n in zip(rows.outbox, numbers, strict=True)]
            connection.run_many(statements.ADD_MESSAGE, told)
            connection.run(statements.NOTE_LAST_SEQ, {"seq": max(last, *numbers)})

    def _finish(self, rows: Iterable[Outgoing], outcome: Outcome) -> None:
        end = {"done": outcome.at.wall, "outcome": encode(outcome)}
        done = [{"seq": row.seq, "body": encode(row), **end} for row in rows]
        with self._leading() as (connection, _):
            connection.run_many(statements.FINISH_MESSAGE, done)

    @contextmanager
    def _leading(self) -> Iterator[tuple[Connection, int]]:
        """A transaction of the leader, with the number of the last outbox row."""
        if self._token is None:
            raise Fenced(f"{self._backend.place}: this sentinel does not lead")
        began = boot_clock()
        try:
            with self._session.writing() as connection:
                yield connection, self._verified(connection)
        except BaseException:
            self._history.forget_ids()  # ids of series that were rolled back
            raise
        self._until = began + TRUSTED * self._backend.term

    def _verified(self, connection: Connection) -> int:
        token, last = connection.one(statements.TOKEN)
        if token != self._token:
            self._until = float("-inf")
            raise Fenced(
                f"{self._backend.place}: another sentinel took over "
                f"({_stored_lease(connection)}); this one stops"
            )
        self._lock_again(connection)
        if self._backend.term:
            expires = self._backend.expires(connection)[0]
            connection.run(statements.RENEW_LEASE, {"expires": expires})
        return int(last)

    def _lock(self, lease: Lease) -> None:
        session = self._session.reading if self._backend.needs_session else nullcontext
        with session() as connection:
            if self._locked_in == self._session.number:
                return
            if not self._backend.take(connection, lease):
                raise self._busy(connection)
            self._locked_in = self._session.number

    def _lock_again(self, connection: Connection) -> None:
        """A lock that ended with a lost session is taken anew as long as the token is ours."""
        if self._backend.needs_session and self._locked_in != self._session.number:
            if not self._backend.take(connection, self._lease):
                raise Unavailable(f"{self._backend.place}: a lost session still holds the lock")
            self._locked_in = self._session.number

    def _unlock(self) -> None:
        session = self._session.reading if self._backend.needs_session else nullcontext
        with session() as connection:
            self._backend.drop(connection)

    def _busy(self, connection: Connection | None) -> StoreBusy:
        stored = _stored_lease(connection) if connection is not None else Lease()
        holder = self._backend.holder(connection, stored)
        busy = StoreBusy(f"{self._backend.place}: another sentinel leads: {holder}")
        busy.since = holder.since
        return busy


Noun = TypeVar("Noun")
_ANY: Mapping[str, Any] = {}


def _outbox(connection: Connection) -> list[Outgoing]:
    """Unsent rows, oldest first."""
    return [_numbered(seq, body) for seq, body in connection.rows(statements.UNSENT)]


def _snapshot(connection: Connection) -> Snapshot:
    """All that a running sentinel needs."""
    memory = _bodies(connection, statements.MEMORY, Remembered)
    seq, token = connection.one(statements.LAST_SEQ)
    return Snapshot(
        alerts=tuple(_bodies(connection, statements.ALERTS, Alert)),
        runs=tuple(_bodies(connection, statements.RUNS, Run)),
        memory={remembered.check: remembered.memory for remembered in memory},
        outbox=tuple(_outbox(connection)),
        seq=seq,
        token=token,
    )


def _stored_lease(connection: Connection) -> Lease:
    """The lease that was written last; its holder may be gone."""
    return decode(connection.one(statements.LEASE)[0], Lease)


def _bodies(
    connection: Connection, statement: Statement, kind: type[Noun], wanted: Values = _ANY
) -> list[Noun]:
    return [decode(body, kind) for body in connection.column(statement, wanted)]


def _numbered(seq: int, body: str) -> Outgoing:
    return replace(decode(body, Outgoing), seq=seq)


def _outcome(text: str) -> Outcome | None:
    return decode(text, Outcome) if text else None
