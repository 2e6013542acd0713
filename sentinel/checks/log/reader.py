"""What logs say is found out by a child: no text of theirs ever holds the service's interpreter.

One child for a run of the check, started with the first log that has new lines, and kept for the
next run. It has limits of time and memory; a log that exceeds them is unknown, and is left alone for
a while.
"""

from __future__ import annotations

import os
import pickle
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, cast

import msgspec

from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.earlier_jobs import learn_from_log
from sentinel.checks.log.recognition import (
    LogRecognition,
    follow_lines,
    has_number,
    recognise_log,
    reconsider_number,
)
from sentinel.checks.log.scan import LogEvent, LogPatterns, scan_text
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.proc.conversation import LENGTH_BYTES, Conversation
from sentinel.proc.errors import TimedOut

READ_LIMIT_S = 10.0
"""For one question about one text: a MiB of a usual log takes 0.1 s."""

MAX_MEMORY_BYTES = 2**30
"""Address space of the child, which needs less than 200 MiB for usual logs."""

READ_AGAIN_AFTER_S = 900.0
"""For so long a log that exceeded its limits is not read again."""

_MAX_ANSWER_BYTES = 2**28
_SOURCE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
_CHILD_START_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from sentinel.checks.log.reader import main; main()"
)

_idle_children: list[Conversation] = []
"""A child that no check uses just now: to start one costs more than to look at a log."""

_resting_until_s: dict[str, float] = {}
"""Logs that exceeded their limits, with the end of the time (monotonic) in which they rest."""


class LogReader:
    """Asks for what a text says: in a child, or here for a command that a person waits for and can
    end. All methods raise CannotTell that names the log."""

    def __init__(self, *, in_child: bool, max_memory_bytes: int = MAX_MEMORY_BYTES) -> None:
        self._in_child, self._max_memory_bytes = in_child, max_memory_bytes
        self._child: Conversation | None = None

    def __enter__(self) -> LogReader:
        return self

    def __exit__(self, *_: object) -> None:
        child, self._child = self._child, None
        if child and not _idle_children and self._max_memory_bytes == MAX_MEMORY_BYTES:
            _idle_children.append(child)
        elif child:
            child.close_conversation()

    def refuse_resting_log(self, path: str) -> None:
        """CannotTell for a log that exceeded its limits a short while ago."""
        if (left := _resting_until_s.get(path, 0.0) - time.monotonic()) > 0:
            raise CannotTell(_describe_resting(path, left))

    def follow_lines(
        self, path: str, known: LogRecognition | None, text: str, head: str
    ) -> LogRecognition:
        """See recognition.follow_lines."""
        return cast(LogRecognition, self._ask_child(path, "followed", known, text, head))

    def has_number(self, path: str, known: LogRecognition, text: str) -> bool:
        """See recognition.has_number."""
        return cast(bool, self._ask_child(path, "found_in", known, text))

    def reconsider_number(self, path: str, known: LogRecognition, text: str) -> LogRecognition:
        """See recognition.reconsider_number."""
        return cast(LogRecognition, self._ask_child(path, "reconsidered", known, text))

    def recognise_log(self, path: str, text: str) -> LogRecognition:
        """See recognition.recognise_log."""
        return cast(LogRecognition, self._ask_child(path, "recognise", text))

    def scan_text(self, text: str, patterns: LogPatterns, path: str, node: str) -> list[LogEvent]:
        """See scan.scan_text."""
        packed = pickle.dumps(patterns) if self._in_child else patterns
        return cast("list[LogEvent]", self._ask_child(path, "scan", text, packed, path, node))

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
        packed = pickle.dumps(patterns) if self._in_child else patterns
        return cast(
            TrainingBaseline, self._ask_child(path, "lesson", text, packed, job, learned, whole)
        )

    def _take_idle_child(self) -> Conversation | None:
        while _idle_children and self._max_memory_bytes == MAX_MEMORY_BYTES:
            child = _idle_children.pop()
            if child.is_alive:
                return child
            child.close_conversation()
        return None

    def _ask_child(self, path: str, name: str, *args: Any) -> Any:
        if not self._in_child:
            return _CHILD_FUNCTIONS[name][0](*args)
        self.refuse_resting_log(path)
        if self._child is None:
            self._child = self._take_idle_child() or _start_child(self._max_memory_bytes)
        try:
            answer = self._child.ask_child(pickle.dumps((name, args)), READ_LIMIT_S)
        except CannotTell as error:
            self._child = None
            _rest_log(path)
            told = "took too long" if isinstance(error, TimedOut) else str(error)
            raise CannotTell(f"{_describe_resting(path, READ_AGAIN_AFTER_S)} ({told})") from error
        if answer[:1] == b"!":
            raise CannotTell(answer[1:].decode())
        return msgspec.msgpack.decode(answer[1:], type=_CHILD_FUNCTIONS[name][1])


def _rest_log(path: str) -> None:
    """Leave this log alone for a while; forget those whose while is over."""
    now = time.monotonic()
    for over in [other for other, until in _resting_until_s.items() if until <= now]:
        _resting_until_s.pop(over, None)
    _resting_until_s[path] = now + READ_AGAIN_AFTER_S


def _describe_resting(path: str, seconds: float) -> str:
    return (
        f"{visible(path)} could not be read within {READ_LIMIT_S:.0f} s and the memory for it: "
        f"look what is written into it; it is read again in {duration_text(seconds)}"
    )


def _start_child(max_memory_bytes: int) -> Conversation:
    paths = msgspec.json.encode([_SOURCE_ROOT, *sys.path]).decode()
    argv = [sys.executable, "-I", "-S", "-c", _CHILD_START_CODE, paths, str(max_memory_bytes)]
    return Conversation(argv, _MAX_ANSWER_BYTES)


def close_idle_children() -> None:
    """End the child that waits for the next run; the end of the process does so too."""
    while _idle_children:
        _idle_children.pop().close_conversation()


# The child.

_MAX_UNPACKED_PATTERNS = 64
_unpacked_patterns: dict[bytes, LogPatterns] = {}


def _unpack_patterns(packed: bytes | LogPatterns) -> LogPatterns:
    """Once for each: a pattern that was given up remembers it."""
    if isinstance(packed, LogPatterns):
        return packed
    if len(_unpacked_patterns) >= _MAX_UNPACKED_PATTERNS:
        _unpacked_patterns.clear()
    if packed not in _unpacked_patterns:
        _unpacked_patterns[packed] = pickle.loads(packed)  # noqa: S301 - from the parent
    return _unpacked_patterns[packed]


def _scan_packed(text: str, packed: bytes | LogPatterns, path: str, node: str) -> list[LogEvent]:
    return scan_text(text, _unpack_patterns(packed), path, node)


def _learn_packed(
    text: str, packed: bytes | LogPatterns, job: Job, learned: TrainingBaseline, whole: bool
) -> TrainingBaseline:
    return learn_from_log(text, _unpack_patterns(packed), job, learned, whole)


_CHILD_FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "followed": (follow_lines, LogRecognition),
    "found_in": (has_number, bool),
    "reconsidered": (reconsider_number, LogRecognition),
    "recognise": (recognise_log, LogRecognition),
    "scan": (_scan_packed, list[LogEvent]),
    "lesson": (_learn_packed, TrainingBaseline),
}


def main() -> None:
    """Answers until its input ends."""
    most = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    while head := sys.stdin.buffer.read(LENGTH_BYTES):
        request = sys.stdin.buffer.read(int.from_bytes(head, "big"))
        _limit_cpu_time()
        answer = _run_request(*pickle.loads(request))  # noqa: S301 - from the parent
        sys.stdout.buffer.write(len(answer).to_bytes(LENGTH_BYTES, "big") + answer)
        sys.stdout.buffer.flush()


def _limit_cpu_time() -> None:
    """It ends by itself where the parent is gone and cannot end it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    end = int(used.ru_utime + used.ru_stime + READ_LIMIT_S) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))


def _run_request(name: str, args: tuple[Any, ...]) -> bytes:
    try:
        return b"=" + msgspec.msgpack.encode(_CHILD_FUNCTIONS[name][0](*args))
    except CannotTell as error:
        return b"!" + str(error).encode()
