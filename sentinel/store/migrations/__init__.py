"""The schema of the state: one numbered file per version and database, `0005.sqlite.sql`.

A new state runs all of them in order. A change of a table is a new pair of files and a higher
NEWEST_SCHEMA_VERSION; a file that was released is never changed. The first line of a file says
which older sentinels can go on with a changed state: `-- serves 6` means those that know schema 6.
Such files only add to what is there."""

import os
from collections.abc import Iterator

from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.store.database import Connection, Dialect
from sentinel.store.statements import FORGET_SCHEMA_VERSION, NOTE_SCHEMA_VERSION, SEARCH_SCHEMA

NEWEST_SCHEMA_VERSION = 8
"""The number of the highest file."""

OLDEST_SCHEMA_VERSION = 5
"""Older states were never released, so they are not read."""

MIGRATIONS_DIR = os.path.dirname(__file__)


def migrate_schema(
    connection: Connection,
    stored: int,
    *,
    folder: str = MIGRATIONS_DIR,
    version: int = NEWEST_SCHEMA_VERSION,
) -> None:
    """Bring a state of version `stored` (0: empty) to `version`, within the caller's transaction.
    Raises OSError if a file of this package cannot be read."""
    if connection.schema:
        connection.run(SEARCH_SCHEMA, {"schema": connection.schema})
    for number in range(max(stored + 1, OLDEST_SCHEMA_VERSION), version + 1):
        connection.run_script(list(_read_statements(folder, number, connection.dialect)))
    connection.run(FORGET_SCHEMA_VERSION)
    oldest = read_served_version(connection.dialect, folder=folder, version=version)
    connection.run(NOTE_SCHEMA_VERSION, {"version": version, "oldest": oldest})


def read_served_version(
    dialect: Dialect, *, folder: str = MIGRATIONS_DIR, version: int = NEWEST_SCHEMA_VERSION
) -> int:
    """The oldest schema whose sentinels can go on with a state of that version."""
    with open(_get_file_path(folder, version, dialect), encoding="ascii") as file:
        found = _SERVES_PATTERN.match(file.readline())
    return int(found[1]) if found else version


_SERVES_PATTERN = lazy_pattern(r"-- serves (\d+)$")


def _get_file_path(folder: str, number: int, dialect: Dialect) -> str:
    return os.path.join(folder, f"{number:04}.{dialect}.sql")


def _read_statements(folder: str, number: int, dialect: Dialect) -> Iterator[str]:
    """The statements of a file. A statement ends with a semicolon at the end of a line."""
    with open(_get_file_path(folder, number, dialect), encoding="ascii") as file:
        lines = [line for line in file if not line.startswith("--")]
    yield from (text for text in "".join(lines).split(";\n") if text.strip())
