"""Finds out whether locks of a file system hold back other processes, also those of other nodes.

SQLite needs POSIX locks, leadership needs flock(2). If a network file system grants both to
everybody, or only within one node, two sentinels would lead at once: so sentinel does not start."""

import errno
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from fcntl import F_OFD_SETLK, F_WRLCK, LOCK_EX, LOCK_NB, fcntl, flock

from sentinel.core.errors import StoreError
from sentinel.core.mounts import Mount
from sentinel.proc.mounts import find_mount
from sentinel.store.errors import PASSING_ERRNOS, StateUnavailable

NO_LOCKS_REMEDY = "set state: to a directory on another file system, or to a postgresql:// URL"

# mount.lustre(8): localflock works only within one node, and without flock there are no locks.
# nfs(5): with nolock and local_lock, locks are local to this node.
_LOCAL_LOCK_OPTIONS = {
    "lustre": {"localflock": "-o flock"},
    "nfs": {
        "nolock": "-o lock",
        "local_lock=all": "-o local_lock=none",
        "local_lock=flock": "-o local_lock=none",
        "local_lock=posix": "-o local_lock=none",
    },
}


def require_locks(directory: str) -> None:
    """Raise StoreError with the remedy if locks do not work in a directory that other hosts may
    share."""
    with suppress(OSError, ValueError):
        if mount := find_mount(directory):
            refuse_local_locks(directory, mount)
    try:
        _try_both_locks(directory)
    except OSError as error:
        if error.errno in PASSING_ERRNOS:
            raise StateUnavailable(f"{directory}: {error.strerror}") from error
        raise StoreError(
            f"{directory}: this file system has no locks ({error.strerror}); {NO_LOCKS_REMEDY}"
        ) from error


def refuse_local_locks(directory: str, mount: Mount) -> None:
    """Raise StoreError for a mount whose locks other nodes do not see."""
    for option, remedy in _LOCAL_LOCK_OPTIONS.get(mount.type.rstrip("4"), {}).items():
        if option in mount.options | mount.super_options:
            raise StoreError(
                f"{directory}: mounted with {option}, so its locks hold on one node only; "
                f"mount it with {remedy}, or {NO_LOCKS_REMEDY}"
            )


def _try_both_locks(directory: str) -> None:
    """Try both kinds of locks on two open files, which stand for two processes. The name of the
    file is unique, so that another process does not remove it meanwhile."""
    from tempfile import mkstemp  # imports random, shutil and compression

    one, path = mkstemp(prefix=".lock-test-", dir=directory)
    two = one
    try:
        two = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        flock(one, LOCK_EX | LOCK_NB)
        _require_refusal(lambda: flock(two, LOCK_EX | LOCK_NB))
        _lock_posix(one)
        _require_refusal(lambda: _lock_posix(two))
    finally:
        with suppress(OSError):
            os.unlink(path)
        for file in {one, two}:
            os.close(file)


def _lock_posix(file: int) -> None:
    fcntl(file, F_OFD_SETLK, struct.pack("hhqqi4x", F_WRLCK, os.SEEK_SET, 0, 1, 0))


def _require_refusal(take: Callable[[], None]) -> None:
    try:
        take()
    except BlockingIOError:
        return
    raise OSError(errno.ENOLCK, "two processes get the same lock")
