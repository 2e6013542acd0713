"""One connection, its transactions, and what happens when it fails: a driver's errors as ours."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sentinel.core.clock import Instant
from sentinel.core.text import visible
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.database import Connection, MissingRow
from sentinel.store.errors import StateDamaged, StateUnavailable, StateVersionMismatch, Unstorable
from sentinel.store.lease import format_utc
from sentinel.store.migrations import NEWEST_SCHEMA_VERSION, OLDEST_SCHEMA_VERSION, migrate_schema
from sentinel.store.rows import UnreadableRow

TURN_TIMEOUT_S = 30.0  # seconds one thread waits for another's transaction


class DatabaseSession:
    """Opens at its first use and again after every failure. Threads take turns."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._turn = threading.RLock()
        self._connection: Connection | None = None
        self._seen = False
        self.number = 0  # of the connection in use: what a session held ends with it

    @contextmanager
    def read_transaction(self) -> Iterator[Connection]:
        """A transaction that sees one state; raises StateUnavailable, StateDamaged or StateVersionMismatch."""
        with self._checked_transaction(writing=False) as connection:
            yield connection

    @contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """A transaction that is the only writing one; all of it or nothing is kept."""
        with self._checked_transaction(writing=True) as connection:
            self._backend.require_in_place()
            yield connection

    def reopen_empty(self, now: Instant) -> str:
        """Set aside what is damaged and begin a new state; returns what a person must know."""
        with self._take_turn():
            self._disconnect()
            self._seen = False
            stamp = format_utc(now.wall).replace("-", "").replace(":", "")
            with translate_driver_errors(self._backend):
                aside = self._backend.move_damaged_aside(stamp)
            with self.read_transaction():
                pass
        if not aside:
            return f"the state {self._backend.place} was removed; a new one was begun"
        return f"the state {self._backend.place} was damaged; it is kept as {aside}"

    def close(self) -> None:
        """Harmless when not open."""
        with self._take_turn():
            self._disconnect()

    @contextmanager
    def _checked_transaction(self, *, writing: bool) -> Iterator[Connection]:
        with self._take_turn():
            try:
                with (
                    translate_driver_errors(self._backend),
                    self._begin_transaction(writing) as connection,
                ):
                    yield connection
            except (StateUnavailable, StateDamaged):
                self._disconnect()
                raise

    @contextmanager
    def _begin_transaction(self, writing: bool) -> Iterator[Connection]:
        if self._connection is None:
            self._connection = self._open_checked()
            self.number += 1
        with self._connection.begin_transaction(writing=writing) as connection:
            yield connection

    @contextmanager
    def _take_turn(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=TURN_TIMEOUT_S):
            raise StateUnavailable(
                f"{self._backend.place}: another thread has not finished with it"
            )
        try:
            yield
        finally:
            self._turn.release()

    def _open_checked(self) -> Connection:
        connection = self._backend.open_connection()
        try:
            self._check_schema(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_schema(self, connection: Connection) -> None:
        with connection.begin_transaction():
            version = _read_schema_version(connection)
        if self._seen and not version:
            raise StateDamaged(f"{self._backend.place}: damaged: its tables are gone")
        self._require_known_version(version)
        if version != NEWEST_SCHEMA_VERSION:
            self._upgrade_schema(connection)
        self._seen = True

    def _require_known_version(self, version: int) -> None:
        if version and not OLDEST_SCHEMA_VERSION <= version <= NEWEST_SCHEMA_VERSION:
            age = "a newer" if version > NEWEST_SCHEMA_VERSION else "an older"
            raise StateVersionMismatch(
                f"{self._backend.place}: written by {age} sentinel: schema {version}, this one "
                f"knows {NEWEST_SCHEMA_VERSION}; install that one again or set another state:"
            )

    def _upgrade_schema(self, connection: Connection) -> None:
        """Create the tables, or bring them to this version: all of it or nothing."""
        with connection.begin_transaction(writing=True):
            self._backend.lock_schema(connection)
            version = _read_schema_version(connection)  # another process may have been first
            self._require_known_version(version)
            if version != NEWEST_SCHEMA_VERSION:
                migrate_schema(connection, version)

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(Exception):  # it failed already; what matters is to be rid of it
                self._connection.close()
            self._connection = None


def _read_schema_version(connection: Connection) -> int:
    """The version of the stored schema; 0 where nothing is stored yet."""
    if connection.fetch_first(statements.HAS_SCHEMA) is None:
        return 0
    return int(connection.fetch_value(statements.SCHEMA_VERSION) or 0)


@contextmanager
def translate_driver_errors(backend: Backend) -> Iterator[None]:
    """Errors of drivers leave as StoreError, with the place and the driver's first line."""
    place = backend.place
    try:
        yield
    except backend.driver_error as error:
        told = visible(str(error).strip().split("\n")[0]) or type(error).__name__
        kind, why = backend.classify_error(error, told)
        raise kind(f"{place}: {why}") from error
    except (UnreadableRow, MissingRow) as error:
        raise StateDamaged(f"{place}: damaged: {error}") from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise Unstorable(f"{place}: {error}") from error
    except OSError as error:
        raise StateUnavailable(f"{place}: {error.strerror or error}") from error
