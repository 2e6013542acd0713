"""What follows the end of a job: launchers, cron, the job itself, and people."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Behaviour:
    """What follows an end. `after(drawn, end)`: seconds to the next submission, from the end;
    for a `hand` from the message. `own`: it is submitted from the job's own node."""

    after: Callable[[random.Random, float], float]
    hand: bool = False
    own: bool = False
    requeue: bool = False
    queued: bool = False
    state: str = ""
    by: str = ""

    @property
    def gaps_to_learn(self) -> int:
        """Gaps after which its rhythm is known."""
        return 1 if self.own or self.requeue or self.queued else 3


def sleeping(seconds: float) -> Callable[[random.Random, float], float]:
    """A launcher that sleeps so long and submits."""
    return lambda drawn, _: seconds + drawn.uniform(0, 5)


def at_minutes(period: float) -> Callable[[random.Random, float], float]:
    """cron, every so many seconds by the clock."""
    return lambda drawn, end: period - end % period + drawn.uniform(1, 4)


def person(seconds: float) -> Callable[[random.Random, float], float]:
    """Nobody is as punctual as a launcher."""
    return lambda drawn, _: seconds * drawn.lognormvariate(0, 0.6)


BEHAVIOURS = {
    "launcher, 10 s": Behaviour(sleeping(10)),
    "launcher, 3 min": Behaviour(sleeping(180)),
    "launcher, 10 min": Behaviour(sleeping(600)),
    "launcher, 30 min": Behaviour(sleeping(1800)),
    "cron, 10 min": Behaviour(at_minutes(600)),
    "own trap": Behaviour(lambda drawn, _: drawn.uniform(-20, 45), own=True),
    "hand, 1 min": Behaviour(person(60), hand=True),
    "hand, 20 min": Behaviour(person(1200), hand=True),
    "hand, 300 min": Behaviour(person(18000), hand=True),
    "requeue": Behaviour(lambda drawn, _: drawn.uniform(0, 90), requeue=True),
    "array": Behaviour(lambda *_: 2.0, queued=True),
    "afterany": Behaviour(lambda *_: 2.0, queued=True),
    "cancels and edits": Behaviour(person(900), state="CANCELLED", by="alice"),
    "cancels, unsaid": Behaviour(person(900), state="CANCELLED"),
}
