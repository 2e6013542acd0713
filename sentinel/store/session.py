"""One connection, its transactions, and what happens when it fails."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from sqlalchemy import Connection, insert

from sentinel.core.clock import Instant
from sentinel.store import schema
from sentinel.store.backend import Backend
from sentinel.store.errors import Damaged, Unavailable
from sentinel.store.lease import Lease, iso
from sentinel.store.migrations import STEPS, Step, newest, refuse_newer, upgrade, version_of
from sentinel.store.rows import encode
from sentinel.store.translate import translated

PATIENCE = 30.0  # seconds one thread waits for another's transaction


class Session:
    """Opens at its first use and again after every failure. Threads take turns."""

    def __init__(self, backend: Backend, steps: Sequence[Step] = STEPS) -> None:
        self._backend = backend
        self._steps = steps
        self._turn = threading.RLock()
        self._connection: Connection | None = None
        self._seen = False
        self.number = 0  # of the connection in use: what a session held ends with it

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state; raises Unavailable, Damaged or TooNew."""
        with self._transaction(writing=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is the only writing one; all of it or nothing is kept."""
        with self._transaction(writing=True) as connection:
            self._backend.still_there()
            yield connection

    def reopen(self, now: Instant) -> str:
        """Set aside what is damaged and begin a new state; returns what a person must know."""
        with self._own_turn():
            self._disconnect()
            self._seen = False
            stamp = iso(now.wall).replace("-", "").replace(":", "")
            with translated(self._backend.place):
                aside = self._backend.set_aside(stamp)
            with self.reading():
                pass
        if not aside:
            return f"the state {self._backend.place} was removed; a new one was begun"
        return f"the state {self._backend.place} was damaged; it is kept as {aside}"

    def close(self) -> None:
        """Harmless when not open."""
        with self._own_turn():
            self._disconnect()
            self._backend.close()

    @contextmanager
    def _transaction(self, *, writing: bool) -> Iterator[Connection]:
        with self._own_turn():
            try:
                with translated(self._backend.place), self._begun(writing) as connection:
                    yield connection
            except (Unavailable, Damaged):
                self._disconnect()
                raise

    @contextmanager
    def _begun(self, writing: bool) -> Iterator[Connection]:
        if self._connection is None:
            self._connection = self._opened()
            self.number += 1
        connection = self._connection.execution_options(writing=writing)
        with connection.begin():
            yield connection

    @contextmanager
    def _own_turn(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=PATIENCE):
            raise Unavailable(f"{self._backend.place}: another thread has not finished with it")
        try:
            yield
        finally:
            self._turn.release()

    def _opened(self) -> Connection:
        connection = self._backend.connect()
        try:
            self._adopt(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _adopt(self, connection: Connection) -> None:
        with connection.begin():
            version = version_of(connection)
            refuse_newer(version, self._backend.place, self._steps)
        if self._seen and not version:
            raise Damaged(f"{self._backend.place}: damaged: its tables are gone")
        if version != newest(self._steps):
            self._bring_up_to_date(connection)
        self._seen = True

    def _bring_up_to_date(self, connection: Connection) -> None:
        with connection.execution_options(writing=True).begin():
            self._backend.guard(connection)
            version = version_of(connection)  # another process may have been first
            if version:
                upgrade(connection, version, self._steps)
                return
            schema.metadata.create_all(connection)
            connection.execute(insert(schema.schema_version), {"version": newest(self._steps)})
            first = {"id": 1, "token": 0, "seq": 0, "expires": 0, "body": encode(Lease())}
            connection.execute(insert(schema.leader), first)

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(Exception):  # it failed already; what matters is to be rid of it
                self._connection.invalidate()
                self._connection.close()
            self._connection = None
