"""Finds the times in the lines of a log. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache

MAX_LINE_GAP_S = 12 * 3600
"""After a longer gap between two lines, the next job wrote to the same file."""

MAX_LAG_S = 60
"""Lines of several ranks may go back by so many seconds. A clock that goes back by more jumped."""

_LINE_TIME_PATTERN = re.compile(
    r"(?<!\d)(\d{4})[-/]([01]\d)[-/]([0-3]\d)[T ]([0-2]\d):([0-5]\d):([0-5]\d)(?:[.,](\d{1,6})\d*)?(?: ?(Z|[+-][01]\d:?[0-5]\d)\b)?"
    r"|(?<!\d)([01]\d)/([0-3]\d)/(\d{4}) ([0-2]\d):([0-5]\d):([0-5]\d)"
    r"|\"time_ms\": (\d{13})\b"
)
"""Times of Python's logging, Megatron-LM, fairseq and torchtitan, of Hugging Face's examples, and of
MLPerf's MLLOG."""


def find_line_times(text: str, zone: tzinfo = timezone.utc) -> Iterator[tuple[int, float]]:
    """The position of each time, and its epoch seconds. A time that names no zone is of `zone`."""
    for match in _LINE_TIME_PATTERN.finditer(text):
        at = _parse_line_time(match, zone)
        if at > 0:
            yield match.start(), at


def _parse_line_time(match: re.Match[str], zone: tzinfo) -> float:
    """Epoch seconds. 0 if the text is no time."""
    if match[15]:
        return int(match[15]) / 1000
    if match[9]:
        month, day, year, *clock = match.group(9, 10, 11, 12, 13, 14)
        return _compute_epoch(year, month, day, clock[0], clock[1], zone) + int(clock[2])
    year, month, day, hour, minute, second, part, offset = match.group(1, 2, 3, 4, 5, 6, 7, 8)
    whole = _compute_epoch(year, month, day, hour, minute, _parse_offset(offset) or zone)
    return whole + int(second) + (int(part) / 10 ** len(part) if part else 0) if whole else 0.0


def _parse_offset(text: str | None) -> tzinfo | None:
    if not text or text == "Z":
        return timezone.utc if text else None
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


@lru_cache(maxsize=64)
def _compute_epoch(year: str, month: str, day: str, hour: str, minute: str, zone: tzinfo) -> float:
    """Epoch seconds of a minute. Lines follow each other within it. 0 if there is no such minute."""
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), tzinfo=zone)
        return moment.timestamp()
    except (ValueError, OverflowError):
        return 0.0
