"""Inspects a state without changing it: which version wrote it, and whether this one can read
it."""

import os
from collections.abc import Mapping, Sequence
from contextlib import closing

from msgspec import Struct

from sentinel.store.backend import Backend
from sentinel.store.copies import open_read_only
from sentinel.store.database import Connection
from sentinel.store.migrations import NEWEST_SCHEMA_VERSION
from sentinel.store.opening import make_backend
from sentinel.store.rows import UnreadableRow, decode_stored
from sentinel.store.session import (
    read_schema_version,
    require_known_version,
    translate_driver_errors,
)
from sentinel.store.unreadable import AUDIT_ROWS, LIVE_ROWS, TableRows


class StateInspection(Struct, frozen=True):
    """What was found in a state. `version` 0: nothing is stored yet. `unreadable`: how many rows of
    each table cannot be read; `blocking`: those of them that keep every action from being done."""

    place: str  # The database's name for people.
    version: int
    rows: int  # How many rows it holds.
    unreadable: Mapping[str, int]
    blocking: Mapping[str, int] = {}

    @property
    def needs_migration(self) -> bool:
        """Whether the next service or pass changes the schema."""
        return 0 < self.version < NEWEST_SCHEMA_VERSION


def inspect_state(state: str) -> StateInspection:
    """Inspect the state. Raises StateVersionMismatch with the remedy, StateDamaged, and
    StateUnavailable."""
    backend = make_backend(state)
    with (
        translate_driver_errors(backend),
        closing(open_for_reading(backend)) as connection,
        connection.begin_transaction(),
    ):
        version, oldest = read_schema_version(connection)
        require_known_version(backend.place, version, oldest)
        rows, unreadable = _count_rows(connection, LIVE_ROWS) if version else (0, {})
        blocking = _count_rows(connection, AUDIT_ROWS)[1] if version else {}
    return StateInspection(backend.place, version, rows, unreadable, blocking)


def open_for_reading(backend: Backend) -> Connection:
    """A connection that changes nothing."""
    if backend.dialect == "postgresql":
        return backend.open_connection()
    driver = open_read_only(os.path.abspath(backend.place))
    driver.isolation_level = None
    return Connection(driver, "sqlite")


def _count_rows(connection: Connection, tables: Sequence[TableRows]) -> tuple[int, dict[str, int]]:
    """How many rows there are, and how many of them cannot be read, by the table's name."""
    count, unreadable = 0, dict[str, int]()
    for table in tables:
        for _, body in connection.fetch_rows(table.rows):
            count += 1
            try:
                decode_stored(body, table.noun)
            except UnreadableRow:
                unreadable[table.name] = unreadable.get(table.name, 0) + 1
    return count, unreadable
