"""One question to Slurm, however many checks ask it."""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import Generic, TypeVar

from sentinel.core.clock import Instant, elapsed
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Clock

Told = TypeVar("Told")

FIRST_PAUSE = 5.0
LONGEST_PAUSE = 300.0


class Pause:
    """How long not to ask again after failures: 5 s, doubled each time, at most 5 min."""

    def __init__(self) -> None:
        self._failures = 0
        self._since = Instant(0)
        self._why = CannotTell()

    def check(self, now: Instant) -> None:
        """Raise the last failure again while its pause lasts."""
        if self._failures and elapsed(self._since, now) < self.seconds:
            raise CannotTell(self._why.message, self._why.words)

    @property
    def seconds(self) -> float:
        """The length of the present pause; 0 while Slurm answers."""
        if not self._failures:
            return 0.0
        return min(FIRST_PAUSE * 2.0 ** min(self._failures - 1, 32), LONGEST_PAUSE)

    def failed(self, now: Instant, why: CannotTell) -> None:
        self._failures, self._since, self._why = self._failures + 1, now, why

    def worked(self) -> None:
        self._failures = 0


class Answer(Generic[Told]):
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
        self.pause = Pause()

    def get(self, after: Instant | None = None) -> Told:
        """The answer, at most `max_age` old or asked for while this call waited, and not asked
        before `after`; CannotTell."""
        asked = self._asked
        if not self._lock.acquire(timeout=self._patience):
            raise CannotTell("Slurm is being asked, and has not answered yet")
        try:
            self.pause.check(self._clock.now())
            if self._told and (self._asked != asked or self._fresh(self._told[0], after)):
                return self._told[1]
            return self._renew()
        finally:
            self._lock.release()

    @property
    def last(self) -> Told | None:
        """The last answer, however old; nothing is asked."""
        return self._told[1] if self._told else None

    @property
    def began(self) -> Instant | None:
        """When the last answer was asked for."""
        return self._told[0] if self._told else None

    def _fresh(self, asked: Instant, after: Instant | None) -> bool:
        if after is not None and elapsed(asked, after) > 0:
            return False
        return elapsed(asked, self._clock.now()) < self._max_age

    def _renew(self) -> Told:
        # The old answer goes first: a queue of 100,000 jobs need not be held twice.
        began, self._told = self._clock.now(), None
        started = time.monotonic()
        try:
            told = self._ask()
        except CannotTell as error:
            self.pause.failed(self._clock.now(), error)
            raise
        self.took = time.monotonic() - started
        self.pause.worked()
        self._told, self._asked = (began, told), self._asked + 1
        return told
