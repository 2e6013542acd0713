"""What sentinel reads in every log of a directory: whose it is, NaN losses, errors.

A log is labelled by its repository, which the reader knows. A run was successful where MLPerf's
log says so; of others nobody knows.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path

from msgspec import Struct, field

from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.file_offset import MAX_READ_BYTES, FileStat
from sentinel.checks.log.gather import HEAD_BYTES
from sentinel.checks.log.log_state import LogObservation, LogState
from sentinel.checks.log.progress import update_state
from sentinel.checks.log.recognition import recognise_log
from sentinel.checks.log.scan import LogPatterns, scan_text
from sentinel.checks.log.topics import Thresholds, judge_topics
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.core.logtext import decode_log
from sentinel.core.model import Status
from sentinel.testing import START

ENDINGS = (".txt", ".log", ".out", ".err", ".stdout", ".stderr")
SUCCESS = re.compile(r'"run_stop"[^\n]{0,400}"success"')
STEP = 2**16
"""Characters that one look finds new."""


class Read(Struct, frozen=True):
    """One log: who wrote it, the number, seconds of the first look, what was told of it."""

    path: Path
    trainer: str
    number: str
    seconds: float
    lost: str
    errors: tuple[str, ...]
    success: bool


class Table(Struct):
    """All logs of a directory."""

    trainers: Counter[str] = field(default_factory=Counter)
    numbers: int = 0
    logs: int = 0
    successes: int = 0
    slowest: float = 0.0
    lost: list[str] = []
    errors: list[str] = []


def print_forms(places: Sequence[Path], workers: Executor) -> None:
    """A table for each directory."""
    for place in places:
        table = Table()
        for one in workers.map(read, logs(place), chunksize=16):
            _add(table, one)
        known = ", ".join(f"{name} {n}" for name, n in table.trainers.most_common())
        print(f"{place.name}: {table.logs} logs, {table.numbers} with a number; {known}")
        print(f"  slowest first look {1000 * table.slowest:.0f} ms of processor time")
        _say("NaN losses in", table.lost, table.logs)
        _say("error lines in successful runs:", table.errors, table.successes)


def logs(place: Path) -> list[Path]:
    """Files that look like logs."""
    return sorted(p for p in place.rglob("*") if p.suffix in ENDINGS and p.is_file())


def read(path: Path) -> Read:
    """As a check that sees it grow, and as one first look at the whole of it."""
    data = path.read_bytes()
    began = time.process_time()
    text = decode_log(data[-MAX_READ_BYTES:])
    known = recognise_log(text, decode_log(data[:HEAD_BYTES]) if len(data) > MAX_READ_BYTES else "")
    scan_text(text, _patterns())
    seconds = time.process_time() - began
    whole = decode_log(data)
    lost, errors = _told(whole)
    number = known.number.name if known.number else ""
    who = known.first_trainer or "unknown"
    return Read(path, who, number, seconds, lost, errors, SUCCESS.search(whole) is not None)


def _patterns() -> LogPatterns:
    return LogPatterns({}, {}, None, TroubleFinder({}, []))


def _told(text: str) -> tuple[str, tuple[str, ...]]:
    """The first alarm about a loss that is lost, and the sorts of errors, look by look."""
    seen: LogState | None = None
    lost, kinds = "", dict[str, None]()
    for part in _parts(text):
        look = FileStat(size=len(text), inode="1", mtime=0.0)
        sight = LogObservation(
            path="/log", at=START, looks={"/log": look}, events=tuple(scan_text(part, _patterns()))
        )
        seen, _ = update_state(sight, seen, TrainingBaseline(), False)
        for aside in judge_topics(
            seen, TrainingBaseline(), Thresholds(nan_after=3, slower_than=None), {}
        ):
            bad = aside.topic == "loss" and aside.status is Status.CRITICAL
            lost = lost or (aside.summary if bad else "")
        kinds.update(dict.fromkeys(f"{one.kind}: {one.line}" for one in seen.troubles))
    return lost, tuple(kinds)


def _parts(text: str) -> Iterator[str]:
    """Whole lines, about so many characters at a time."""
    part: list[str] = []
    size = 0
    for line in text.splitlines(keepends=True):
        part.append(line)
        size += len(line)
        if size >= STEP:
            yield "".join(part)
            part, size = [], 0
    yield "".join(part)


def _add(table: Table, one: Read) -> None:
    table.logs += 1
    table.numbers += bool(one.number)
    table.trainers[one.trainer] += 1
    table.successes += one.success
    table.slowest = max(table.slowest, one.seconds)
    if one.lost:
        table.lost.append(f"{one.path}: {one.lost}")
    if one.errors and one.success:
        table.errors.append(f"{one.path}: {one.errors[0]}")


def _say(what: str, found: Iterable[str], of: int) -> None:
    every = list(found)
    print(f"  {what} {len(every)} of {of}", *(f"    {one}" for one in every[:20]), sep="\n")
