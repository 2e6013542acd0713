"""Can one still write there, and as fast as usual? A small file, written, synced, read, removed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.forecast.forecast import upper_median
from sentinel.core.model import Finding, Status
from sentinel.core.text import visible
from sentinel.core.values import duration_text

SPAN = 7 * 86_400.0
ENOUGH = 20
SLOWER = 10.0
LEAST = 0.5
"""Of the last week at least so many times; so many times the usual, and at least so many seconds,
is slow: below that nobody waits for it."""

_PROGRAM = os.path.join(os.path.dirname(__file__), "tap.py")
_UNSEEN = ("Permission denied", "Operation not permitted")


def write_probe_file(path: str, limit: float) -> tuple[Status, str, float | None]:
    """How it went, in words, and the seconds it took. A child that hangs raises TimedOut."""
    argv = [sys.executable, "-I", "-S", _PROGRAM, path]
    done = proc.run(argv, limit=limit, max_output=65536)
    if done.code == 0:
        return Status.OK, "", float(done.out)
    why = visible(os.fsdecode(done.err).strip())
    if why in _UNSEEN:
        return Status.UNKNOWN, f"may not be written by who runs this: {why.lower()}", None
    if done.code == 1 and "\n" not in why:
        return Status.CRITICAL, f"cannot be written: {why}", None
    raise CannotTell(f"the write probe ended with {done.code}")


def write_finding(
    path: str, result: tuple[Status, str, float | None], before: Sequence[float]
) -> Finding:
    """Judged by how long it took before; without a history nothing is slow."""
    status, text, seconds = result
    if seconds is not None:
        usual = upper_median(before) if len(before) >= ENOUGH else None
        text = f"written, synced and read in {duration_text(max(seconds, 0.001))}"
        if usual is not None:
            text += f" (usual {duration_text(max(usual, 0.001))})"
            slow = seconds > max(SLOWER * usual, LEAST)
            status = Status.WARNING if slow else Status.OK
            text = f"slow: {text}" if slow else text
    return Finding(
        subject=visible(f"{path} write"),
        status=status,
        summary=text,
        values={"write_seconds": seconds} if seconds is not None else {},
    )
