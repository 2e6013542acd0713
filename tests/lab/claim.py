"""The claim on an index: held by a lock on a file, so that it ends with the process."""

import fcntl
import os
from pathlib import Path

from tests.lab.paths import BASE, INDEXES

RUN = "SENTINEL_TEST_RUN"
"""In the environment of whatever a run of the tests starts: by it a process that was left behind is known."""


class Taken(Exception):
    """Another process holds the index."""


def claim(index: int | None = None) -> tuple[int, int]:
    """Take the index, or the first free one; returns it and the descriptor that holds it."""
    for candidate in INDEXES if index is None else [index]:
        held = try_claim(candidate)
        if held is not None:
            os.ftruncate(held, 0)
            os.write(held, os.environ.get(RUN, "").encode())
            return candidate, held
    raise Taken(f"lab {'' if index is None else index} is in use: see {BASE}")


def try_claim(index: int) -> int | None:
    """The descriptor that now holds the lock, None where another process has it."""
    BASE.mkdir(parents=True, exist_ok=True)
    held = os.open(_lock_file(index), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return None
    return held


def wait_claim(index: int) -> int:
    """Take the index as soon as its holder lets go of it or dies."""
    held = os.open(_lock_file(index), os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(held, fcntl.LOCK_EX)
    return held


def left_over() -> list[int]:
    """Indexes whose folder exists, whether or not anybody holds them."""
    if not BASE.is_dir():
        return []
    return sorted(int(path.name) for path in BASE.iterdir() if path.name.isdigit())


def last_holder(index: int) -> str:
    """The run of the tests that claimed the index last, "" where none has."""
    lock_file = _lock_file(index)
    return lock_file.read_text() if lock_file.exists() else ""


def _lock_file(index: int) -> Path:
    return BASE / f"{index}.lock"
