"""One connection, its transactions, and what happens when it fails: a driver's errors as ours."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sentinel.core.clock import Instant
from sentinel.core.text import visible
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.database import Connection, MissingRow
from sentinel.store.errors import Damaged, OtherVersion, Unavailable, Unstorable
from sentinel.store.lease import iso
from sentinel.store.migrations import OLDEST, VERSION, migrate
from sentinel.store.rows import Unreadable

PATIENCE = 30.0  # seconds one thread waits for another's transaction


class Session:
    """Opens at its first use and again after every failure. Threads take turns."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._turn = threading.RLock()
        self._connection: Connection | None = None
        self._seen = False
        self.number = 0  # of the connection in use: what a session held ends with it

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state; raises Unavailable, Damaged or OtherVersion."""
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
            with translated(self._backend):
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

    @contextmanager
    def _transaction(self, *, writing: bool) -> Iterator[Connection]:
        with self._own_turn():
            try:
                with translated(self._backend), self._begun(writing) as connection:
                    yield connection
            except (Unavailable, Damaged):
                self._disconnect()
                raise

    @contextmanager
    def _begun(self, writing: bool) -> Iterator[Connection]:
        if self._connection is None:
            self._connection = self._opened()
            self.number += 1
        with self._connection.transaction(writing=writing) as connection:
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
        with connection.transaction():
            version = _stored_version(connection)
        if self._seen and not version:
            raise Damaged(f"{self._backend.place}: damaged: its tables are gone")
        self._require_known(version)
        if version != VERSION:
            self._upgrade(connection)
        self._seen = True

    def _require_known(self, version: int) -> None:
        if version and not OLDEST <= version <= VERSION:
            age = "a newer" if version > VERSION else "an older"
            raise OtherVersion(
                f"{self._backend.place}: written by {age} sentinel: schema {version}, this one "
                f"knows {VERSION}; install that one again or set another state:"
            )

    def _upgrade(self, connection: Connection) -> None:
        """Create the tables, or bring them to this version: all of it or nothing."""
        with connection.transaction(writing=True):
            self._backend.guard(connection)
            version = _stored_version(connection)  # another process may have been first
            self._require_known(version)
            if version != VERSION:
                migrate(connection, version)

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(Exception):  # it failed already; what matters is to be rid of it
                self._connection.close()
            self._connection = None


def _stored_version(connection: Connection) -> int:
    """The version of the stored schema; 0 where nothing is stored yet."""
    if connection.first(statements.HAS_SCHEMA) is None:
        return 0
    return int(connection.value(statements.SCHEMA_VERSION) or 0)


@contextmanager
def translated(backend: Backend) -> Iterator[None]:
    """Errors of drivers leave as StoreError, with the place and the driver's first line."""
    place = backend.place
    try:
        yield
    except backend.driver_error as error:
        told = visible(str(error).strip().split("\n")[0]) or type(error).__name__
        kind, why = backend.classify(error, told)
        raise kind(f"{place}: {why}") from error
    except (Unreadable, MissingRow) as error:
        raise Damaged(f"{place}: damaged: {error}") from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise Unstorable(f"{place}: {error}") from error
    except OSError as error:
        raise Unavailable(f"{place}: {error.strerror or error}") from error
