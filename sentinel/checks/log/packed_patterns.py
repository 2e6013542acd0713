"""The functions that the child process for reading logs runs. It gets packed patterns, and unpacks
each once."""

from __future__ import annotations

import pickle

from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.earlier_jobs import learn_from_log
from sentinel.checks.log.recognition import (
    LogRecognition,
    follow_lines,
    has_number,
    reconsider_number,
)
from sentinel.checks.log.scan import LogEvent, LogPatterns, limit_events, scan_text
from sentinel.core.cluster import Job

_MAX_UNPACKED_PATTERNS = 64

_unpacked_patterns: dict[bytes, LogPatterns] = {}


def _unpack_patterns(packed: bytes | LogPatterns) -> LogPatterns:
    """Unpack patterns, always to the same object, because a pattern that timed out remembers that."""
    if isinstance(packed, LogPatterns):
        return packed
    if len(_unpacked_patterns) >= _MAX_UNPACKED_PATTERNS:
        _unpacked_patterns.clear()
    if packed not in _unpacked_patterns:
        _unpacked_patterns[packed] = pickle.loads(packed)  # noqa: S301 - from the parent
    return _unpacked_patterns[packed]


def scan_packed(
    text: str,
    packed: bytes | LogPatterns,
    path: str,
    node: str,
    carriers: tuple[str, ...],
    earlier: str,
) -> list[LogEvent]:
    read = _unpack_patterns(packed)
    return limit_events(scan_text(text, read, path, node, carriers, earlier))


def learn_packed(
    text: str, packed: bytes | LogPatterns, job: Job, learned: TrainingBaseline, whole: bool
) -> TrainingBaseline:
    return learn_from_log(text, _unpack_patterns(packed), job, learned, whole)


def follow_text(text: str, known: LogRecognition | None, head: str) -> LogRecognition:
    return follow_lines(known, text, head)


def has_number_in_text(text: str, known: LogRecognition) -> bool:
    return has_number(known, text)


def reconsider_text(text: str, known: LogRecognition) -> LogRecognition:
    return reconsider_number(known, text)
