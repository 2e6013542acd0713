"""Sends the questions of the kind `log` to the child process that reads texts
(`checks.text_child`)."""

from __future__ import annotations

import pickle
from math import inf

from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.metric_text import MetricLines, read_metrics
from sentinel.checks.log.packed_patterns import (
    follow_text,
    has_number_in_text,
    learn_packed,
    reconsider_text,
    scan_packed,
)
from sentinel.checks.log.recognition import (
    LogRecognition,
    recognise_log,
)
from sentinel.checks.log.scan import LogEvent, LogPatterns
from sentinel.checks.log.wish_number import WishNumber, find_wish_number
from sentinel.checks.text_child import MAX_MEMORY_BYTES, TextReader
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell

WISH_BUDGET_S = 0.2
"""CPU seconds that the own patterns of one user may take in one run of a check."""

WISH_LIMIT_S = 1.0
"""Seconds by the clock after which a search by a user's own pattern is given up, and the child with it."""


class LogReader(TextReader):
    """Reads texts in a child process. All methods raise CannotTell, with the log's name."""

    def __init__(
        self, *, in_child: bool, max_memory_bytes: int = MAX_MEMORY_BYTES, total_s: float = inf
    ) -> None:
        super().__init__(in_child=in_child, max_memory_bytes=max_memory_bytes, total_s=total_s)
        self._wish_costs: dict[str, float] = {}  # CPU seconds of this run, by user

    def __enter__(self) -> LogReader:
        super().__enter__()
        return self

    def follow_lines(
        self, path: str, known: LogRecognition | None, text: str, head: str
    ) -> LogRecognition:
        """See recognition.follow_lines."""
        return self.ask(path, follow_text, LogRecognition, text, known, head)

    def has_number(self, path: str, known: LogRecognition, text: str) -> bool:
        """See recognition.has_number."""
        return self.ask(path, has_number_in_text, bool, text, known)

    def reconsider_number(self, path: str, known: LogRecognition, text: str) -> LogRecognition:
        """See recognition.reconsider_number."""
        return self.ask(path, reconsider_text, LogRecognition, text, known)

    def recognise_log(self, path: str, text: str) -> LogRecognition:
        """See recognition.recognise_log."""
        return self.ask(path, recognise_log, LogRecognition, text)

    def scan_text(
        self,
        text: str,
        patterns: LogPatterns,
        path: str,
        node: str,
        carriers: tuple[str, ...] = (),
        earlier: str = "",
    ) -> list[LogEvent]:
        """See scan.scan_text."""
        told = (text, self._pack(patterns), path, node, carriers, earlier)
        return self.ask(path, scan_packed, list[LogEvent], *told)

    def read_metrics(self, path: str, data: bytes, start: int, is_cut: bool) -> MetricLines:
        """See metric_text.read_metrics."""
        return self.ask(path, read_metrics, MetricLines, data, path, start, is_cut)

    def find_wish_number(self, path: str, text: str, pattern: str, user: str) -> WishNumber:
        """See wish_number.find_wish_number. Never raises: a user's pattern keeps nobody from reading
        the log."""
        cost = self._wish_costs.get(user, 0.0)
        left = WISH_BUDGET_S - cost
        if left <= 0:
            return WishNumber(paused=True)
        aside = f"{path} (the pattern of {user})"
        try:
            found = self.ask(
                aside, find_wish_number, WishNumber, text, pattern, left, limit=WISH_LIMIT_S
            )
        except CannotTell:
            found = WishNumber(paused=True, seconds=WISH_BUDGET_S)
        self._wish_costs[user] = cost + found.seconds
        return found

    def learn_from_log(
        self,
        path: str,
        text: str,
        patterns: LogPatterns,
        job: Job,
        learned: TrainingBaseline,
        whole: bool,
    ) -> TrainingBaseline:
        """See earlier_jobs.learn_from_log."""
        packed = self._pack(patterns)
        return self.ask(path, learn_packed, TrainingBaseline, text, packed, job, learned, whole)

    def _pack(self, patterns: LogPatterns) -> bytes | LogPatterns:
        return pickle.dumps(patterns) if self.in_child else patterns
