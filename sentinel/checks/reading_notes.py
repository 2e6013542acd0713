"""Records which log is being read, in a place that outlives the process.

While sentinel reads a log, it may be killed, because the log takes too much memory or because a
person sends SIGKILL. Without a record, the same log would get it killed again after each start. So
while a log is read, its path is in a small file in this host's memory (`/run`, `/dev/shm`). The
next process does not read that log for some time. Each process holds a lock on its own file. A file
without a lock belongs to a process that is gone.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import time
from _thread import allocate_lock
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_PREFIX = "reading-"
_MAX_PATH_BYTES, _MAX_NOTE_BYTES = 4096, 1 << 20


class _OpenNote:
    """The file of this process. -1 if none could be created."""

    descriptor = -1


_being_read: list[str] = []
_lock = allocate_lock()


def begin_notes(folder: str, keep_s: float) -> list[tuple[str, float]]:
    """The logs that processes were reading when they were killed, with the age of each record in
    seconds, at most `keep_s`. Older records are removed.

    From now on, this process has its own record. The records are in a directory that only this user
    owns. Raises OSError if that is impossible.
    """
    found = list[tuple[str, float]]()
    for name in sorted(os.listdir(folder)):
        if name.startswith(_PREFIX):
            found += _read_left_note(os.path.join(folder, name), keep_s)
    _open_own_note(folder)
    return found


@contextmanager
def note_reading(path: str) -> Iterator[None]:
    """Record that this log is being read, maybe beside others in other threads. If this fails, the
    log is still read."""
    _write_note(_being_read.append, path)
    try:
        yield
    finally:
        _write_note(_being_read.remove, path)


def _write_note(change: Callable[[str], None], path: str) -> None:
    with _lock:
        change(path)
        if (note := _OpenNote.descriptor) < 0:
            return
        data = b"\0".join(os.fsencode(one)[:_MAX_PATH_BYTES] for one in _being_read)
        with suppress(OSError):
            os.pwrite(note, data, 0)
            os.ftruncate(note, len(data))


def _leave_notes_to_parent() -> None:
    """Forget the note in a forked process. Otherwise it would overwrite its parent's note, hold the
    lock for longer than the parent lives, and remove the note at its own end."""
    global _lock
    _lock = allocate_lock()
    _being_read.clear()
    if (note := _OpenNote.descriptor) >= 0:
        _OpenNote.descriptor = -1
        os.close(note)


os.register_at_fork(after_in_child=_leave_notes_to_parent)


@atexit.register
def end_notes() -> None:
    """Remove the note of this process."""
    if (note := _OpenNote.descriptor) < 0:
        return
    _OpenNote.descriptor = -1
    with suppress(OSError):
        os.unlink(os.readlink(f"/proc/self/fd/{note}"))
    os.close(note)


def _open_own_note(folder: str) -> None:
    end_notes()
    path = os.path.join(folder, f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}")
    note = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _OpenNote.descriptor = note


def _read_left_note(path: str, keep_s: float) -> list[tuple[str, float]]:
    """The logs in a note whose process is gone, with their age. An empty note and one that is too
    old are removed."""
    with suppress(OSError):
        note = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
            age_s = max(0.0, time.time() - os.fstat(note).st_mtime)
            logs = os.fsdecode(os.pread(note, _MAX_NOTE_BYTES, 0))
            if logs and age_s < keep_s:
                return [(log, age_s) for log in logs.split("\0")]
            os.unlink(path)
        finally:
            os.close(note)
    return []
