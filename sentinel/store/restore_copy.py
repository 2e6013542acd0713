"""Replaces a state in SQLite by a copy."""

import os
import sqlite3
from contextlib import closing

from sentinel.core.clock import Instant
from sentinel.core.errors import StoreBusy
from sentinel.store.copies import copy_database, open_read_only, require_sound
from sentinel.store.database import Connection
from sentinel.store.lease import Lease, format_utc
from sentinel.store.restore_note import write_restore_note
from sentinel.store.session import read_schema_version, require_known_version
from sentinel.store.sqlite import SqliteBackend


def restore_state(directory: str, copy: str, now: Instant) -> str:
    """Replace the state by a copy. Returns the path where the former state is kept; empty if there
    was none.

    Raises CopyRefused if the copy is not a sound state, StateVersionMismatch, StoreBusy while a
    sentinel leads, and StateUnavailable for a full disk. Then nothing has changed."""
    require_sound(copy)
    backend = SqliteBackend(os.path.abspath(directory))
    backend.prepare_place()
    if not backend.take_lock(None, Lease("a restore", now.wall)):
        holder = backend.find_holder(None, Lease())
        raise StoreBusy(f"{backend.place}: a sentinel leads, end it first: {holder}")
    try:
        fresh = f"{backend.place}.restoring"
        with closing(open_read_only(copy)) as source:
            copy_database(source, fresh)
        _write_note(fresh, now)
        stamp = format_utc(now.wall).replace("-", "").replace(":", "")
        aside = backend.move_aside(f"{backend.place}.replaced-{stamp}")
        os.rename(fresh, backend.place)
        return aside
    finally:
        backend.drop_lock()


def _write_note(path: str, now: Instant) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as driver:
        connection = Connection(driver, "sqlite")
        with connection.begin_transaction(writing=True):
            require_known_version(path, *read_schema_version(connection))
            write_restore_note(connection, now)
