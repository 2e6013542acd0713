"""Many trainings in one check: none that runs is forgotten, and the time is shared."""

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from sentinel.checks.trainings import (
    MAX_ENDED_REMEMBERED,
    TIME_SHARE,
    UNSEEN_FOR_TIME,
    jobs_by_subject,
    look_at_each,
)
from sentinel.core.cluster import Job
from sentinel.core.model import Coverage, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.testing import FixedSlurm, context
from tests.checks.log.jobs import job

NOTHING = Finding(subject="", status=Status.OK, summary="nothing runs")


class Counting:
    """Counts, in the memory of each training, how often it was looked at."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.memory: dict[str, Any] = {}
        self.limits: list[float] = []

    def look(self, ctx: Context, subject: str, jobs: Sequence[Job]) -> Report:
        self.limits.append(ctx.limit)
        time.sleep(self.seconds)
        count = ctx.memory.get("looks", 0) + 1
        finding = Finding(subject=subject, status=Status.OK, summary=f"looked at {count} times")
        return Report(
            findings=(finding,),
            coverage=Coverage(of="logs", meant=len(jobs), excused="" if jobs else "ended"),
            memory={"looks": count},
        )

    def run(self, *names: str, limit: float = 60.0) -> Report:
        jobs = [job(id=name, job_id=name, name=name, user="ann") for name in names]
        ctx = context(FixedSlurm(jobs=tuple(jobs)), memory=self.memory, limit=limit)
        report = look_at_each(ctx, jobs_by_subject(["ann"], jobs), self.look, NOTHING, "logs")
        self.memory = msgspec.json.decode(msgspec.json.encode(report.memory))
        return report

    def looks(self, report: Report) -> dict[str, str]:
        return {finding.subject: finding.summary for finding in report.findings}


def test_no_training_that_runs_is_forgotten_however_many_there_are() -> None:
    """What is forgotten of one that runs is its hang: each look would be the first."""
    check = Counting()
    names = [f"train-{n}" for n in range(MAX_ENDED_REMEMBERED + 1)]
    check.run(*names)
    told = check.looks(check.run(*names))
    assert set(told.values()) == {"looked at 2 times"}
    assert len(told) == MAX_ENDED_REMEMBERED + 1


def test_of_those_that_ended_the_newest_are_remembered() -> None:
    """One more ended than are remembered, beside one that runs: the oldest of the ended ones goes."""
    check = Counting()
    ended = [f"train-{n}" for n in range(MAX_ENDED_REMEMBERED + 1)]
    check.run("runs", *ended)
    check.run("runs")
    kept = check.memory["trainings"]
    assert set(ended) - set(kept) == {"train-0"}
    assert kept["runs"] == {"looks": 2}


def test_a_look_gets_the_time_that_is_left_of_its_share() -> None:
    """So that the check ends within its own limit, and what was seen is remembered."""
    check = Counting(seconds=0.05)
    check.run("one", "two", limit=10.0)
    first, second = check.limits
    assert 10.0 * TIME_SHARE - 1 < first <= 10.0 * TIME_SHARE
    assert second <= first - 0.05


def test_whoever_had_no_time_comes_first_in_the_next_run() -> None:
    """Without time it is unseen, never ok; and slow trainings before it hide it once only."""
    check = Counting(seconds=0.5)
    report = check.run("one", "two", limit=1.6)
    assert check.looks(report) == {"one": "looked at 1 times", "two": UNSEEN_FOR_TIME}
    assert report.coverage.unseen == ("two",)
    report = check.run("one", "two", limit=1.6)
    assert check.looks(report) == {"two": "looked at 1 times", "one": UNSEEN_FOR_TIME}
