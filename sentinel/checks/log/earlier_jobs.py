"""What the log of an earlier job teaches, by the times that its lines carry. Pure.

It is looked at as if it were written now, a look a minute, by what watches a log that is.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterator

from msgspec.structs import replace

from sentinel.checks.log.cadence import Learned
from sentinel.checks.log.file_offset import Look, Place
from sentinel.checks.log.progress import Seen, Sight, remembered
from sentinel.checks.log.scan import Patterns, scan
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job

LOOK = 60  # seconds from look to look
GONE = 12 * 3600  # seconds without a line that are no quiet: the next job wrote into the same file
MOST = 10_000  # looks: a week

_TIME = re.compile(
    r"(?<!\d)(\d{4})-([01]\d)-([0-3]\d)[T ]([0-2]\d):([0-5]\d):([0-5]\d)|\"time_ms\": (\d{13})\b"
)
"""Of Python's logging, Megatron-LM, fairseq and torchtitan; of MLPerf's MLLOG."""


def lesson(text: str, patterns: Patterns, job: Job, learned: Learned, whole: bool) -> Learned:
    """With what this log shows of quiets, phases, step times and, where it is `whole`, of the
    start of a job like this one; nothing where its lines tell no time. CannotTell as `scan`."""
    seen: Seen | None = None
    size, started = 0, None
    for at, lines in _looks(text):
        started = at - LOOK - (0 if whole else GONE) if started is None else started
        size += len(lines)
        sight = Sight(
            path="",
            at=Instant(wall=at * SECOND),
            job=replace(job, started=started),
            looks={"": Look(size=size, inode="", mtime=at)},
            places={"": Place(size=size)},
            events=tuple(scan(lines, patterns)),
        )
        seen, learned = remembered(sight, seen, learned, bool(patterns.numbers))
    return learned


def _looks(text: str) -> Iterator[tuple[int, str]]:
    """Seconds, and the lines that were new then."""
    begin, now = 0, 0
    looks = 0
    for match in _TIME.finditer(text):
        at = _seconds(match)
        now = at + LOOK if not now or at - now > GONE else now
        while 0 < now <= at and looks < MOST:
            line = text.rfind("\n", begin, match.start()) + 1 or begin
            yield now, text[begin:line]
            begin, now, looks = line, now + LOOK, looks + 1
    if now:
        yield now, text[begin:]


def _seconds(match: re.Match[str]) -> int:
    """0 for what is no time."""
    if match[7]:
        return int(match[7]) // 1000
    try:
        return timegm(tuple(int(group) for group in match.groups()[:6]))
    except ValueError:
        return 0
