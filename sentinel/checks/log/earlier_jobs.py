"""What the log of an earlier job teaches, by the times that its lines carry. Pure.

It is looked at as if it were written now, a look a minute, by what watches a log that is.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterator

from msgspec.structs import replace

from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.file_offset import FileStat, ReadPosition
from sentinel.checks.log.progress import LogObservation, LogState, update_state
from sentinel.checks.log.scan import LogPatterns, scan_text
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job

REPLAY_STEP_S = 60  # seconds from look to look
MAX_LINE_GAP_S = (
    12 * 3600
)  # seconds without a line that are no quiet: the next job wrote into the same file
MAX_REPLAY_STEPS = 10_000  # looks: a week

_LINE_TIME_PATTERN = re.compile(
    r"(?<!\d)(\d{4})-([01]\d)-([0-3]\d)[T ]([0-2]\d):([0-5]\d):([0-5]\d)|\"time_ms\": (\d{13})\b"
)
"""Of Python's logging, Megatron-LM, fairseq and torchtitan; of MLPerf's MLLOG."""


def learn_from_log(
    text: str, patterns: LogPatterns, job: Job, learned: TrainingBaseline, whole: bool
) -> TrainingBaseline:
    """With what this log shows of quiets, phases, step times and, where it is `whole`, of the
    start of a job like this one; nothing where its lines tell no time. CannotTell as `scan`."""
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
            events=tuple(scan_text(lines, patterns)),
        )
        seen, learned = update_state(sight, seen, learned, bool(patterns.numbers))
    return learned


def _split_by_time(text: str) -> Iterator[tuple[int, str]]:
    """Seconds, and the lines that were new then."""
    begin, now = 0, 0
    looks = 0
    for match in _LINE_TIME_PATTERN.finditer(text):
        at = _parse_time_s(match)
        now = at + REPLAY_STEP_S if not now or at - now > MAX_LINE_GAP_S else now
        while 0 < now <= at and looks < MAX_REPLAY_STEPS:
            line = text.rfind("\n", begin, match.start()) + 1 or begin
            yield now, text[begin:line]
            begin, now, looks = line, now + REPLAY_STEP_S, looks + 1
    if now:
        yield now, text[begin:]


def _parse_time_s(match: re.Match[str]) -> int:
    """0 for what is no time."""
    if match[7]:
        return int(match[7]) // 1000
    try:
        return timegm(tuple(int(group) for group in match.groups()[:6]))
    except ValueError:
        return 0
