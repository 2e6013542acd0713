"""Copies of a state in SQLite: made while the state is written, checked, and restored."""

import os
import sqlite3
from contextlib import closing

from sentinel.core.errors import StoreError
from sentinel.store.errors import PASSING_ERRNOS, StateUnavailable

ALL_PAGES = -1
"""The copy is made in one step. With several steps, each write of another process would restart
it."""


class CopyRefused(StoreError):
    """The copy would overwrite something, or its source is not a state."""

    exit_code = 73
    """EX_CANTCREAT of sysexits(3)."""


def copy_database(source: sqlite3.Connection, target: str) -> None:
    """Make an online copy that only its owner can read, complete or not at all. An earlier copy of
    that name is replaced.

    Raises StateUnavailable if it cannot be written, CopyRefused if it cannot be made, and
    sqlite3.Error."""
    from tempfile import TemporaryDirectory  # imports random, shutil and compression

    folder = os.path.dirname(target) or "."
    try:
        # SQLite opens files by name. In a new directory nobody else can have put a link under one
        # of these names.
        with TemporaryDirectory(dir=folder, prefix=".sentinel-copy-") as private:
            part = os.path.join(private, "copy")
            with closing(sqlite3.connect(part, isolation_level=None)) as copy:
                copy.execute("PRAGMA temp_store = MEMORY")
                source.backup(copy, pages=ALL_PAGES)
                copy.execute("PRAGMA journal_mode = delete")
            os.chmod(part, 0o600)
            require_sound(part)
            _sync_file(part)
            os.replace(part, target)
        _sync_file(folder)
    except (OSError, sqlite3.Error) as error:
        if isinstance(error, OSError) and error.errno not in PASSING_ERRNOS:
            raise CopyRefused(f"{target}: cannot be made: {error.strerror}") from error
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise StateUnavailable(f"{target}: no copy can be made: {why}") from error


def require_sound(path: str) -> None:
    """Raise CopyRefused for a file that is not an SQLite database, or a damaged one."""
    try:
        with closing(open_read_only(path)) as connection:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise CopyRefused(f"{path}: is no state of sentinel: {error}") from error
    if answer != "ok":
        raise CopyRefused(f"{path}: is damaged: {answer}")


def open_read_only(path: str) -> sqlite3.Connection:
    """A connection that cannot change the file. Raises sqlite3.Error."""
    from urllib.parse import quote  # imported only here, as in sqlite.py

    return sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)


def _sync_file(path: str) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
