"""A state directory: SQLite for the data, flock(2) for the lead."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from sentinel.core.errors import StoreBusy, StoreError
from sentinel.core.guidance import quote_command
from sentinel.store.copies import copy_database
from sentinel.store.database import Connection, Dialect
from sentinel.store.errors import (
    PASSING_ERRNOS,
    StateDamaged,
    StateRefused,
    StateUnavailable,
    Unstorable,
)
from sentinel.store.lease import DirectoryLock, Lease
from sentinel.store.locks import require_locks
from sentinel.store.mounts import has_room, is_copy_on_write, is_on_local_disk
from sentinel.trust import get_trusted_uids, is_of_writing_group

DATABASE_FILE = "sentinel.db"
BUSY_TIMEOUT_S = 10.0  # seconds a statement waits for another process's transaction
_SIDE_FILE_SUFFIXES = ("-wal", "-shm", "-journal")
_HEADER_BYTES = 100  # bytes: https://sqlite.org/fileformat.html#the_database_header
_NOT_WRITABLE_REMEDY = "make it writable (chown, chmod, mount) or set state: to another directory"
_JOURNAL_MODE_PRAGMAS = {
    "wal": "PRAGMA journal_mode = wal",
    "delete": "PRAGMA journal_mode = delete",
}
_SQUASHED_UID = 65534
"""The owner of what root writes on a network file system that takes root's rights away: exports(5)."""
_MIN_FREE_BYTES = 1 << 20  # with less free space in bytes, SQLite's shared memory may not fit


class SqliteBackend:
    """A database file in a directory of this user's own."""

    dialect: Dialect = "sqlite"
    driver_error: type[Exception] = sqlite3.Error
    needs_session = False
    term = 0.0

    def __init__(self, directory: str, local: bool | None = None) -> None:
        """`local`: whether the directory is on this host's own disk. None: find out."""
        self._directory = directory
        self.place = os.path.join(directory, DATABASE_FILE)
        self._lock = DirectoryLock(os.path.join(directory, "lock"))
        self._local, self._prepared = local, False
        self._inode: tuple[int, int] | None = None
        self._is_new = False  # whether this object created the file

    def prepare_place(self) -> None:
        if self._prepared:
            return
        _make_directory(self._directory)
        require_writable(self._directory)
        if self._local is None:
            self._local = is_on_local_disk(self._directory)
            if not self._local and not is_read_only(self._directory):
                require_locks(self._directory)
        self._prepared = True

    def open_connection(self) -> Connection:
        self.prepare_place()
        _require_known_owners(self.place)
        self._require_not_cut()
        self._is_new = self._is_new or not os.path.exists(self.place)
        _restrict_mode(self.place)
        connection = self._open_file()
        self._inode = _get_inode(self.place)
        return connection

    def classify_error(self, error: Exception, told: str) -> tuple[type[StoreError], str]:
        return classify_sqlite_error(error, told)

    def lock_schema(self, connection: Connection) -> None:
        """Do nothing: BEGIN IMMEDIATE has locked it."""

    @contextmanager
    def hold_for_migration(self, connection: Connection, stored: int) -> Iterator[None]:
        """Hold the lock, so that no older sentinel works on the state, and make a copy first."""
        held = self._lock.is_held
        if not self._lock.take_file_lock(Lease("a change of the schema")):
            raise StoreBusy(
                f"{self.place}: written by an older sentinel that still runs: "
                f"{self._lock.read_lease()}; end it, or start it again as this version"
            )
        try:
            copy_database(connection.driver, f"{self.place}.before-schema-{stored + 1}")
            yield
        finally:
            if not held:
                self._lock.drop_file_lock()

    def require_in_place(self) -> None:
        """Raise StateDamaged if the file was removed or replaced: a cleaner may do that while
        sentinel runs."""
        if _get_inode(self.place) != self._inode:
            raise StateDamaged(f"{self.place}: was removed or replaced while in use")

    def take_lock(self, connection: Connection | None, lease: Lease) -> bool:
        self.prepare_place()
        return self._lock.take_file_lock(lease)

    def drop_lock(self) -> None:
        self._lock.drop_file_lock()

    def get_lease_expiry(self, connection: Connection) -> tuple[int, bool]:
        return 0, True

    def end_expired_leader(self, connection: Connection) -> None:
        """Do nothing: the lock of a file ends with its process."""

    def find_holder(self, connection: Connection | None, stored: Lease) -> Lease:
        return self._lock.read_lease()

    def move_damaged_aside(self, stamp: str) -> str:
        """Move the file aside, and only under the lock: a command must not move the file of a
        running service. Raises StoreBusy."""
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        held = self._lock.is_held
        if not self._lock.take_file_lock(Lease("a repair")):
            raise StoreBusy(f"{self.place}: damaged; left to its leader: {self._lock.read_lease()}")
        try:
            return self.move_aside(f"{self.place}.damaged-{stamp}")
        finally:
            if not held:
                self._lock.drop_file_lock()

    def _require_not_cut(self) -> None:
        """Raise StateDamaged for a file that was cut. SQLite would take an empty file for a new
        one."""
        with suppress(FileNotFoundError):
            size = os.stat(self.place).st_size
            if size == 0 and not has_room(self.place):
                raise StateUnavailable(f"{self.place}: empty: no space is left on its file system")
            if 0 < size < _HEADER_BYTES or (size == 0 and self._lock.has_earlier_holder):
                raise StateDamaged(f"{self.place}: damaged: cut to {size} bytes")

    def clean_failed_start(self) -> None:
        """Remove a file that was made although nothing could be written: later it would look like
        one that was cut."""
        with suppress(OSError, StoreError):
            if not self._is_new or os.stat(self.place).st_size or has_room(self.place):
                return
            held = self._lock.is_held
            if self._lock.take_file_lock(Lease("a start on a full disk")):
                os.unlink(self.place)
                if not held:
                    self._lock.drop_file_lock()

    def move_aside(self, target: str) -> str:
        target, moved = _find_unused_path(target), False
        for suffix in ("", *_SIDE_FILE_SUFFIXES):
            with suppress(FileNotFoundError):
                os.rename(self.place + suffix, target + suffix)
                moved = True
        return target if moved else ""

    def _open_file(self) -> Connection:
        driver = self._connect_driver()
        try:
            with closing(driver.cursor()) as cursor:
                self._set_pragmas(cursor)
        except BaseException:
            driver.close()  # otherwise the traceback keeps it and its lock alive
            raise
        return Connection(driver, "sqlite")

    def _connect_driver(self) -> sqlite3.Connection:
        """Connect, read-only on a read-only file system. SQLite reads a write-ahead log there if
        one was left. If none was left, it cannot see that, and fails:
        https://sqlite.org/wal.html#read_only_databases"""
        name, read_only = self.place, is_read_only(self._directory)
        if read_only:
            from urllib.parse import quote

            how = "mode=ro" if _get_file_size(self.place + "-wal") else "immutable=1"
            name = f"file:{quote(self.place)}?{how}"
        return sqlite3.connect(
            name,
            uri=read_only,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )

    def _set_pragmas(self, cursor: sqlite3.Cursor) -> None:
        cursor.execute("PRAGMA temp_store = MEMORY")
        if is_read_only(self._directory):
            return
        wanted = "wal" if self._local and not is_copy_on_write(self._directory) else "delete"
        if self._local and _is_full(self._directory):
            # otherwise even reading needs free space
            cursor.execute("PRAGMA locking_mode = EXCLUSIVE")
        mode = cursor.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != wanted:
            mode = cursor.execute(_JOURNAL_MODE_PRAGMAS[wanted]).fetchone()[0]
        # Which data survive a power failure: https://sqlite.org/pragma.html#pragma_synchronous
        full = mode == "wal"
        cursor.execute("PRAGMA synchronous = FULL" if full else "PRAGMA synchronous = EXTRA")
        cursor.execute("PRAGMA journal_size_limit = 16777216")
        # Debian's SQLite overwrites each page that it frees. That writes deleted data once more.
        cursor.execute("PRAGMA secure_delete = FAST")


class InMemoryBackend(SqliteBackend):
    """An empty state that ends with its connection: for a command that finds no state."""

    def __init__(self) -> None:
        super().__init__("")
        self.place, self._prepared = "memory", True

    def open_connection(self) -> Connection:
        return self._open_file()

    def require_in_place(self) -> None:
        """Do nothing: there is no file that could be removed."""

    def _connect_driver(self) -> sqlite3.Connection:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    def _set_pragmas(self, cursor: sqlite3.Cursor) -> None:
        """Do nothing: no file is written."""


def _require_known_owners(place: str) -> None:
    """Raise StateRefused if somebody else has put the database there, or one of the files beside it
    from which SQLite reads changes: where others may write, they can replace each of them. Members
    of a group that alone may write there are only warned of (`doctor`), until the next release."""
    directory = os.path.dirname(place) or "."
    seen = os.stat(directory)
    known = {*get_trusted_uids(), seen.st_uid, _SQUASHED_UID}
    for path in (place, *(place + suffix for suffix in _SIDE_FILE_SUFFIXES)):
        with suppress(FileNotFoundError):
            owner = os.lstat(path).st_uid
            if owner not in known and not is_of_writing_group(owner, seen):
                raise StateRefused(
                    f"{path}: belongs to uid {owner}, who may have replaced it, so it is not used. "
                    f"Name that user in `trust`, or remove the file; let nobody else write there: "
                    f"{quote_command('chmod', 'go-w', directory)}"
                )


# Python has the name of an error only since 3.11. Before that, and for an incomplete schema, only
# the text of sqlite3_errstr() shows it.
_DAMAGE_NAMES = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_DAMAGE_WORDS = (
    "malformed",
    "not a database",
    "no such table",
    "no such column",
    "Could not decode",
)
_REFUSAL_ERRORS = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.ProgrammingError)


def classify_sqlite_error(error: Exception, told: str) -> tuple[type[StoreError], str]:
    """Classify an error as `Backend.classify_error` says, by SQLite's result code
    (https://sqlite.org/rescode.html)."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(_DAMAGE_NAMES) or any(words in told for words in _DAMAGE_WORDS):
        return StateDamaged, f"damaged: {told}"
    if name.startswith("SQLITE_READONLY") or "readonly database" in told:
        told += ": its file system is read-only"
    return (Unstorable if isinstance(error, _REFUSAL_ERRORS) else StateUnavailable), told


def _make_directory(directory: str) -> None:
    try:
        with suppress(FileNotFoundError):
            os.stat(directory)  # raises an error if the directory cannot be read
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except FileExistsError as error:
        raise StoreError(f"{directory}: is not a directory; set state: to one") from error
    except OSError as error:
        what = StateUnavailable if error.errno in PASSING_ERRNOS else StoreError
        raise what(
            f"{directory}: cannot be made: {error.strerror}; {_NOT_WRITABLE_REMEDY}"
        ) from error


def require_writable(directory: str) -> None:
    """Raise StateRefused if this user may not write the directory or its files. A file system that
    is read-only for everybody is not refused. Raises StateUnavailable if it cannot be looked at."""
    try:
        os.stat(directory)
        if is_read_only(directory):
            return
    except OSError as error:
        raise StateUnavailable(f"{directory}: {error.strerror}") from error
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        raise StateRefused(
            f"{directory}: not writable by uid {os.geteuid()}; {_NOT_WRITABLE_REMEDY}"
        )
    for name in (DATABASE_FILE, "lock"):
        path = os.path.join(directory, name)
        if os.path.islink(path) and os.lstat(path).st_uid not in get_trusted_uids():
            raise StateRefused(
                f"{path}: is a link of another user, and may lead anywhere; remove it"
            )
        if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
            raise StateRefused(
                f"{path}: not writable by uid {os.geteuid()}; {_NOT_WRITABLE_REMEDY}"
            )


def is_read_only(directory: str) -> bool:
    """Whether the file system was mounted read-only, or remounted so after an error."""
    return bool(os.statvfs(directory).f_flag & os.ST_RDONLY)


def _get_file_size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _restrict_mode(place: str) -> None:
    """Set mode 0600, whatever the directory and the umask allow, also on files that an older
    version made.

    SQLite gives the files beside a database its mode (findCreateFileMode in its os_unix.c). The
    descriptor neither reads nor writes: closing such a one would end the locks that this process
    has on the file (https://sqlite.org/howtocorrupt.html, 2.2)."""
    with suppress(FileExistsError):
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for suffix in ("", *_SIDE_FILE_SUFFIXES):
        with suppress(FileNotFoundError):
            file = os.open(place + suffix, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                seen = os.fstat(file)
                open_to_others = stat.S_ISREG(seen.st_mode) and seen.st_mode & 0o077
                if open_to_others and seen.st_uid == os.geteuid():
                    os.chmod(f"/proc/self/fd/{file}", 0o600)
            finally:
                os.close(file)


def _get_inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _is_full(directory: str) -> bool:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize < _MIN_FREE_BYTES


def _find_unused_path(path: str) -> str:
    taken = (f"{path}-{n}" if n else path for n in range(10_000))
    return next(p for p in taken if not os.path.exists(p))
