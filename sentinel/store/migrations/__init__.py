"""The schema of the state: one numbered file a version and database, `0005.sqlite.sql`.

A new state runs all of them in order. A change of a table is a new pair of files and a higher
VERSION; a file that was released is never changed.
"""

import os
from collections.abc import Iterator

from sentinel.store.database import Connection, Dialect
from sentinel.store.statements import FORGET_SCHEMA_VERSION, NOTE_SCHEMA_VERSION

NEWEST_SCHEMA_VERSION = 5
"""That of the highest file."""

OLDEST_SCHEMA_VERSION = 5
"""Of older states none was ever released: they are not read."""

MIGRATIONS_DIR = os.path.dirname(__file__)


def migrate_schema(
    connection: Connection,
    stored: int,
    *,
    folder: str = MIGRATIONS_DIR,
    version: int = NEWEST_SCHEMA_VERSION,
) -> None:
    """Bring a state of version `stored` (0: empty) to `version`, within the caller's transaction.
    Raises OSError where a file of this package cannot be read."""
    for number in range(max(stored + 1, OLDEST_SCHEMA_VERSION), version + 1):
        connection.run_script(list(_read_statements(folder, number, connection.dialect)))
    connection.run(FORGET_SCHEMA_VERSION)
    connection.run(NOTE_SCHEMA_VERSION, {"version": version})


def _read_statements(folder: str, number: int, dialect: Dialect) -> Iterator[str]:
    """A statement ends with a semicolon at the end of a line."""
    path = os.path.join(folder, f"{number:04}.{dialect}.sql")
    with open(path, encoding="ascii") as file:
        lines = [line for line in file if not line.startswith("--")]
    yield from (text for text in "".join(lines).split(";\n") if text.strip())
