"""Who leads, in words, and a lock of the kernel for the one leader of a state directory. The lock
ends with the process that holds it."""

import errno
import fcntl
import os
import time
from contextlib import suppress
from datetime import datetime, timezone

from msgspec import Struct

from sentinel.core.clock import SECOND
from sentinel.core.errors import StoreError
from sentinel.core.text import visible
from sentinel.store.errors import StateRefused, StateUnavailable
from sentinel.store.rows import UnreadableRow, decode_stored, encode_stored

LEASE_TERM_S = 30.0
"""Seconds that a lease lasts without being renewed; only a leader without a lock of the kernel
needs one."""

TRUSTED_TERM_SHARE = 0.9
"""The share of the term that its holder counts on: clocks of two hosts differ a little in speed."""


class Lease(Struct, frozen=True):
    """The holder of a state and since when (µs UTC)."""

    holder: str = ""  # Who leads.
    since: int = 0  # Since when, microseconds UTC.

    def __str__(self) -> str:
        since = f" since {format_utc(self.since)}" if self.since else ""
        return f"{visible(self.holder)}{since}" if self.holder else ""


UNKNOWN_LEASE = Lease("a sentinel whose name cannot be read")
"""Stands for a leader, present or past, whose name cannot be read."""


def read_boot_clock() -> float:
    """Seconds that also go on while the machine or this process sleeps (clock_gettime(2))."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def get_host_name() -> str:
    """The name of this host, by which leaders of two hosts are told apart."""
    return os.uname().nodename


def format_utc(wall: int) -> str:
    """Microseconds UTC as `2026-10-18T03:15:00Z`."""
    moment = datetime.fromtimestamp(wall // SECOND, tz=timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


LOCK_TIMEOUT_S = 0.5  # seconds; another process may hold the lock for a moment to read the holder
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
"""O_NOFOLLOW: the file's text is replaced, so in another user's directory a link would make root
overwrite another file."""
_NO_LOCK_ERRNOS = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK}


class DirectoryLock:
    """A flock(2) on a file. Its content names the holder, for a process that finds it taken."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._file is not None

    @property
    def has_earlier_holder(self) -> bool:
        """Whether anybody else ever held it: another process, or an earlier one."""
        return not self.is_held and os.path.exists(self._path)

    def take_file_lock(self, lease: Lease) -> bool:
        """Try to take the lock. Returns whether this process has it. Raises StoreError if the file
        system has no locks."""
        if self._file is not None and not self._is_same_file(self._file):
            os.close(self._file)  # a cleaner removed the file, so this lock protects nothing
            self._file = None
        if self._file is None:
            self._file = self._lock_within(LOCK_TIMEOUT_S)
        if self._file is None:
            return False
        self._write_holder(encode_stored(lease))
        return True

    def drop_file_lock(self) -> None:
        """Release the lock; harmless if it is not held."""
        if self._file is not None:
            self._write_holder("")
            os.close(self._file)
            self._file = None

    def read_lease(self) -> Lease:
        """The lease of the lock's holder, which may be this object; an empty one if nobody holds
        it."""
        with suppress(FileNotFoundError):
            file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return (
                    Lease()
                    if not self.is_held and _try_flock(file, fcntl.LOCK_SH)
                    else _decode_lease(file)
                )
            finally:
                os.close(file)
        return Lease()

    def _lock_within(self, seconds: float) -> int | None:
        deadline = time.monotonic() + seconds
        while (file := self._try_open_lock()) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return file

    def _try_open_lock(self) -> int | None:
        try:
            file = self._open_lock_file()
        except OSError as error:
            raise StateUnavailable(f"{self._path}: cannot be opened: {error.strerror}") from error
        try:
            if _try_flock(file, fcntl.LOCK_EX) and self._is_same_file(file):
                return file
        except OSError as error:
            os.close(file)
            raise self._explain_lock_error(error) from error
        os.close(file)
        return None

    def _open_lock_file(self) -> int:
        try:
            file = os.open(self._path, _LOCK_FLAGS, 0o600)
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
        else:
            if os.fstat(file).st_nlink <= 1:
                return file
            os.close(file)
            raise StateRefused(
                f"{self._path}: has a second name, and its text is replaced: remove it"
            )
        return os.open(
            self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        )  # flock needs nothing more

    def _is_same_file(self, file: int) -> bool:
        """Whether the open file is still at its path: a cleaner may have removed it between open
        and flock."""
        try:
            return os.path.samestat(os.fstat(file), os.stat(self._path))
        except FileNotFoundError:
            return False

    def _write_holder(self, text: str) -> None:
        """Write the holder's name for others to read. On a full disk the lock counts without it."""
        with suppress(OSError):
            assert self._file is not None
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, text.encode(), 0)

    def _explain_lock_error(self, error: OSError) -> StoreError:
        if error.errno in _NO_LOCK_ERRNOS:
            return StoreError(
                f"{self._path}: this file system has no locks ({error.strerror}); "
                "set state: to a directory on another one, or to a postgresql:// URL"
            )
        return StoreError(f"{self._path}: cannot be locked: {error.strerror}")


def _try_flock(file: int, mode: int) -> bool:
    try:
        fcntl.flock(file, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _decode_lease(file: int) -> Lease:
    try:
        return decode_stored(os.pread(file, 65536, 0).decode("utf-8", "replace"), Lease)
    except UnreadableRow:
        return UNKNOWN_LEASE
