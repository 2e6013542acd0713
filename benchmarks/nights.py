"""Nights of trainings that die, played against the `job` check with a moved clock.

    python -m benchmarks.nights [--nights 1000] [--seed 1] [--every 60 --every 600]
                                [--deaths-a-week 3] [--only NAME] [--accounting]

Each night one training dies some times, and one behaviour answers: a launcher, cron, the job's own
trap, a requeue, a person who reads the message. At last nothing answers. Printed by behaviour:

told     deaths that nothing automatic followed, and that were told; median and latest from the end
false    messages about gaps that ended by themselves
known    of them those whose rhythm had been seen: three gaps after ends of that kind or of several
         kinds, which Slurm remembered, or one gap that no person can have ended
late     told later than two minutes (of a chain: a pass) though no rhythm was seen; after an end that
         may be planned, 10 minutes later
slow     the same where no rhythm was there to be seen, whatever was taken for one: after hands, and
         before enough gaps
twice    messages beyond the first about one death
open     deaths that were told and answered, and whose end was not told once
missed   deaths that needed somebody, and that nobody was told of

and how many messages that makes for a person a week, and the delays of each kind of death, of those
before which no rhythm was there to be seen. A table for each `--every`: seconds between two passes; 60 is the
service, 600 a chain of jobs. `--accounting`: Slurm remembers each end for longer than five minutes;
without it only those of whom it is known who has cancelled them.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.night_behaviours import BEHAVIOURS, Behaviour
from sentinel.alerting.state_machine import AlertPolicy, advance_alert
from sentinel.checks.job.rhythm import PLANNED_GAP_S, SECOND_LOOK_S
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import JobPast, JobRun, Submission
from sentinel.core.model import Alert, Key, Status
from sentinel.core.ports import Context
from sentinel.testing import FixedSlurm
from tests.checks.job.making import Watch, check, job

KEY, POLICY = Key("lab", "training", "train"), AlertPolicy(kind="job")
EVERY_S, MIN_JOB_AGE_S, ACCOUNTING_AGE_S = 60, 300, 30 * 86400
CALM_S = 600.0
"""Seconds between two passes while nothing can change but that a job begins."""

SECOND_LOOK_LIMIT_S = 60.0
"""A pass waits so long for a second look that decides something."""
PLANNED = ("COMPLETED", "PREEMPTED")
"""Ends that may be planned: exit code 0, and a job that made room for another."""

DEATHS = (*["FAILED"] * 3, "NODE_FAIL", "OUT_OF_MEMORY", *["TIMEOUT"] * 2, *PLANNED)
MORNING_S = 8 * 3600.0
"""A person who was not told looks for themselves after it."""

PROMPT_S = 120.0
"""A death of which no rhythm was seen is told within it by the service, by a chain within a pass."""

ON_CALL_TRAININGS = 4
"""Trainings of one size that somebody on call looks after."""


class RememberingSlurm(FixedSlurm):
    """A Slurm that tells of the past only what it is asked for."""

    accounting = False

    def past(
        self,
        job_ids: Collection[str],
        names: Collection[str],
        since: float,
        *,
        failed_within: float = 0.0,
    ) -> JobPast:
        every = super().past(job_ids, names, since).runs
        runs = tuple(run for run in every if run.job_id in job_ids or run.name in names)
        return JobPast(runs=runs, accounting=self.accounting)


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
    without_rhythm: list[tuple[str, float]] = field(default_factory=list)
    false: int = 0
    false_known: int = 0
    late: int = 0
    slow: int = 0
    repeats: int = 0
    unended: int = 0
    missed: int = 0

    def add_night(self, night: Tally) -> None:
        """All of it, summed up."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(night, name))


@dataclass(frozen=True)
class Message:
    """When a death was told, and for how long it had waited by a rule, in seconds."""

    at: float
    patience: float

    @property
    def rhythm_known(self) -> bool:
        return self.patience > SECOND_LOOK_S


class Night:
    """One training, one behaviour, from its first job to the death that nothing follows."""

    def __init__(
        self,
        behaviour: Behaviour,
        drawn: random.Random,
        deaths: int,
        every_s: int = EVERY_S,
        *,
        accounting: bool = False,
    ) -> None:
        self.remembered_s = ACCOUNTING_AGE_S if accounting or behaviour.by else MIN_JOB_AGE_S
        self.behaviour, self.drawn, self.left = behaviour, drawn, deaths
        self.every_s = every_s
        self.watch = Watch(check())
        self.alert: Alert | None = None
        self.start = self.watch.clock.now().wall / SECOND
        self.rows = [self._row(10, -30.0, -30.0, own=False)]
        self.messages: list[Message] = []
        self.gaps: list[str] = []  # States of the ends that something has followed.
        self.ends = 0
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
            now = self._look(max(now, row.ended - 2 * self.every_s))
            told_before, ends_before, last = len(self.messages), self.ends, self.left == 0
            now = self._until_answered(now, row, last)
            told = self.messages[told_before:]
            self._count(row, told, last)
            self.tally.unended += not last and self.ends - ends_before != len(told)
            if last:
                return self.tally
            if self._is_gap_seen(row.ended, self.rows[-1].begun):
                self.gaps.append(row.state)
            self.left -= 1

    def _until_answered(self, now: float, row: Row, last: bool) -> float:
        """Looks until the next job has begun; until late in the morning where none comes."""
        b, first, answered = self.behaviour, len(self.messages), False
        if not last and not b.hand:
            answered = self._answer(row, row.ended + b.after(self.drawn, self.start + row.ended))
        while answered or now < row.ended + (4 * 3600 if last else 3 * MORNING_S):
            if answered and now > self.rows[-1].begun:
                break
            now = self._look(self._next_pass(now, answered))
            told = self.messages[first:]
            if b.hand and not last and not answered and (told or now > row.ended + MORNING_S):
                since = told[0].at + b.after(self.drawn, 0.0) if told else now
                answered = self._answer(row, max(since, now + 1))
        return now

    def _next_pass(self, now: float, answered: bool) -> float:
        """The next one that can change something: only a job can, and the end of a wait."""
        following = (now // self.every_s + 1) * self.every_s
        if now <= self.rows[-1 - answered].ended:
            return following
        left = CALM_S
        if self.finding.status.bad and not (self.alert and self.alert.firing):
            rose = self.alert.rose if self.alert and self.alert.rose else self.watch.clock.now()
            waited = (self.watch.clock.now().wall - rose.wall) / SECOND
            left = max(0.0, 0.8 * self.finding.patience - waited)
        calm = following + left // self.every_s * self.every_s
        begins = self.rows[-1].begun if answered else calm
        return max(following, min(calm, begins // self.every_s * self.every_s))

    def _is_gap_seen(self, ended: float, begun: float) -> bool:
        """Whether a pass may have seen it: of a job that keeps its id nothing else tells. Of any
        other Slurm has to remember the end."""
        following = (ended // self.every_s + 1) * self.every_s
        if self.behaviour.requeue:
            return begun >= following
        return self.behaviour.gaps_to_learn == 1 or following < ended + self.remembered_s

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
                self.messages.append(Message(now, finding.patience))
            elif done.transition:
                self.ends += 1
            soon = _left(self.alert, finding, self.watch.clock.now())
            if soon is None:
                return now
            now += soon

    def _seen(self, here: float) -> Any:
        more: dict[str, Any] = {}
        if "told" in Context.__struct_fields__ and self.messages and self.alert is not None:
            wall = int((self.start + self.messages[-1].at) * SECOND)
            more["told"] = {"train": Instant(wall=wall)}
        report = self.watch.check.run(
            Context(name="training", limit=10.0, now=self.watch.clock.now(),
                    slurm=self._slurm(here), memory=self.watch.memory, **more)
        )  # fmt: skip
        assert report.memory is not None
        self.watch.memory = report.memory
        self.finding = report.findings[0]
        return self.finding

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
            elif row.ended <= now < row.ended + self.remembered_s:
                ends[number] = JobRun(
                    job_id=number, id=number, array_id=number, name="train", user="alice",
                    state=row.state, partition="prod", nodes="node-[0-3]", started=times[0],
                    submitted=int(self.start + row.submitted), ended=times[1],
                    source="squeue" if now < row.ended + MIN_JOB_AGE_S else "sacct",
                    cancelled_by=row.by,
                )  # fmt: skip
        # What waits in the queue all along: the next element of an array, a dependent.
        if self.behaviour.queued and self.left:
            jobs.append(job("99", "PENDING", "Dependency", submitted=int(self.start) - 60,
                            started=None))  # fmt: skip
        slurm = RememberingSlurm(jobs=jobs, ends=ends, reservations=(), submissions=submissions)
        slurm.accounting = self.remembered_s > MIN_JOB_AGE_S
        return slurm

    def _count(self, row: Row, told: list[Message], last: bool) -> None:
        self.tally.deaths += 1
        own_hand = row.state == "CANCELLED"  # its owner knows
        needed = last or self.behaviour.hand
        self.tally.repeats += max(0, len(told) - 1)
        if told and (own_hand or not needed):
            self.tally.false += 1
            self.tally.false_known += self._is_rhythm_known(row)
        elif told:
            after = told[0].at - row.ended
            self.tally.told_after.append(after)
            prompt = PROMPT_S if self.every_s == EVERY_S else self.every_s + SECOND_LOOK_LIMIT_S
            prompt += PLANNED_GAP_S if row.state in PLANNED else 0
            self.tally.late += after > prompt and not told[0].rhythm_known
            if self.behaviour.hand or not self._is_rhythm_known(row):
                self.tally.without_rhythm.append((row.state, after))
                self.tally.slow += after > prompt
        elif needed and not own_hand:
            self.tally.missed += 1

    def _is_rhythm_known(self, row: Row) -> bool:
        """Whether enough gaps were seen before this end, of whatever was learned from them."""
        needed, kinds = self.behaviour.gaps_to_learn, len(set(self.gaps))
        same = self.gaps.count(row.state) >= needed
        return row.state != "CANCELLED" and (same or (len(self.gaps) >= needed and kinds > 1))


def _left(alert: Alert | None, finding: Any, now: Instant) -> float | None:
    if not finding.status.bad or alert is None or alert.firing or alert.rose is None:
        return None
    left = float(finding.patience - (now.wall - alert.rose.wall) / SECOND)
    return left if 0 < left <= SECOND_LOOK_LIMIT_S else None


def play(
    nights: int,
    seed: int = 1,
    deaths: tuple[int, int] = (4, 12),
    every_s: int = EVERY_S,
    names: Sequence[str] = tuple(BEHAVIOURS),
    *,
    accounting: bool = False,
) -> dict[str, Tally]:
    """So many nights, each behaviour in turn, mixed by the seed; so many `deaths` are answered."""
    drawn, tallies = random.Random(seed), {name: Tally() for name in names}
    for number in range(nights):
        name = names[number % len(names)]
        found = Night(
            BEHAVIOURS[name],
            random.Random(drawn.random()),
            drawn.randint(*deaths),
            every_s,
            accounting=accounting,
        ).play()
        tallies[name].add_night(found)
    return tallies


def print_table(tallies: dict[str, Tally], deaths_a_week: float) -> None:
    """A row for each behaviour, and what it makes for a person."""
    heads = (
        "deaths",
        "told",
        "median",
        "latest",
        "false",
        "known",
        "late",
        "slow",
        "twice",
        "open",
        "missed",
    )
    print(f"{'behaviour':<20}" + "".join(f"{head:>8}" for head in heads))
    for name, one in tallies.items():
        late = [f"{f(one.told_after):.0f} s" if one.told_after else "-" for f in (median, max)]
        cells = (one.deaths, len(one.told_after), *late, one.false, one.false_known, one.late,
                 one.slow, one.repeats, one.unended, one.missed)  # fmt: skip
        print(f"{name:<20}" + "".join(f"{cell:>8}" for cell in cells))
    every = Tally()
    for one in tallies.values():
        every.add_night(one)
    print(f"\n{'without a rhythm':<20}" + "".join(f"{head:>8}" for head in heads[1:4]))
    for kind in sorted({kind for kind, _ in every.without_rhythm}):
        after = [seconds for one, seconds in every.without_rhythm if one == kind]
        print(f"{kind:<20}{len(after):>8}{median(after):>6.0f} s{max(after):>6.0f} s")
    weekly = {name: _count_weekly(one, deaths_a_week) for name, one in tallies.items()}
    most = max(weekly, key=lambda name: weekly[name])
    messages = _count_weekly(every, deaths_a_week)
    print(
        f"\nA training that dies {deaths_a_week:g} times a week: {messages:.1f} messages, "
        f"{every.false / every.deaths * deaths_a_week:.1f} of them needless; most ({most}) "
        f"{weekly[most]:.1f}; {ON_CALL_TRAININGS} trainings for who is on call: "
        f"{ON_CALL_TRAININGS * messages:.1f}"
    )


def _count_weekly(tally: Tally, deaths_a_week: float) -> float:
    return (len(tally.told_after) + tally.false) / tally.deaths * deaths_a_week


def main() -> None:
    """Print a table by behaviour."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nights", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, action="append")
    parser.add_argument("--deaths-a-week", type=float, default=3.0)
    parser.add_argument("--only", action="append", choices=BEHAVIOURS, metavar="NAME")
    parser.add_argument("--accounting", action="store_true")
    options = parser.parse_args()
    names = options.only or tuple(BEHAVIOURS)
    for every_s in options.every or (EVERY_S, 600):
        print(f"\n== {options.nights} nights, a pass each {every_s} s ==\n")
        played = play(
            options.nights,
            options.seed,
            every_s=every_s,
            names=names,
            accounting=options.accounting,
        )
        print_table(played, options.deaths_a_week)


if __name__ == "__main__":
    main()
