"""Caches the answer to one question to Slurm, however many checks ask it."""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import Generic, TypeVar

from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Clock

Told = TypeVar("Told")

FIRST_PAUSE = 5.0
LONGEST_PAUSE = 300.0


class FailurePause:
    """How long Slurm is not asked again after failures: 5 s, doubled with each failure, at most 5
    min."""

    def __init__(self) -> None:
        self._failures = 0
        self._since = Instant(0)
        self._why = CannotTell()

    def raise_while_paused(self, now: Instant) -> None:
        """Raise CannotTell with the words of the last failure while its pause lasts."""
        if self._failures and get_elapsed_s(self._since, now) < self.pause_s:
            raise CannotTell(self._why.message, self._why.words)

    @property
    def pause_s(self) -> float:
        """The length of the present pause; 0 while Slurm answers."""
        if not self._failures:
            return 0.0
        return min(FIRST_PAUSE * 2.0 ** min(self._failures - 1, 32), LONGEST_PAUSE)

    def record_failure(self, now: Instant, why: CannotTell) -> None:
        self._failures, self._since, self._why = self._failures + 1, now, why

    def record_success(self) -> None:
        self._failures = 0


class CachedAnswer(Generic[Told]):
    """The answer to one question: asked by one thread at a time, kept for `max_age` seconds.

    A failure is kept as well, and longer each time. `patience`: how long a thread waits for
    another one that is asking; `took`: seconds that the last answer took.
    """

    def __init__(
        self, ask: Callable[[], Told], clock: Clock, *, max_age: float, patience: float
    ) -> None:
        self._ask, self._clock = ask, clock
        self._max_age, self._patience = max_age, patience
        self._lock = allocate_lock()
        self._told: tuple[Instant, Told] | None = None
        self._asked = 0
        self.took = 0.0
        self.pause = FailurePause()

    def get_answer(self, after: Instant | None = None) -> Told:
        """The answer. It is at most `max_age` seconds old, or was requested while this call waited.
        It was never requested before `after`. Raises CannotTell."""
        asked = self._asked
        if not self._lock.acquire(timeout=self._patience):
            raise CannotTell("Slurm is being asked, and has not answered yet")
        try:
            self.pause.raise_while_paused(self._clock.now())
            if self._told and (self._asked != asked or self._is_fresh(self._told[0], after)):
                return self._told[1]
            return self._ask_again()
        finally:
            self._lock.release()

    @property
    def last_answer(self) -> Told | None:
        """The last answer, however old, or None. This never asks Slurm."""
        return self._told[1] if self._told else None

    def await_last_answer(self) -> Told | None:
        """The last answer, however old, or None. This never asks Slurm. The old answer is gone while
        another thread asks; so where a large queue is asked each second it would hardly ever be seen, and
        the new one is waited for."""
        if not self._lock.acquire(timeout=self._patience):
            return None
        try:
            return self.last_answer
        finally:
            self._lock.release()

    @property
    def asked_at(self) -> Instant | None:
        """When the last answer was requested."""
        return self._told[0] if self._told else None

    def _is_fresh(self, asked: Instant, after: Instant | None) -> bool:
        if after is not None and get_elapsed_s(asked, after) > 0:
            return False
        return get_elapsed_s(asked, self._clock.now()) < self._max_age

    def _ask_again(self) -> Told:
        # Free the old answer first, so that a queue of 100,000 jobs is not in memory twice.
        began, self._told = self._clock.now(), None
        started = time.monotonic()
        try:
            told = self._ask()
        except CannotTell as error:
            self.pause.record_failure(self._clock.now(), error)
            raise
        self.took = time.monotonic() - started
        self.pause.record_success()
        self._told, self._asked = (began, told), self._asked + 1
        return told
