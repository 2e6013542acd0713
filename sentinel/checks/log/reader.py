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

from sentinel.checks.log.cadence import Learned
from sentinel.checks.log.earlier_jobs import lesson
from sentinel.checks.log.recognition import (
    Recognised,
    followed,
    found_in,
    recognise,
    reconsidered,
)
from sentinel.checks.log.scan import Event, Patterns, scan
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

AGAIN_AFTER_S = 900.0
"""For so long a log that exceeded its limits is not read again."""

_MAX_ANSWER_BYTES = 2**28
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from sentinel.checks.log.reader import main; main()"
)

_idle: list[Conversation] = []
"""A child that no check uses just now: to start one costs more than to look at a log."""

_exceeded: dict[str, float] = {}
"""Logs that exceeded their limits, with the end of the time (monotonic) in which they rest."""


class Reader:
    """Asks for what a text says: in a child, or here for a command that a person waits for and can
    end. All methods raise CannotTell that names the log."""

    def __init__(self, *, in_child: bool, max_memory_bytes: int = MAX_MEMORY_BYTES) -> None:
        self._in_child, self._max_memory_bytes = in_child, max_memory_bytes
        self._child: Conversation | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        child, self._child = self._child, None
        if child and not _idle and self._max_memory_bytes == MAX_MEMORY_BYTES:
            _idle.append(child)
        elif child:
            child.close()

    def refuse_resting(self, path: str) -> None:
        """CannotTell for a log that exceeded its limits a short while ago."""
        if (left := _exceeded.get(path, 0.0) - time.monotonic()) > 0:
            raise CannotTell(_words(path, left))

    def followed(self, path: str, known: Recognised | None, text: str, head: str) -> Recognised:
        """See recognition.followed."""
        return cast(Recognised, self._ask(path, "followed", known, text, head))

    def found_in(self, path: str, known: Recognised, text: str) -> bool:
        """See recognition.found_in."""
        return cast(bool, self._ask(path, "found_in", known, text))

    def reconsidered(self, path: str, known: Recognised, text: str) -> Recognised:
        """See recognition.reconsidered."""
        return cast(Recognised, self._ask(path, "reconsidered", known, text))

    def recognise(self, path: str, text: str) -> Recognised:
        """See recognition.recognise."""
        return cast(Recognised, self._ask(path, "recognise", text))

    def scan(self, text: str, patterns: Patterns, path: str, node: str) -> list[Event]:
        """See scan.scan."""
        packed = pickle.dumps(patterns) if self._in_child else patterns
        return cast("list[Event]", self._ask(path, "scan", text, packed, path, node))

    def lesson(
        self, path: str, text: str, patterns: Patterns, job: Job, learned: Learned, whole: bool
    ) -> Learned:
        """See earlier_jobs.lesson."""
        packed = pickle.dumps(patterns) if self._in_child else patterns
        return cast(Learned, self._ask(path, "lesson", text, packed, job, learned, whole))

    def _idle_child(self) -> Conversation | None:
        while _idle and self._max_memory_bytes == MAX_MEMORY_BYTES:
            child = _idle.pop()
            if child.is_alive:
                return child
            child.close()
        return None

    def _ask(self, path: str, name: str, *args: Any) -> Any:
        if not self._in_child:
            return _FUNCTIONS[name][0](*args)
        self.refuse_resting(path)
        if self._child is None:
            self._child = self._idle_child() or _started(self._max_memory_bytes)
        try:
            answer = self._child.ask(pickle.dumps((name, args)), READ_LIMIT_S)
        except CannotTell as error:
            self._child = None
            _rest(path)
            told = "took too long" if isinstance(error, TimedOut) else str(error)
            raise CannotTell(f"{_words(path, AGAIN_AFTER_S)} ({told})") from error
        if answer[:1] == b"!":
            raise CannotTell(answer[1:].decode())
        return msgspec.msgpack.decode(answer[1:], type=_FUNCTIONS[name][1])


def _rest(path: str) -> None:
    """Leave this log alone for a while; forget those whose while is over."""
    now = time.monotonic()
    for over in [other for other, until in _exceeded.items() if until <= now]:
        _exceeded.pop(over, None)
    _exceeded[path] = now + AGAIN_AFTER_S


def _words(path: str, seconds: float) -> str:
    return (
        f"{visible(path)} could not be read within {READ_LIMIT_S:.0f} s and the memory for it: "
        f"look what is written into it; it is read again in {duration_text(seconds)}"
    )


def _started(max_memory_bytes: int) -> Conversation:
    paths = msgspec.json.encode([_ROOT, *sys.path]).decode()
    argv = [sys.executable, "-I", "-S", "-c", _START, paths, str(max_memory_bytes)]
    return Conversation(argv, _MAX_ANSWER_BYTES)


def close_idle() -> None:
    """End the child that waits for the next run; the end of the process does so too."""
    while _idle:
        _idle.pop().close()


# The child.

_MAX_PATTERNS = 64
_patterns: dict[bytes, Patterns] = {}


def _unpacked(packed: bytes | Patterns) -> Patterns:
    """Once for each: a pattern that was given up remembers it."""
    if isinstance(packed, Patterns):
        return packed
    if len(_patterns) >= _MAX_PATTERNS:
        _patterns.clear()
    if packed not in _patterns:
        _patterns[packed] = pickle.loads(packed)  # noqa: S301 - from the parent
    return _patterns[packed]


def _scan(text: str, packed: bytes | Patterns, path: str, node: str) -> list[Event]:
    return scan(text, _unpacked(packed), path, node)


def _lesson(
    text: str, packed: bytes | Patterns, job: Job, learned: Learned, whole: bool
) -> Learned:
    return lesson(text, _unpacked(packed), job, learned, whole)


_FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "followed": (followed, Recognised),
    "found_in": (found_in, bool),
    "reconsidered": (reconsidered, Recognised),
    "recognise": (recognise, Recognised),
    "scan": (_scan, list[Event]),
    "lesson": (_lesson, Learned),
}


def main() -> None:
    """Answers until its input ends."""
    most = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    while head := sys.stdin.buffer.read(LENGTH_BYTES):
        request = sys.stdin.buffer.read(int.from_bytes(head, "big"))
        _limit_processor()
        answer = _answer(*pickle.loads(request))  # noqa: S301 - from the parent
        sys.stdout.buffer.write(len(answer).to_bytes(LENGTH_BYTES, "big") + answer)
        sys.stdout.buffer.flush()


def _limit_processor() -> None:
    """It ends by itself where the parent is gone and cannot end it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    end = int(used.ru_utime + used.ru_stime + READ_LIMIT_S) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))


def _answer(name: str, args: tuple[Any, ...]) -> bytes:
    try:
        return b"=" + msgspec.msgpack.encode(_FUNCTIONS[name][0](*args))
    except CannotTell as error:
        return b"!" + str(error).encode()
