"""Real logs with the time of each line, out of directories that the reader has cloned.

Two forms. Any log with `LOG.times` beside it, which holds the seconds at which each of its lines
was written, one a line. And MLPerf's results: lines of MLLOG carry `time_ms`
(github.com/mlcommons/logging, mllog.py), and others were written with the one before.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

TIME = re.compile(rb'MLLOG.{0,200}?"time_ms": *([\d.e+]+)')
LEAST = 60.0
"""Seconds that a run has to have taken."""


class Run(Struct, frozen=True):
    """A job that ended: where its log is, what is trained, what the same job is called each time,
    whose it is, when it began and ended, in seconds of its own clock."""

    path: Path
    kind: str
    training: str
    owner: str
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        """How long it ran."""
        return self.ended - self.began


Line = tuple[float, bytes]
"""Seconds since the run began, and what is written then."""


def runs(places: Sequence[Path]) -> list[Run]:
    """Every log with times below these directories, in order of time. The same log twice (they
    are copied from submission to submission) is one."""
    found: dict[bytes, Run] = {}
    for path in sorted(path for place in places for path in place.rglob("*") if path.is_file()):
        if path.suffix not in (".txt", ".log", ".out") or "power" in path.parts[:-1]:
            continue  # what a power meter wrote repeats a few lines of the run's own log
        data = path.read_bytes()
        times = [at for at, _ in _timed(path, data)]
        if times and times[-1] - times[0] >= LEAST:
            one = Run(path, *_of(path), times[0], times[-1])
            found.setdefault(hashlib.sha256(data).digest(), one)
    return sorted(found.values(), key=lambda run: run.began)


def lines(run: Run) -> list[Line]:
    """What the run wrote, as it was written."""
    return [(at - run.began, text) for at, text in _timed(run.path, run.path.read_bytes())]


def _timed(path: Path, data: bytes) -> Iterator[Line]:
    beside = Path(f"{path}.times")
    if beside.exists():
        yield from zip(map(float, beside.read_text().split()), _whole(data), strict=False)
        return
    now = 0.0
    for text in _whole(data) if b"MLLOG" in data else ():
        if match := TIME.search(text):
            now = max(now, float(match[1]) / 1000)  # ranks write one after another, not in order
        if now:
            yield now, text


def _whole(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _of(path: Path) -> tuple[str, str, str]:
    """What, called how, whose: MLPerf's OWNER/results/SYSTEM/WHAT/…; else one directory is one
    training."""
    parts = path.parts
    if "results" not in parts[1:-3]:
        return path.parent.name, str(path.parent), ""
    at = len(parts) - 1 - parts[::-1].index("results")
    return parts[at + 2], "/".join(parts[: at + 3]), parts[at - 1]
