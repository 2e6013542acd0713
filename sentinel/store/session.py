"""One connection, its transactions, and what happens when it fails: a driver's errors as ours."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from sqlite3 import Error as SqliteError

from sqlalchemy import Connection, insert, inspect, select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NoResultFound, ProgrammingError

from sentinel.core.clock import Instant
from sentinel.core.errors import StoreError
from sentinel.core.text import visible
from sentinel.store import schema
from sentinel.store.backend import Backend
from sentinel.store.errors import Damaged, OtherVersion, Unavailable, Unstorable
from sentinel.store.lease import Lease, iso
from sentinel.store.rows import Unreadable, encode

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
            version = _version_of(connection)
        if self._seen and not version:
            raise Damaged(f"{self._backend.place}: damaged: its tables are gone")
        self._require_ours(version)
        if not version:
            self._create(connection)
        self._seen = True

    def _require_ours(self, version: int) -> None:
        if version not in (0, schema.VERSION):
            age = "a newer" if version > schema.VERSION else "an older"
            raise OtherVersion(
                f"{self._backend.place}: written by {age} sentinel: schema {version}, this one "
                f"knows {schema.VERSION}; install that one again or set another state:"
            )

    def _create(self, connection: Connection) -> None:
        with connection.execution_options(writing=True).begin():
            self._backend.guard(connection)
            if version := _version_of(connection):  # another process was first
                self._require_ours(version)
                return
            schema.metadata.create_all(connection)
            connection.execute(insert(schema.schema_version), {"version": schema.VERSION})
            first = {"id": 1, "token": 0, "seq": 0, "expires": 0, "body": encode(Lease())}
            connection.execute(insert(schema.leader), first)

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(Exception):  # it failed already; what matters is to be rid of it
                self._connection.invalidate()
                self._connection.close()
            self._connection = None


def _version_of(connection: Connection) -> int:
    """The version of the stored schema; 0 where nothing is stored yet."""
    if not inspect(connection).has_table("schema_version"):
        return 0
    return int(connection.execute(select(schema.schema_version.c.version)).scalar() or 0)


# sqlite3_errstr() of SQLITE_CORRUPT and SQLITE_NOTADB, and what half a schema looks like.
_SQLITE_DAMAGE = (
    "malformed",
    "not a database",
    "no such table",
    "no such column",
    "Could not decode",
)
# https://www.postgresql.org/docs/current/errcodes-appendix.html; what is corrupt inside the
# server is its administrator's to mend: Unavailable until then.
_UNDEFINED_TABLE, _INSUFFICIENT_PRIVILEGE = "42P01", "42501"


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Errors of drivers leave as StoreError, with the place and the driver's first line."""
    try:
        yield
    except (DBAPIError, SqliteError) as error:
        raise translate(error, place) from error
    except Unreadable as error:
        raise Damaged(f"{place}: damaged: {error}") from error
    except NoResultFound as error:
        raise Damaged(f"{place}: damaged: a row that is always there is missing") from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise Unstorable(f"{place}: {error}") from error
    except OSError as error:
        raise Unavailable(f"{place}: {error.strerror or error}") from error


def translate(error: Exception, place: str) -> StoreError:
    """The kind follows from what a person or sentinel would do about it."""
    cause = getattr(error, "orig", None) or error
    told = visible(str(cause).strip().split("\n")[0]) or type(cause).__name__
    state = getattr(cause, "sqlstate", None)
    if state == _UNDEFINED_TABLE or (state is None and any(w in told for w in _SQLITE_DAMAGE)):
        return Damaged(f"{place}: damaged: {told}")
    if "readonly database" in told:  # SQLITE_READONLY
        told += ": its file system is read-only"
    refused = isinstance(error, DataError | IntegrityError | ProgrammingError)
    if refused and state != _INSUFFICIENT_PRIVILEGE:
        return Unstorable(f"{place}: {told}")
    return Unavailable(f"{place}: {told}")
