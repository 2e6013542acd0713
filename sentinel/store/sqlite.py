"""A state directory: SQLite for the data, flock for who leads."""

import os
import stat
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from sentinel.core.errors import StoreBusy
from sentinel.store.errors import Damaged
from sentinel.store.lease import DirectoryLock, Lease
from sentinel.store.mounts import is_local

FILE = "sentinel.db"
BUSY = 10.0  # seconds a statement waits for another process's transaction
_BESIDE = ("-wal", "-shm", "-journal")
_HEADER = 100  # bytes: https://sqlite.org/fileformat.html#the_database_header
_FULL = 1 << 20  # bytes free below which SQLite's shared memory may not fit


class SqliteBackend:
    """The database file in a directory of this user's own."""

    dialect = "sqlite"
    needs_session = False
    term = 0.0

    def __init__(self, directory: str, local: bool | None = None) -> None:
        """`local`: whether the directory is on this host's own disk; None: look."""
        self._directory = directory
        self.place = os.path.join(directory, FILE)
        self._lock = DirectoryLock(os.path.join(directory, "lock"))
        local = is_local(directory) if local is None else local
        self._journal = "wal" if local else "delete"
        self._inode: tuple[int, int] | None = None
        url = URL.create("sqlite", database=self.place)
        arguments = {"isolation_level": None, "timeout": BUSY, "check_same_thread": False}
        self._engine = create_engine(url, poolclass=NullPool, connect_args=arguments)
        event.listen(self._engine, "connect", self._configure)
        event.listen(self._engine, "begin", _begin)

    def connect(self) -> Connection:
        self._require_whole()
        _close_to_others(self.place)
        connection = self._engine.connect()
        self._inode = _inode(self.place)
        return connection

    def guard(self, connection: Connection) -> None:
        """BEGIN IMMEDIATE did it."""

    def still_there(self) -> None:
        """A state directory may be cleaned up under a running sentinel."""
        if _inode(self.place) != self._inode:
            raise Damaged(f"{self.place}: was removed or replaced while in use")

    def take(self, connection: Connection | None, lease: Lease) -> bool:
        return self._lock.take(lease)

    def drop(self, connection: Connection | None) -> None:
        self._lock.drop()

    def expires(self, connection: Connection) -> tuple[int, bool]:
        return 0, True

    def holder(self, connection: Connection | None, stored: Lease) -> Lease:
        return self._lock.lease()

    def set_aside(self, stamp: str) -> str:
        """Only under the lock: a command must not move the file of a running service."""
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        held = self._lock.held
        if not self._lock.take(Lease("a repair")):
            raise StoreBusy(f"{self.place}: damaged; left to its leader: {self._lock.lease()}")
        try:
            return self._move(f"{self.place}.damaged-{stamp}")
        finally:
            if not held:
                self._lock.drop()

    def _require_whole(self) -> None:
        """SQLite takes a file that was cut to nothing for a new one."""
        with suppress(FileNotFoundError):
            size = os.stat(self.place).st_size
            if 0 < size < _HEADER or (size == 0 and self._lock.taken_before):
                raise Damaged(f"{self.place}: damaged: cut to {size} bytes")

    def close(self) -> None:
        self._engine.dispose()

    def _move(self, target: str) -> str:
        target, moved = _unused(target), False
        for suffix in ("", *_BESIDE):
            with suppress(FileNotFoundError):
                os.rename(self.place + suffix, target + suffix)
                moved = True
        return target if moved else ""

    def _configure(self, connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        try:
            self._set_pragmas(cursor)
        except BaseException:
            cursor.close()  # else the connection lives on in the traceback and keeps its lock
            connection.close()
            raise
        cursor.close()

    def _set_pragmas(self, cursor: Any) -> None:
        if self._journal == "wal" and _is_full(self._directory):
            cursor.execute("PRAGMA locking_mode = EXCLUSIVE")  # else even reading needs space
        mode = cursor.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != self._journal:
            mode = cursor.execute(f"PRAGMA journal_mode = {self._journal}").fetchone()[0]
        # What survives a power cut: https://sqlite.org/pragma.html#pragma_synchronous
        cursor.execute(f"PRAGMA synchronous = {'FULL' if mode == 'wal' else 'EXTRA'}")
        cursor.execute("PRAGMA temp_store = MEMORY")
        cursor.execute("PRAGMA journal_size_limit = 16777216")


def _close_to_others(place: str) -> None:
    """Mode 0600, whatever the directory and the umask allow, also of what an older version made.
    SQLite gives the files beside a database its mode (findCreateFileMode in its os_unix.c).

    Never by a descriptor that reads or writes: its close would end the locks that this process
    has on the file (https://sqlite.org/howtocorrupt.html, 2.2).
    """
    with suppress(FileExistsError):
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for suffix in ("", *_BESIDE):
        with suppress(FileNotFoundError):
            file = os.open(place + suffix, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                seen = os.fstat(file)
                open_to_others = stat.S_ISREG(seen.st_mode) and seen.st_mode & 0o077
                if open_to_others and seen.st_uid == os.geteuid():
                    os.chmod(f"/proc/self/fd/{file}", 0o600)
            finally:
                os.close(file)


def _begin(connection: Connection) -> None:
    """Writers take the lock first: a read that becomes a write fails where it cannot wait."""
    writing = connection.get_execution_options().get("writing")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _is_full(directory: str) -> bool:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize < _FULL


def _unused(path: str) -> str:
    taken = (f"{path}-{n}" if n else path for n in range(10_000))
    return next(p for p in taken if not os.path.exists(p))
