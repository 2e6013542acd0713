"""Interprets logs in a child process, so that no text of a log can stop the service's interpreter.

There is one child for a run of a check. It is started with the first text, and kept for the next
run. It has limits of time and memory. A log that exceeds them is unknown, and is not read for some
time. The same holds for a log that was being read when sentinel was killed, see `reading_notes`.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from math import inf
from typing import Any, TypeVar

import msgspec

from sentinel.checks import reading_notes
from sentinel.checks.text_program import LENGTH_BYTES, get_ready, read_length, with_length
from sentinel.core.errors import CannotTell
from sentinel.core.struct_types import decode_msgpack
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.proc.dialogue import Dialogue
from sentinel.proc.errors import TimedOut

MAX_MEMORY_BYTES = 2**30
"""The limit of the child's address space. For usual logs it needs less than 200 MiB."""

READ_LIMIT_S = 10.0
"""Limit for the processor time of one question about one text. A MiB of a usual log takes 0.1 s."""

WAIT_LIMIT_S = 30.0
"""Limit for the answer. On a node whose cores are all busy it takes several times the processor
time."""

READ_AGAIN_AFTER_S = 900.0
"""A log that exceeded its limits is not read again for this many seconds."""

START_LIMIT_S = 30.0
"""Limit for the start of a child. On a node whose cores are all busy its imports take seconds, which
say nothing about the log."""

_MAX_ANSWER_BYTES = 2**28
_SOURCE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_CHILD_START_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from sentinel.checks.text_program import main; main()"
)

Answer = TypeVar("Answer")

_idle_children: list[Dialogue] = []
"""A child that no check uses at present. Starting one takes longer than reading a log."""

_resting: dict[str, tuple[float, str]] = {}
"""Logs that are not read for some time: until when (monotonic), and why."""


class TextReader:
    """Runs functions on a text in a child process. A command that a person waits for runs them in
    its own process, because the person can end it. `total_s` is the time in seconds for all
    questions together, so that many costly logs cannot keep a run of the check from ending."""

    def __init__(
        self, *, in_child: bool, max_memory_bytes: int = MAX_MEMORY_BYTES, total_s: float = inf
    ) -> None:
        self.in_child, self._max_memory_bytes = in_child, max_memory_bytes
        self._deadline = time.monotonic() + total_s
        self._child: Dialogue | None = None

    def __enter__(self) -> TextReader:
        if self.in_child:
            rest_interrupted_logs()
        return self

    def __exit__(self, *_: object) -> None:
        child, self._child = self._child, None
        if child and not _idle_children and self._max_memory_bytes == MAX_MEMORY_BYTES:
            _idle_children.append(child)
        elif child:
            child.end_child()

    def refuse_resting_log(self, path: str) -> None:
        """Raise CannotTell for a log that exceeded its limits a short time ago."""
        until, why = _resting.get(path, (0.0, ""))
        if (left := until - time.monotonic()) > 0:
            raise CannotTell(_describe_resting(path, why, left))

    def ask(
        self,
        path: str,
        function: Callable[..., Answer],
        kind: Any,
        text: str | bytes,
        *args: Any,
        limit: float = inf,
    ) -> Answer:
        """The result of a function of a module for the text of this log, as the type `kind`. Raises
        CannotTell, with the name of the log or with the function's own text."""
        if not self.in_child:
            return function(text, *args)
        self.refuse_resting_log(path)
        limit, left = min(limit, WAIT_LIMIT_S), self._deadline - time.monotonic()
        if left <= 0:
            raise CannotTell(f"{visible(path)} was not read: other logs took all the time")
        if self._child is None:
            self._child = self._take_idle_child() or self._start_child(path, function, left)
            left = self._deadline - time.monotonic()
        try:
            with reading_notes.note_reading(path):
                request = pickle.dumps((function, (text, *args)))
                answer = _ask_child(self._child, request, min(limit, left))
        except CannotTell as error:
            self._child = None
            if left < min(limit, READ_LIMIT_S) and isinstance(error, TimedOut):
                raise CannotTell(f"{visible(path)} was not read to its end: {error}") from error
            rest_log(path)
            told = "took too long" if isinstance(error, TimedOut) else str(error)
            why = _describe_resting(path, "", READ_AGAIN_AFTER_S)
            raise CannotTell(f"{why} ({told})") from error
        if answer[:1] == b"!":
            raise CannotTell(answer[1:].decode())
        found: Answer = decode_msgpack(answer[1:], kind)
        return found

    def _start_child(self, path: str, function: Callable[..., Any], limit: float) -> Dialogue:
        child = _start_dialogue(self._max_memory_bytes)
        try:
            _ask_child(child, pickle.dumps((get_ready, (function,))), min(START_LIMIT_S, limit))
        except CannotTell as error:
            raise CannotTell(
                f"{visible(path)} was not read: the program that reads logs did not start: {error}"
            ) from error
        return child

    def _take_idle_child(self) -> Dialogue | None:
        while _idle_children and self._max_memory_bytes == MAX_MEMORY_BYTES:
            child = _idle_children.pop()
            if child.is_open:
                return child
            child.end_child()
        return None


def rest_log(path: str, seconds: float = READ_AGAIN_AFTER_S, why: str = "") -> None:
    """Do not read this log for some time. Logs whose time is over are forgotten."""
    now = time.monotonic()
    for over in [other for other, (until, _) in _resting.items() if until <= now]:
        _resting.pop(over, None)
    _resting[path] = now + seconds, why


@cache
def rest_interrupted_logs() -> None:
    """Do not read the logs that were being read when a sentinel of this user was killed on this
    host. This is called once for each process, before its first log."""
    # A command that checks once stores no notes, and starts faster without these imports.
    from sentinel.store.errors import StateRefused
    from sentinel.store.spare_journals import make_volatile_dirs

    for place in make_volatile_dirs("reading"):
        with suppress(OSError, StateRefused):
            place.require_folder()
            for path, age_s in reading_notes.begin_notes(place.folder, READ_AGAIN_AFTER_S):
                rest_log(
                    path, READ_AGAIN_AFTER_S - age_s, "was being read when sentinel was killed"
                )
            return


def _describe_resting(path: str, why: str, seconds: float) -> str:
    what = (
        why
        or f"could not be read within {READ_LIMIT_S:.0f} s of processor time and the memory for it"
    )
    return (
        f"{visible(path)} {what}: look what is written into it; "
        f"it is read again in {duration_text(seconds)}"
    )


def _start_dialogue(max_memory_bytes: int) -> Dialogue:
    paths = msgspec.json.encode([_SOURCE_ROOT, *sys.path]).decode()
    argv = [sys.executable, "-I", "-S", "-c", _CHILD_START_CODE, paths]
    argv += [str(max_memory_bytes), str(READ_LIMIT_S)]
    return Dialogue(argv, os.environ)


def _ask_child(child: Dialogue, request: bytes, limit: float) -> bytes:
    """The answer. Raises what Dialogue.ask_request raises; the child has ended then."""
    answer, _ = child.ask_request(
        with_length(request),
        lambda head: (read_length(head), 0),
        LENGTH_BYTES,
        limit,
        _MAX_ANSWER_BYTES,
    )
    return answer


def close_idle_children() -> None:
    """End the child that waits for the next run. The end of this process ends it too."""
    while _idle_children:
        _idle_children.pop().end_child()
