"""One database connection and its transactions; errors of the driver are raised as StoreError."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sentinel.core.clock import Instant
from sentinel.core.text import shorten_to_line
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.database import Connection, MissingRow
from sentinel.store.errors import (
    ExcessiveAnswer,
    StateDamaged,
    StateUnavailable,
    StateVersionMismatch,
    Unstorable,
)
from sentinel.store.lease import format_utc
from sentinel.store.migrations import NEWEST_SCHEMA_VERSION, OLDEST_SCHEMA_VERSION, migrate_schema
from sentinel.store.rows import UnreadableRow

MAX_ERROR_CHARS = 500  # characters of a driver's error: a place and its reason
TURN_TIMEOUT_S = 30.0  # seconds that a thread waits for the transaction of another


class DatabaseSession:
    """A connection that opens at its first use, and again after every failure. Threads take
    turns."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._turn = threading.RLock()
        self._connection: Connection | None = None
        self._seen = False
        self.number = 0  # number of the current connection; locks of a session end with it

    @contextmanager
    def read_transaction(self) -> Iterator[Connection]:
        """A transaction that sees the state of one moment. Raises StateUnavailable, StateDamaged or
        StateVersionMismatch."""
        with self._checked_transaction(writing=False) as connection:
            yield connection

    @contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """The only writing transaction at that time: all of it is kept, or nothing."""
        with self._checked_transaction(writing=True) as connection:
            self._backend.require_in_place()
            yield connection

    def reopen_empty(self, now: Instant) -> str:
        """Set a damaged state aside and begin a new one. Returns the notice for people."""
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
        """Close the connection; harmless if it is not open."""
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
        if self._connection is not None and self._connection.is_worn_out:
            self._disconnect()
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
        try:
            connection = self._backend.open_connection()
            try:
                self._check_schema(connection)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            self._backend.clean_failed_start()
            raise
        return connection

    def _check_schema(self, connection: Connection) -> None:
        with connection.begin_transaction():
            version, oldest = read_schema_version(connection)
        if self._seen and not version:
            raise StateDamaged(f"{self._backend.place}: damaged: its tables are gone")
        require_known_version(self._backend.place, version, oldest)
        if version and version < NEWEST_SCHEMA_VERSION:
            with self._backend.hold_for_migration(connection, version):
                self._upgrade_schema(connection)
        elif not version:
            self._upgrade_schema(connection)
        self._seen = True

    def _upgrade_schema(self, connection: Connection) -> None:
        """Create the tables, or upgrade them to this version, completely or not at all."""
        with connection.begin_transaction(writing=True):
            self._backend.lock_schema(connection)
            version, oldest = read_schema_version(connection)  # another process may have been first
            require_known_version(self._backend.place, version, oldest)
            if version < NEWEST_SCHEMA_VERSION:
                migrate_schema(connection, version)

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(Exception):  # it has failed already, and only needs to be closed
                self._connection.close()
            self._connection = None


def read_schema_version(connection: Connection) -> tuple[int, int]:
    """The version of the stored schema, and the oldest version that can go on with it; each is 0 if
    it is not stored."""
    if connection.fetch_first(statements.HAS_SCHEMA, {"schema": connection.schema}) is None:
        return 0, 0
    version, *oldest = connection.fetch_first(statements.SCHEMA_VERSION) or (0,)
    return int(version), int(oldest[0]) if oldest else 0


def require_known_version(place: str, version: int, oldest: int) -> None:
    """Raise StateVersionMismatch if this sentinel must not use the state. A newer state says which
    older versions can go on with it. `version` 0: nothing is stored yet."""
    is_newer = version > NEWEST_SCHEMA_VERSION
    serves = 0 < oldest <= NEWEST_SCHEMA_VERSION if is_newer else version >= OLDEST_SCHEMA_VERSION
    if version and not serves:
        raise StateVersionMismatch(
            f"{place}: written by {'a newer' if is_newer else 'an older'} sentinel: schema {version}, "
            f"this one knows {NEWEST_SCHEMA_VERSION}; install that one again or set another state:"
        )


@contextmanager
def translate_driver_errors(backend: Backend) -> Iterator[None]:
    """Raise errors of the driver as StoreError, with the place and the first line of the error."""
    place = backend.place
    try:
        yield
    except backend.driver_error as error:
        first, _, _ = (
            str(error).strip().partition("\n")
        )  # a server's error may have 30,000 characters
        told = shorten_to_line(first, MAX_ERROR_CHARS) or type(error).__name__
        kind, why = backend.classify_error(error, told)
        raise kind(f"{place}: {why}") from error
    except ExcessiveAnswer as error:
        raise ExcessiveAnswer(f"{place}: {error}") from error
    except (UnreadableRow, MissingRow) as error:
        raise StateDamaged(f"{place}: damaged: {error}") from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise Unstorable(f"{place}: {error}") from error
    except OSError as error:
        raise StateUnavailable(f"{place}: {error.strerror or error}") from error
