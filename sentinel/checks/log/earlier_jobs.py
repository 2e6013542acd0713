"""Learns from the log of an earlier job, by the times in its lines. Pure.

The log is replayed as if it were written now and read once a minute.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.file_offset import FileStat, ReadPosition
from sentinel.checks.log.line_times import MAX_LINE_GAP_S, find_line_times
from sentinel.checks.log.log_state import LogObservation, LogState
from sentinel.checks.log.progress import update_state
from sentinel.checks.log.rows import list_carriers
from sentinel.checks.log.scan import LogPatterns, scan_text
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job

REPLAY_STEP_S = 60  # seconds between two readings in the replay
MAX_REPLAY_STEPS = 10_000  # readings in the replay: a week


def learn_from_log(
    text: str, patterns: LogPatterns, job: Job, learned: TrainingBaseline, whole: bool
) -> TrainingBaseline:
    """The baseline, with what this log shows: quiet times, phases, and step times.

    If the log is `whole`, also the start of a job like this one. Nothing is learned if its lines
    have no times. Raises CannotTell like `scan`.
    """
    seen: LogState | None = None
    size, started = 0, None
    for at, lines in _split_by_time(text):
        started = (
            at - REPLAY_STEP_S - (0 if whole else MAX_LINE_GAP_S) if started is None else started
        )
        size += len(lines)
        sight = LogObservation(
            path="",
            at=Instant(wall=at * SECOND),
            job=replace(job, started=started),
            looks={"": FileStat(size=size, inode="", mtime=at)},
            places={"": ReadPosition(size=size)},
            events=tuple(
                scan_text(lines, patterns, carriers=list_carriers(seen.rows) if seen else ())
            ),
        )
        seen, learned = update_state(sight, seen, learned, bool(patterns.numbers))
    return learned


def _split_by_time(text: str) -> Iterator[tuple[int, str]]:
    """For each reading: the time in seconds, and the lines that were new then."""
    begin, now = 0, 0
    looks = 0
    for position, seconds in find_line_times(text):
        at = int(seconds)
        now = at + REPLAY_STEP_S if not now or at - now > MAX_LINE_GAP_S else now
        while 0 < now <= at and looks < MAX_REPLAY_STEPS:
            line = text.rfind("\n", begin, position) + 1 or begin
            yield now, text[begin:line]
            begin, now, looks = line, now + REPLAY_STEP_S, looks + 1
    if now:
        yield now, text[begin:]
