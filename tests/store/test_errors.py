"""What follows from a driver's error."""

import inspect
import sqlite3
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from sentinel.core.errors import StoreError
from sentinel.store import postgres, sqlite
from sentinel.store.errors import StateDamaged, StateUnavailable, Unstorable

STATES = {
    kind.sqlstate: kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, psycopg.Error) and kind.sqlstate
}
UNSTORABLE = {"10", "20", "21", "22", "23", "26", "34", "3D", "3F", "42", "44", "P0"}


@pytest.mark.parametrize("state", STATES)
def test_what_follows_from_a_state_of_postgresql(state: str) -> None:
    """By its class; a table that is gone is damage, a right that is missing may be given."""
    wanted: type[StoreError] = Unstorable if state[:2] in UNSTORABLE else StateUnavailable
    wanted = {"42P01": StateDamaged, "42501": StateUnavailable}.get(state, wanted)
    kind, _ = postgres.classify_postgres_error(psycopg, STATES[state]("told"), "told")
    assert kind is wanted


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (psycopg.OperationalError("server closed the connection unexpectedly"), StateUnavailable),
        (psycopg.InterfaceError("the connection is closed"), StateUnavailable),
        (psycopg.InternalError("told"), StateUnavailable),
        (psycopg.NotSupportedError("told"), StateUnavailable),
        (psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"), Unstorable),
        (psycopg.ProgrammingError("cannot adapt type 'object'"), Unstorable),
        (psycopg.IntegrityError("told"), Unstorable),
    ],
)
def test_what_the_client_of_postgresql_finds(error: Exception, wanted: type[StoreError]) -> None:
    """It has no SQLSTATE."""
    assert postgres.classify_postgres_error(psycopg, error, str(error)) == (wanted, str(error))


def _full(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA max_page_count = 3")
    connection.execute("INSERT INTO t VALUES (2, randomblob(100000))")


def _corrupt(connection: sqlite3.Connection) -> None:
    (path,) = (row[2] for row in connection.execute("PRAGMA database_list"))
    connection.execute("PRAGMA cache_size = 0")
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    connection.execute("SELECT count(*), max(b) FROM t").fetchall()


def _busy(connection: sqlite3.Connection) -> None:
    (path,) = (row[2] for row in connection.execute("PRAGMA database_list"))
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        other.execute("BEGIN IMMEDIATE")
    finally:
        other.close()


def _read_only(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA query_only = 1")
    connection.execute("INSERT INTO t VALUES (3, '')")


SQLITE: list[tuple[Callable[[sqlite3.Connection], object], type[StoreError], str]] = [
    (_full, StateUnavailable, "database or disk is full"),
    (_busy, StateUnavailable, "database is locked"),
    (
        _read_only,
        StateUnavailable,
        "attempt to write a readonly database: its file system is read-only",
    ),
    (_corrupt, StateDamaged, "damaged: database disk image is malformed"),
    (lambda c: c.execute("SELECT * FROM gone"), StateDamaged, "damaged: no such table: gone"),
    (lambda c: c.execute("SELECT gone FROM t"), StateDamaged, "damaged: no such column: gone"),
    (lambda c: c.execute("INSERT INTO t VALUES (1, '')"), Unstorable, "UNIQUE constraint failed"),
    (
        lambda c: c.execute("SELECT zeroblob(2147483647)").fetchall(),
        Unstorable,
        "string or blob too big",
    ),
    (lambda c: c.execute("SELECT ?", ()), Unstorable, "Incorrect number of bindings"),
    (
        lambda c: c.execute("SELECT cast(x'ff' AS text)").fetchall(),
        StateDamaged,
        "damaged: Could not decode to UTF-8",
    ),
]


@pytest.mark.parametrize(
    ("how", "wanted", "told"), SQLITE, ids=[told.split(":")[-1].strip() for *_, told in SQLITE]
)
def test_what_follows_from_an_error_of_sqlite(
    tmp_path: Path, how: Callable[[sqlite3.Connection], object], wanted: type[StoreError], told: str
) -> None:
    """Each as the library raises it."""
    connection = sqlite3.connect(tmp_path / "file.db", isolation_level=None)
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    connection.execute("INSERT INTO t VALUES (1, randomblob(20000))")
    with pytest.raises(sqlite3.Error) as info:
        how(connection)
    connection.close()
    kind, why = sqlite.classify_sqlite_error(info.value, str(info.value))
    assert (kind, why[: len(told)]) == (wanted, told)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """Damage, whatever it is."""
    (tmp_path / "file.db").write_bytes(b"no database" * 100)
    connection = sqlite3.connect(tmp_path / "file.db")
    with pytest.raises(sqlite3.DatabaseError) as info:
        connection.execute("SELECT 1 FROM t")
    connection.close()
    assert sqlite.classify_sqlite_error(info.value, str(info.value))[0] is StateDamaged


def test_an_error_whose_name_python_does_not_know() -> None:
    """Before Python 3.11 only the words say what it is."""
    assert sqlite.classify_sqlite_error(
        sqlite3.DatabaseError("x"), "database disk image is malformed"
    )[0] is (StateDamaged)
    assert (
        sqlite.classify_sqlite_error(sqlite3.OperationalError("x"), "disk I/O error")[0]
        is StateUnavailable
    )
