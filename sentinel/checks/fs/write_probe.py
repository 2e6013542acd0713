"""Tests whether a file can still be written, and as fast as usual. A small file is written, synced,
read and removed."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sentinel import proc
from sentinel.checks.filesystems.verdict import explain_question
from sentinel.core.errors import CannotTell
from sentinel.core.forecast.growth_steps import upper_median
from sentinel.core.long_lines import decode_lines
from sentinel.core.model import Finding, Status
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.proc.own_package import read_program_file

SPAN = 7 * 86_400.0
ENOUGH = 20
SLOWER = 10.0
LEAST = 0.5
"""A write is slow if it takes this many times the median of the last week, and at least this many
seconds. A minimum number of measurements is needed."""


def write_probe_file(path: str, limit: float) -> tuple[Status, str, float | None]:
    """The status, the text, and the seconds that it took (None: it failed). Raises TimedOut if the
    child hangs."""
    argv = [sys.executable, "-I", "-S", "-c", read_program_file("checks/fs/tap.py"), path]
    return judge_probe(proc.run(argv, limit=limit, max_output=65536))


def judge_probe(done: proc.Done) -> tuple[Status, str, float | None]:
    """The same of the child's answer. Raises CannotTell if it is none."""
    if done.code == 0:
        return Status.OK, "", float(done.out)
    why = visible(decode_lines(done.err).strip())
    if explain_question(why):
        return Status.UNKNOWN, f"the user who runs this may not write there: {why.lower()}", None
    if done.code == 1 and "\n" not in why:
        return Status.CRITICAL, f"cannot be written: {why}", None
    raise CannotTell(f"the write probe ended with {done.code}")


def write_finding(
    path: str, result: tuple[Status, str, float | None], before: Sequence[float]
) -> Finding:
    """The finding, by the time that earlier writes took. Without a history, nothing is slow."""
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
