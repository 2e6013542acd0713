"""Many trainings in one check: none that runs is forgotten, and the time is shared."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from sentinel.checks import trainings
from sentinel.checks.trainings import (
    MAX_ENDED_REMEMBERED,
    TIME_SHARE,
    UNSEEN_FOR_TIME,
    jobs_by_subject,
    look_at_each,
)
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.model import Coverage, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.testing import START, FixedSlurm, context
from tests.checks.log.jobs import job

NOTHING = Finding(subject="", status=Status.OK, summary="nothing runs")


class MovedClock:
    """A clock that goes on only where a look takes its time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(trainings.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MovedClock:
    return MovedClock(monkeypatch)


class Counting:
    """Counts, in the memory of each training, how often it was looked at."""

    def __init__(self, clock: MovedClock, seconds: float = 0.0) -> None:
        self.clock, self.seconds = clock, seconds
        self.memory: dict[str, Any] = {}
        self.limits: list[float] = []

    def look(self, ctx: Context, subject: str, jobs: Sequence[Job]) -> Report:
        self.limits.append(ctx.limit)
        self.clock.now += self.seconds
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


def test_no_training_that_runs_is_forgotten_however_many_there_are(clock: MovedClock) -> None:
    """What is forgotten of one that runs is its hang: each look would be the first."""
    check = Counting(clock)
    names = [f"train-{n}" for n in range(MAX_ENDED_REMEMBERED + 1)]
    check.run(*names)
    told = check.looks(check.run(*names))
    assert set(told.values()) == {"looked at 2 times"}
    assert len(told) == MAX_ENDED_REMEMBERED + 1


def test_of_those_that_ended_the_newest_are_remembered(clock: MovedClock) -> None:
    """One more ended than are remembered, beside one that runs: the oldest of the ended ones goes."""
    assert MAX_ENDED_REMEMBERED == 1000  # the memory of a check is written at each pass
    check = Counting(clock)
    ended = [f"train-{n}" for n in range(MAX_ENDED_REMEMBERED + 1)]
    check.run("runs", *ended)
    check.run("runs")
    kept = check.memory["trainings"]
    assert set(ended) - set(kept) == {"train-0"}
    assert kept["runs"] == {"looks": 2}


def test_what_ended_again_is_the_newest_of_those_that_ended(clock: MovedClock) -> None:
    check = Counting(clock)
    ended = [f"train-{n}" for n in range(MAX_ENDED_REMEMBERED)]
    for more in (ended, ["train-0"], ["new"]):
        check.run("runs", *more)
        check.run("runs")
    assert {*ended, "new", "runs"} - set(check.memory["trainings"]) == {"train-1"}


def test_an_end_that_there_was_no_time_for_is_looked_at_in_the_next_run(clock: MovedClock) -> None:
    check = Counting(clock, seconds=0.5)
    check.run("one", "two")
    assert check.looks(check.run("one", limit=1.6))["two"] == UNSEEN_FOR_TIME
    assert check.memory["running"]["two"] == ["two"]  # a list of jobs that lacks it may be cut
    assert check.looks(check.run("one"))["two"] == "looked at 2 times"
    assert "two" not in check.looks(check.run("one"))


def test_a_look_gets_the_time_that_is_left_of_its_share(clock: MovedClock) -> None:
    """So that the check ends within its own limit, and what was seen is remembered."""
    check = Counting(clock, seconds=1.0)
    check.run("one", "two", limit=10.0)
    assert check.limits == [10.0 * TIME_SHARE, 10.0 * TIME_SHARE - 1.0]


def test_whoever_had_no_time_comes_first_in_the_next_run(clock: MovedClock) -> None:
    """Without time it is unseen, never ok; and slow trainings before it hide it once only."""
    check = Counting(clock, seconds=0.5)
    report = check.run("one", "two", limit=1.6)
    assert check.looks(report) == {"one": "looked at 1 times", "two": UNSEEN_FOR_TIME}
    assert report.coverage.unseen == ("two",)
    report = check.run("one", "two", limit=1.6)
    assert check.looks(report) == {"two": "looked at 1 times", "one": UNSEEN_FOR_TIME}


class Costly(Counting):
    """Each look at mallory's trainings takes all the time that it gets, up to a second."""

    def look(self, ctx: Context, subject: str, jobs: Sequence[Job]) -> Report:
        if jobs and jobs[0].user == "mallory":
            self.clock.now += min(1.0, ctx.limit)
        return super().look(ctx, subject, jobs)

    def run_users(self, theirs: dict[str, int], limit: float) -> dict[str, str]:
        """`theirs`: how many trainings run, by user; what was told of each."""
        jobs = [
            job(id=f"{user}-{n}", job_id=f"{user}-{n}", name=str(n), user=user)
            for user, count in theirs.items()
            for n in range(count)
        ]
        ctx = context(FixedSlurm(jobs=tuple(jobs)), memory=self.memory, limit=limit)
        report = look_at_each(ctx, jobs_by_subject(["*"], jobs), self.look, NOTHING, "logs")
        self.memory = msgspec.json.decode(msgspec.json.encode(report.memory))
        return self.looks(report)


def test_many_slow_trainings_of_one_user_cost_another_user_no_look(clock: MovedClock) -> None:
    """222 of mallory's stand before alice's one; there is time for two of them in each run."""
    check = Costly(clock)
    for run in (1, 2):
        told = check.run_users({"mallory": 222, "alice": 1}, limit=3.0)
        assert told["alice/0"] == f"looked at {run} times"
        assert list(told.values()).count(UNSEEN_FOR_TIME) == 220


def test_a_training_that_waits_says_for_how_long_and_whose_it_is(clock: MovedClock) -> None:
    """From its last look on, over several runs; of one that was never seen, from its first run on."""
    check, memory = Costly(clock), dict[str, object]()
    jobs = [job(id=f"{n}", job_id=f"{n}", name=f"{n}", user="mallory") for n in range(3)]
    waited = []
    for run in range(3):
        now = shift_instant(START, 60.0 * run)
        ctx = context(FixedSlurm(jobs=tuple(jobs)), now, memory=memory, limit=2.0)
        report = look_at_each(ctx, jobs_by_subject(["*"], jobs), check.look, NOTHING, "logs")
        memory = msgspec.json.decode(msgspec.json.encode(report.memory))
        late = [f for f in report.findings if f.summary == UNSEEN_FOR_TIME]
        assert {f.labels["user"] for f in late} == {"mallory"}
        waited.append({f.subject: f.values["unseen_seconds"] for f in late})
    assert [max(one.values()) for one in waited] == [
        0.0,
        60.0,
        120.0,
    ]  # one has its turn in each run


def test_one_look_takes_half_of_the_time_while_others_wait(clock: MovedClock) -> None:
    check = Costly(clock)
    check.run_users({"mallory": 1, "alice": 1}, limit=5.0)
    assert check.limits == [5.0 * TIME_SHARE / 2, 5.0 * TIME_SHARE - 1.0]


class Timed(MovedClock):
    """Looks that take as long as is said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **looks: tuple[float, Report]) -> None:
        super().__init__(monkeypatch)
        self.looks, self.limits = looks, dict[str, float]()
        self.given: dict[str, Any] = {}

    def look(self, ctx: Context, subject: str, jobs: Sequence[Job]) -> Report:
        name = subject.replace("/", "_")
        self.limits[name], self.given[name] = ctx.limit, (ctx.memory, [j.job_id for j in jobs])
        took, report = self.looks[name]
        self.now += took
        return report

    def run(
        self, *names: str, limit: float = 100.0, nothing: Finding = NOTHING, **more: Any
    ) -> Report:
        """`names` are users and trainings: `ann_one`."""
        pairs = [name.split("_") for name in names]
        jobs = [job(id=f"{u}{n}", job_id=f"{u}{n}", name=n, user=u) for u, n in pairs]
        ctx = replace(context(FixedSlurm(jobs=tuple(jobs)), limit=limit), **more)
        return look_at_each(ctx, jobs_by_subject(["*"], jobs), self.look, nothing, "logs")


def plain(subject: str = "x", **more: Any) -> Report:
    finding = Finding(subject=subject, status=Status.OK, summary="fine")
    return Report(findings=(finding,), coverage=Coverage(of="logs", meant=2), **more)


def test_one_report_has_the_parts_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings, what is shown and remembered of each, and how many files were meant."""
    one = plain("ann/one", memory={"a": 1}, shown={"one": {"x": "1"}})
    two = plain("ann/two", shown={"two": {"x": "2"}})
    timed = Timed(monkeypatch, ann_one=(1, one), ann_two=(1, two))
    report = timed.run("ann_one", "ann_two")
    assert [f.subject for f in report.findings] == ["ann/one", "ann/two"]
    assert (report.coverage.meant, report.coverage.of, report.coverage.excused) == (4, "logs", "")
    assert report.shown == {"one": {"x": "1"}, "two": {"x": "2"}}
    assert report.memory == {
        "trainings": {"ann/one": {"a": 1}, "ann/two": {}},
        "running": {"ann/one": ["annone"], "ann/two": ["anntwo"]},
        "looked": dict.fromkeys(("ann/one", "ann/two"), START.wall),
        "late": [],
    }
    assert report.again is None


def test_what_breaks_the_kind_itself_costs_one_training_its_look(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever one user wrote: the others are looked at, and what is known of this one is kept."""
    jobs = [job(id=user, job_id=user, name="train", user=user) for user in ("ann", "mal", "zoe")]

    def look(ctx: Context, subject: str, jobs: Sequence[Job]) -> Report:
        if subject == "mal/train":
            raise OverflowError("timestamp out of range\x1b[2J")
        return plain(subject)

    memory = {"trainings": {"mal/train": {"kept": 1}}}
    ctx = context(FixedSlurm(jobs=tuple(jobs)), memory=memory)
    report = look_at_each(ctx, jobs_by_subject(["*"], jobs), look, NOTHING, "logs")
    found = {f.subject: f for f in report.findings}
    assert [f.status for f in found.values()] == [Status.OK, Status.UNKNOWN, Status.OK]
    assert "internal error: OverflowError" in found["mal/train"].summary
    assert found["mal/train"].summary.isprintable()
    assert found["mal/train"].labels == {"user": "mal"}
    assert report.coverage.unseen == ("mal/train",)
    assert (report.memory or {})["trainings"]["mal/train"] == {"kept": 1}
    assert "OverflowError" in caplog.text

    def ask(ctx: Context, subject: str, jobs: Sequence[Job]) -> Report:
        if subject != "zoe/train" or blind:
            raise CannotTell("slurmctld does not answer")
        return plain(subject)

    blind = False
    report = look_at_each(ctx, jobs_by_subject(["*"], jobs), ask, NOTHING, "logs")
    assert [f.status for f in report.findings] == [Status.UNKNOWN, Status.UNKNOWN, Status.OK]
    assert report.findings[0].summary == "slurmctld does not answer"
    blind = True
    with pytest.raises(CannotTell):  # of all of them it is no trouble of a user
        look_at_each(ctx, jobs_by_subject(["*"], jobs), ask, NOTHING, "logs")


def test_what_is_remembered_is_given_to_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also to one that ran at the last look and runs no more; a look by hand remembers nothing."""
    before = {
        "trainings": {"ann/one": {"a": 1}, "ann/old": {"b": 2}, "ann/older": {"c": 3}},
        "running": {"ann/old": ["annold"]},
    }
    timed = Timed(monkeypatch, ann_one=(1, plain()), ann_old=(1, plain()))
    report = timed.run("ann_one", memory=before)
    assert timed.given == {"ann_one": ({"a": 1}, ["annone"]), "ann_old": ({"b": 2}, [])}
    assert report.memory is not None
    assert set(report.memory["trainings"]) == {"ann/one", "ann/old", "ann/older"}
    assert report.memory["trainings"]["ann/older"] == {"c": 3}
    by_hand = timed.run("ann_one", memory=before, one_shot=True)
    assert by_hand.memory is None
    assert timed.given["ann_one"] == ({}, ["annone"])


def test_where_nothing_runs_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it has a subject to be said of."""
    timed = Timed(monkeypatch)
    named = Finding(subject="llm", status=Status.OK, summary="nothing runs")
    assert timed.run(nothing=named).findings == (named,)
    quiet = timed.run()
    assert (quiet.findings, quiet.coverage.excused) == ((), "no such job is running")


@pytest.mark.parametrize(
    ("names", "limits"),
    [
        (["ann_one"], [80.0]),
        (["ann_one", "ann_two"], [80.0, 79.0]),
        (["ann_one", "bob_two"], [40.0, 79.0]),
        (["ann_one", "ann_three", "bob_two"], [40.0, 78.0, 39.5]),
    ],
)
def test_how_much_time_each_look_gets(
    monkeypatch: pytest.MonkeyPatch, names: list[str], limits: list[float]
) -> None:
    """Half of what is left while another user waits, all of it else; users take turns."""
    timed = Timed(monkeypatch, **{name: (1, plain()) for name in names})
    timed.run(*names)
    assert [timed.limits[name] for name in names] == limits


@pytest.mark.parametrize(
    ("took", "unseen", "limit"), [(79.0, (), 1.0), (79.001, ("ann/two",), None)]
)
def test_no_look_begins_in_the_last_second(
    monkeypatch: pytest.MonkeyPatch, took: float, unseen: tuple[str, ...], limit: float | None
) -> None:
    """What had no time keeps its memory and its jobs; it comes first next time."""
    before = {"trainings": {"ann/two": {"a": 1}}, "running": {"ann/two": ["anntwo"]}}
    timed = Timed(monkeypatch, ann_one=(took, plain("ann/one")), ann_two=(0, plain("ann/two")))
    report = timed.run("ann_one", "ann_two", memory=before)
    assert report.coverage.unseen == unseen
    assert timed.limits.get("ann_two") == limit
    assert report.memory is not None
    assert report.memory["late"] == [*unseen]
    if unseen:
        assert report.memory["trainings"]["ann/two"] == {"a": 1}
        assert report.findings[1].status is Status.UNKNOWN
        assert report.coverage.meant == 3


def test_a_look_gets_a_second_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what is left may be less, and a child that cannot even start tells nothing."""
    timed = Timed(monkeypatch, ann_one=(0.5, plain()), bob_two=(0, plain()))
    timed.run("ann_one", "bob_two", limit=2.0)
    assert timed.limits == {"ann_one": 1.0, "bob_two": pytest.approx(1.1)}


@pytest.mark.parametrize(
    ("wishes", "again"),
    [((None, None), None), ((30.0, None), 25.0), ((30.0, 10.0), 10.0), ((6.0, 40.0), 1.0),
     ((5.5, None), 1.0)],
)  # fmt: skip
def test_the_earliest_wish_for_another_look_counts(
    monkeypatch: pytest.MonkeyPatch, wishes: tuple[float | None, ...], again: float | None
) -> None:
    """From when it was said; a second at least, so that nothing spins."""
    first, second = (plain(again=wish) for wish in wishes)
    timed = Timed(monkeypatch, ann_one=(1, first), ann_two=(5, second))
    assert timed.run("ann_one", "ann_two").again == again
