"""Nights of trainings that die, played against the `job` check with a moved clock.

    python -m benchmarks.nights [--nights 1000] [--seed 1]

Each night one training dies some times, and one behaviour answers: a launcher, cron, the job's own
trap, a requeue, a person who reads the message. At last nothing answers. Printed: how late a death
was told of which nothing automatic followed, and messages about gaps that ended by themselves.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from sentinel.alerting.state_machine import AlertPolicy, advance_alert
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import JobRun, Submission
from sentinel.core.model import Alert, Key, Status
from sentinel.core.ports import Context
from sentinel.testing import FixedSlurm
from tests.checks.job.making import Watch, check, job

KEY, POLICY = Key("lab", "training", "train"), AlertPolicy(kind="job")
EVERY_S, MIN_JOB_AGE_S = 60, 300
DEATHS = ("FAILED", "FAILED", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT", "TIMEOUT")
MORNING_S = 8 * 3600.0
"""A person who was not told looks for themselves after it."""

PROMPT_S = 120.0
"""A death of which no rhythm was seen is told within it by the service."""


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
    def automatic(self) -> bool:
        return not self.hand


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
}


@dataclass
class Row:
    """A run of a job; `submitted` may lie before its beginning."""

    number: int
    submitted: float
    begun: float
    ended: float
    state: str
    by: str
    own: bool


@dataclass
class Tally:
    """What came of the deaths of one behaviour."""

    deaths: int = 0
    told_after: list[float] = field(default_factory=list)
    false: int = 0
    repeats: int = 0
    missed: int = 0


class Night:
    """One training, one behaviour, from its first job to the death that nothing follows."""

    def __init__(self, behaviour: Behaviour, drawn: random.Random, deaths: int) -> None:
        self.behaviour, self.drawn, self.left = behaviour, drawn, deaths
        self.watch = Watch(check())
        self.alert: Alert | None = None
        self.start = self.watch.clock.now().wall / SECOND
        self.rows = [self._row(10, -30.0, -30.0, own=False)]
        self.messages: list[float] = []
        self.tally = Tally()

    def _row(self, number: int, submitted: float, begun: float, *, own: bool) -> Row:
        state = self.behaviour.state or self.drawn.choice(DEATHS)
        length = self.drawn.uniform(900, 9000)
        by = self.behaviour.by
        return Row(number, submitted, begun, begun + length, state, by, own)

    def play(self) -> Tally:
        """All deaths; the last one is followed by nothing."""
        now = self._look(0.0)
        while True:
            row = self.rows[-1]
            now = self._look(max(now, row.ended - 2 * EVERY_S))
            told_before, last = len(self.messages), self.left == 0
            now = self._until_answered(now, row, last)
            self._count(row, self.messages[told_before:], last)
            if last:
                return self.tally
            self.left -= 1

    def _until_answered(self, now: float, row: Row, last: bool) -> float:
        """Looks until the next job has begun; until late in the morning where none comes."""
        b, first, answered = self.behaviour, len(self.messages), False
        if not last and not b.hand:
            answered = self._answer(row, row.ended + b.after(self.drawn, self.start + row.ended))
        while now < row.ended + (4 * 3600 if last else 3 * MORNING_S):
            if answered and now > self.rows[-1].begun:
                break
            now = self._look((now // EVERY_S + 1) * EVERY_S)
            told = self.messages[first:]
            if b.hand and not last and not answered and (told or now > row.ended + MORNING_S):
                since = told[0] + b.after(self.drawn, 0.0) if told else now
                answered = self._answer(row, max(since, now + 1))
        return now

    def _answer(self, row: Row, at: float) -> bool:
        b = self.behaviour
        number = row.number if b.requeue else row.number + 1
        submitted = row.submitted if b.queued or b.requeue else at
        self.rows.append(self._row(number, submitted, max(at, row.ended + 1), own=b.own))
        return True

    def _look(self, now: float) -> float:
        """A pass at that second, and the second look where that decides something soon."""
        while True:
            here = self.start + now
            self.watch.clock.advance(now - (self.watch.clock.now().wall / SECOND - self.start))
            finding = self._seen(here)
            done = advance_alert(KEY, self.alert, finding, POLICY, self.watch.clock.now())
            self.alert = done.alert
            if done.transition and done.transition.status is Status.CRITICAL:
                self.messages.append(now)
            soon = _left(self.alert, finding, self.watch.clock.now())
            if soon is None:
                return now
            now += soon

    def _seen(self, here: float) -> Any:
        more: dict[str, Any] = {}
        if "told" in Context.__struct_fields__ and self.messages and self.alert is not None:
            wall = int((self.start + self.messages[-1]) * SECOND)
            more["told"] = {"train": Instant(wall=wall)}
        report = self.watch.check.run(
            Context(name="training", limit=10.0, now=self.watch.clock.now(),
                    slurm=self._slurm(here), memory=self.watch.memory, **more)
        )  # fmt: skip
        assert report.memory is not None
        self.watch.memory = report.memory
        return report.findings[0]

    def _slurm(self, here: float) -> FixedSlurm:
        jobs, ends, submissions, now = [], {}, {}, here - self.start
        for row in self.rows[-4:]:
            number, times = str(row.number), [int(self.start + t) for t in (row.begun, row.ended)]
            if row.begun <= now < row.ended:
                jobs.append(job(number, submitted=int(self.start + row.submitted),
                                started=times[0], ends=times[1] + 60))  # fmt: skip
                host = {"host": "node-0" if row.own else "login1"}
                known: dict[str, Any] = host if "host" in Submission.__struct_fields__ else {}
                submissions[number] = Submission(
                    id=number, name="train", user="alice", workdir="/w", **known
                )
            elif row.ended <= now < row.ended + MIN_JOB_AGE_S:
                ends[number] = JobRun(
                    job_id=number, id=number, array_id=number, name="train", user="alice",
                    state=row.state, partition="prod", nodes="node-[0-3]", started=times[0],
                    submitted=int(self.start + row.submitted), ended=times[1], source="squeue",
                    cancelled_by=row.by,
                )  # fmt: skip
        # What waits in the queue all along: the next element of an array, a dependent.
        if self.behaviour.queued and self.left:
            jobs.append(job("99", "PENDING", "Dependency", submitted=int(self.start) - 60,
                            started=None))  # fmt: skip
        return FixedSlurm(jobs=jobs, ends=ends, reservations=(), submissions=submissions)

    def _count(self, row: Row, told: list[float], last: bool) -> None:
        self.tally.deaths += 1
        own_hand = bool(self.behaviour.by)  # accounting says that its owner has cancelled it
        needed = last or self.behaviour.hand
        self.tally.repeats += max(0, len(told) - 1)
        if told and (own_hand or not needed):
            self.tally.false += 1
        elif told:
            self.tally.told_after.append(told[0] - row.ended)
        elif needed and not own_hand:
            self.tally.missed += 1


def _left(alert: Alert | None, finding: Any, now: Instant) -> float | None:
    if not finding.status.bad or alert is None or alert.firing or alert.rose is None:
        return None
    left = float(finding.patience - (now.wall - alert.rose.wall) / SECOND)
    return left if 0 < left <= EVERY_S else None


def play(nights: int, seed: int = 1, deaths: tuple[int, int] = (4, 12)) -> dict[str, Tally]:
    """So many nights, each behaviour in turn, mixed by the seed; so many `deaths` are answered."""
    drawn, tallies = random.Random(seed), {name: Tally() for name in BEHAVIOURS}
    for number in range(nights):
        name = list(BEHAVIOURS)[number % len(BEHAVIOURS)]
        found = Night(
            BEHAVIOURS[name], random.Random(drawn.random()), drawn.randint(*deaths)
        ).play()
        one = tallies[name]
        one.deaths += found.deaths
        one.told_after += found.told_after
        one.false += found.false
        one.repeats += found.repeats
        one.missed += found.missed
    return tallies


def main() -> None:
    """Print a table by behaviour."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nights", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{'behaviour':<20}{'deaths':>7}{'told':>6}{'median':>8}{'latest':>8}{'false':>7}"
          f"{'twice':>7}{'missed':>8}")  # fmt: skip
    for name, one in play(options.nights, options.seed).items():
        late = [f"{f(one.told_after):.0f} s" if one.told_after else "-" for f in (median, max)]
        print(f"{name:<20}{one.deaths:>7}{len(one.told_after):>6}{late[0]:>8}{late[1]:>8}"
              f"{one.false:>7}{one.repeats:>7}{one.missed:>8}")  # fmt: skip


if __name__ == "__main__":
    main()
