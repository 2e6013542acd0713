"""The state in SQLite or PostgreSQL."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from sqlalchemy import Connection

from sentinel.alerting.silences import Ack, Orders, Silence
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Fenced, StoreBusy, StoreError
from sentinel.core.model import Alert, Batch, Outgoing, Receipt, Run, Sending, Transition
from sentinel.store import orders, queries, statements
from sentinel.store.backend import Backend
from sentinel.store.errors import Unavailable
from sentinel.store.lease import TRUSTED, Lease, boot_clock
from sentinel.store.migrations import STEPS, Step
from sentinel.store.retention import USUAL, Keep
from sentinel.store.rows import (
    Outcome,
    Remembered,
    Row,
    Rows,
    Snapshot,
    decode,
    digest,
    encode,
    given_up,
    numbers_after,
    rows_of,
    taken,
)
from sentinel.store.series import History
from sentinel.store.session import Session


class SqlStore:
    """core.ports.Store over SQLAlchemy Core; safe to use from several threads.

    It opens at its first use. Beyond the port's errors it raises those of store.errors.
    """

    def __init__(self, backend: Backend, keep: Keep = USUAL, steps: Sequence[Step] = STEPS) -> None:
        self._backend = backend
        self._keep = keep
        self._session = Session(backend, steps)
        self._inserts = statements.Inserts(backend.dialect)
        self._history = History(self._inserts)
        self._lease = Lease()
        self._token: int | None = None
        self._locked_in: int | None = None
        self._until = float("-inf")

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
        lease = Lease(holder, now.wall)
        self._lock(lease)
        self._history.forget_ids()
        began = boot_clock()
        with self._session.writing() as connection:
            token = int(connection.execute(statements.token).one().token)
            end, free = self._backend.expires(connection)
            if not free and token != self._token:
                raise StoreBusy(self._busy(connection))
            token += 1
            connection.execute(statements.grant, {"t": token, "e": end, "b": encode(lease)})
        self._lease, self._token = lease, token
        self._until = began + TRUSTED * self._backend.term
        return token

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
                connection.execute(statements.ungrant, {"b": encode(Lease())})
        with suppress(StoreError):
            self._unlock()
        self._lease, self._token, self._locked_in = Lease(), None, None
        self._until = float("-inf")

    def leader(self) -> str:
        with self._session.reading() as connection:
            return str(self._backend.holder(connection, queries.lease(connection)))

    # Reading

    def alerts(self) -> list[Alert]:
        with self._session.reading() as connection:
            return queries.alerts(connection)

    def runs(self) -> list[Run]:
        with self._session.reading() as connection:
            return queries.runs(connection)

    def memory(self, check: str) -> Mapping[str, Any]:
        with self._session.reading() as connection:
            body = connection.execute(statements.memory_of, {"k": digest(check)}).scalar()
            return decode(body, Remembered).memory if body is not None else {}

    def outbox(self) -> list[Outgoing]:
        with self._session.reading() as connection:
            return queries.outbox(connection)

    def snapshot(self) -> Snapshot:
        """All that a running sentinel needs, of one moment."""
        with self._session.reading() as connection:
            return queries.snapshot(connection)

    def history(self, limit: int = 100, alert: str = "") -> list[Transition]:
        with self._session.reading() as connection:
            return queries.transitions(connection, limit, alert)

    def deliveries(self, alert: str) -> list[queries.Delivery]:
        with self._session.reading() as connection:
            return queries.deliveries(connection, alert)

    def sendings(self, since: int) -> list[Sending]:
        with self._session.reading() as connection:
            return queries.sendings(connection, since)

    def samples(
        self, check: str, subject: str, name: str, since: int
    ) -> list[tuple[Instant, float]]:
        with self._session.reading() as connection:
            return self._history.read(connection, (check, subject, name), since)

    # Writing

    def commit(self, batch: Batch) -> None:
        rows = rows_of(batch)
        with self._leading() as (connection, last):
            _run(connection, statements.close_alert, rows.closed)
            _run(connection, self._inserts.alerts, rows.alerts)
            _run(connection, self._inserts.transitions, rows.transitions)
            _run(connection, self._inserts.memory, rows.memory)
            _run(connection, self._inserts.runs, rows.runs)
            self._enqueue(connection, rows, last)
            self._history.write(connection, rows.at, rows.samples)

    def sent(self, rows: Sequence[Outgoing], now: Instant, receipt: Receipt) -> None:
        self._finish(rows, taken(rows, now, receipt))

    def failed(self, rows: Sequence[Outgoing]) -> None:
        told = [{"s": row.seq, "b": encode(row)} for row in rows]
        with self._leading() as (connection, _):
            _run(connection, statements.retry, told)

    def dropped(self, rows: Sequence[Outgoing], now: Instant, why: str) -> None:
        self._finish([given_up(row, why) for row in rows], Outcome(now, False, why))

    def orders(self) -> Orders:
        with self._session.reading() as connection:
            return orders.read(connection)

    def silence(self, silence: Silence) -> None:
        with self._session.writing() as connection:
            orders.write(connection, orders.Order(silence=silence))

    def acknowledge(self, ack: Ack) -> None:
        with self._session.writing() as connection:
            orders.write(connection, orders.Order(ack=ack))

    def prune(self, now: Instant) -> None:
        keep, wall = self._keep, now.wall
        with self._leading() as (connection, _):
            orders.forget(connection, wall)
            connection.execute(statements.forget_sent, {"t": wall - keep.sent * SECOND})
            connection.execute(
                statements.forget_transitions, {"t": wall - keep.transitions * SECOND}
            )
            self._history.prune(connection, wall - keep.samples * SECOND)
            self._history.thin(connection, wall - keep.fine * SECOND)

    def _enqueue(self, connection: Connection, rows: Rows, last: int) -> None:
        if rows.outbox:
            numbers = numbers_after(last, (row["seq"] for row in rows.outbox))
            told = [{**row, "seq": n} for row, n in zip(rows.outbox, numbers, strict=True)]
            _run(connection, self._inserts.outbox, told)
            connection.execute(statements.counted, {"s": max(last, *numbers)})

    def _finish(self, rows: Iterable[Outgoing], outcome: Outcome) -> None:
        end = {"d": outcome.at.wall, "o": encode(outcome)}
        told = [{"s": row.seq, "b": encode(row), **end} for row in rows]
        with self._leading() as (connection, _):
            _run(connection, statements.finish, told)

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
        token, last = connection.execute(statements.token).one()
        if token != self._token:
            self._until = float("-inf")
            raise Fenced(
                f"{self._backend.place}: another sentinel took over "
                f"({queries.lease(connection)}); this one stops"
            )
        self._lock_again(connection)
        if self._backend.term:
            connection.execute(statements.renew, {"e": self._backend.expires(connection)[0]})
        return int(last)

    def _lock(self, lease: Lease) -> None:
        session = self._session.reading if self._backend.needs_session else nullcontext
        with session() as connection:
            if self._locked_in == self._session.number:
                return
            if not self._backend.take(connection, lease):
                raise StoreBusy(self._busy(connection))
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

    def _busy(self, connection: Connection | None) -> str:
        stored = queries.lease(connection) if connection is not None else Lease()
        holder = self._backend.holder(connection, stored)
        return f"{self._backend.place}: another sentinel leads: {holder}"


def _run(connection: Connection, statement: Any, rows: list[Row]) -> None:
    if rows:
        connection.execute(statement, rows)
