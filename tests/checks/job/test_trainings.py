"""Many trainings in one check: each is a subject of its own, and is forgotten in time."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from sentinel.checks.job import JobCheck
from sentinel.checks.job.trainings_round import MAX_TRAININGS
from sentinel.core.cluster import Job, JobEnd, Submission
from sentinel.core.errors import CannotTell
from sentinel.core.model import Coverage, Finding, Report, Status
from sentinel.core.values import Duration
from sentinel.testing import FixedSlurm, ManualClock, context
from tests.checks.job.making import DAY, ended, job, pending

OK, CRITICAL, UNKNOWN = Status.OK, Status.CRITICAL, Status.UNKNOWN


class Watch:
    """A check on many trainings, and what it remembers."""

    def __init__(self, **settings: Any) -> None:
        self.check = JobCheck(**{"match": re.compile("flagship-.*"), "users": ["*"], **settings})
        self.clock = ManualClock()
        self.memory: Mapping[str, Any] = {}
        self.limit = 10.0
        self.report = Report(findings=(), coverage=Coverage(of="trainings", meant=0))

    def look(
        self,
        *jobs: Job,
        ends: Sequence[JobEnd] = (),
        after: float = 60,
        gpus: Mapping[str, int] | None = None,
        slurm: FixedSlurm | None = None,
    ) -> dict[str, Finding]:
        """The findings of one run, by subject."""
        now = self.clock.advance(after)
        known = {end.job_id: end for end in ends}
        source = slurm or FixedSlurm(jobs=jobs, ends=known, gpus=gpus)
        ctx = context(source, now, memory=self.memory, limit=self.limit)
        self.report = self.check.run(ctx)
        self.memory = self.report.memory or {}
        assert len({f.subject for f in self.report.findings}) == len(self.report.findings)
        return {f.subject: f for f in self.report.findings}


def flagship(number: str, letter: str, user: str = "alice", **more: Any) -> Job:
    return job(number, name=f"flagship-{letter}", user=user, **more)


def test_a_training_that_failed_is_told_beside_one_that_runs() -> None:
    """One pattern, two subjects; neither hides the other."""
    watch = Watch()
    watch.look(flagship("10", "a"), flagship("11", "b", "bob"))
    found = watch.look(flagship("11", "b", "bob"), ends=[ended("10")])
    assert {s: f.status for s, f in found.items()} == {
        "alice/flagship-a": CRITICAL,
        "bob/flagship-b": OK,
    }
    dead = found["alice/flagship-a"]
    assert "job 10 FAILED" in dead.summary
    assert (dead.labels["user"], dead.labels["job"]) == ("alice", "flagship-a")


def test_the_same_name_of_two_users_is_two_trainings() -> None:
    """An exact name with everybody's jobs too: who died is told, who runs is not disturbed."""
    watch = Watch(match=None, name="train")
    watch.look(job("10"), job("11", user="bob"))
    found = watch.look(job("11", user="bob"), ends=[ended("10")])
    assert {s: f.status for s, f in found.items()} == {"alice/train": CRITICAL, "bob/train": OK}


@pytest.mark.parametrize(
    ("users", "subject"),
    [
        ([], "flagship-a"),
        (["alice"], "flagship-a"),
        (["alice", "bob"], "alice/flagship-a"),
        (["group:six"], "alice/flagship-a"),
        (["*"], "alice/flagship-a"),
    ],
)
def test_the_user_is_part_of_a_subject_where_names_may_collide(
    users: list[str], subject: str
) -> None:
    """By the settings alone: what is in the queue does not change the key of an alert."""
    check = JobCheck(match=re.compile("flagship-.*"), users=users)
    assert check.subject_of("alice", "flagship-a") == subject


def test_a_named_training_of_a_team_stays_one() -> None:
    """Who of the listed users runs it does not matter."""
    check = JobCheck(name="train", users=["alice", "bob"])
    report = check.run(context(FixedSlurm(jobs=[job(user="bob")])))
    assert [f.subject for f in report.findings] == ["train"]


@pytest.mark.parametrize("name", ["a\nb\x1b[2J", "x" * 5000, "", "\udcff", "ü☃" * 99])
def test_an_odd_name_is_a_subject_of_its_own(name: str) -> None:
    """Visible, short, stable, and another one than that of a name that begins alike."""
    check = JobCheck(users=["*"])
    subject = check.subject_of("alice", name)
    assert subject.isprintable()
    assert len(subject) < 160
    assert subject == check.subject_of("alice", name) != check.subject_of("bob", name)
    assert subject != check.subject_of("alice", name + "y")


def test_a_good_end_is_no_alarm_and_is_forgotten() -> None:
    """COMPLETED closes what was told; the next run does not speak of it any more."""
    watch = Watch()
    watch.look(flagship("10", "a"))
    found = watch.look(ends=[ended("10", "COMPLETED", exit_code=0)])
    assert found["alice/flagship-a"].status is OK
    assert "COMPLETED" in found["alice/flagship-a"].summary
    assert watch.look() == {}
    assert watch.memory["trainings"] == {}


def test_with_a_successor_wanted_a_good_end_is_none() -> None:
    """`queued` says that it has to go on: as with a name, `done_when` would prove the end."""
    watch = Watch(queued=1)
    watch.look(flagship("10", "a"))
    assert watch.look(ends=[ended("10", "COMPLETED")])["alice/flagship-a"].status is CRITICAL


@pytest.mark.parametrize("ends", [[ended("10")], []], ids=["failed", "no trace"])
def test_a_death_is_told_for_a_day_and_then_forgotten(ends: list[JobEnd]) -> None:
    """FAILED, or vanished without a trace; the memory does not grow for ever."""
    watch = Watch()
    watch.look(flagship("10", "a"))
    for _ in range(23):
        assert watch.look(ends=ends, after=3600)["alice/flagship-a"].status is CRITICAL
    watch.look(ends=ends, after=2 * 3700)
    assert "alice/flagship-a" not in watch.look(ends=ends)
    assert watch.memory["trainings"] == {}


def test_a_death_ends_when_the_training_runs_again() -> None:
    """Under its own subject."""
    watch = Watch()
    watch.look(flagship("10", "a"))
    watch.look(ends=[ended("10")])
    found = watch.look(flagship("20", "a"), ends=[ended("10")])
    assert found["alice/flagship-a"].status is OK
    assert "running: job 20" in found["alice/flagship-a"].summary


@pytest.mark.parametrize("one", [job, pending])
def test_how_a_job_ended_that_slurm_does_not_say_yet_is_unknown(one: Callable[..., Job]) -> None:
    """It may have COMPLETED: nobody is woken, and nothing is closed."""
    watch = Watch()
    watch.look(one("10", name="flagship-a"), flagship("11", "b"))
    found = watch.look(flagship("11", "b"), ends=[ended("10", "COMPLETING")])
    assert found["alice/flagship-a"].status is UNKNOWN
    assert found["alice/flagship-a"].labels["user"] == "alice"
    assert found["alice/flagship-b"].status is OK


def test_thirty_deaths_at_once_are_all_known_in_the_next_look() -> None:
    """A switch that fails takes a rack along."""
    jobs = [flagship(str(n), f"x{n}") for n in range(10, 40)]
    watch = Watch()
    watch.look(*jobs)
    found = watch.look(ends=[ended(j.job_id, "NODE_FAIL") for j in jobs])
    assert sum("NODE_FAIL" in f.summary for f in found.values()) == 30


def test_a_job_that_is_renamed_has_not_died() -> None:
    """It is another training from then on."""
    watch = Watch()
    watch.look(flagship("10", "a"))
    assert {s: f.status for s, f in watch.look(flagship("10", "b")).items()} == {
        "alice/flagship-b": OK
    }


def test_a_pattern_that_nothing_ever_fitted_is_told() -> None:
    """It waits for its first job, or is a mistake: nothing died, so nobody is paged; what comes and ends well is none afterwards."""
    watch = Watch()
    found = watch.look(job("10", name="Flagship-a"))
    assert found["flagship-.*"].status is UNKNOWN
    assert "waits for its first job" in found["flagship-.*"].summary
    watch.look(flagship("10", "a"))
    watch.look(ends=[ended("10", "COMPLETED")])
    assert watch.look() == {}
    assert watch.report.status is OK
    assert watch.report.coverage.words.endswith("trainings to look at: no such job is in the queue")


def test_a_pending_job_held_by_its_user_is_no_alarm() -> None:
    """Whoever holds it knows; one held by others, or after a death, needs a person."""
    watch = Watch()
    found = watch.look(
        pending("10", "JobHeldUser", name="flagship-a"),
        pending("11", "JobHeldAdmin", name="flagship-b"),
    )
    assert found["alice/flagship-a"].status is OK
    assert found["alice/flagship-b"].status is CRITICAL


# -- by size


def test_every_job_of_a_size_is_watched_without_being_named() -> None:
    """Of everybody; small ones are none of its business."""
    watch = Watch(match=None, users=[], min_gpus=64)
    large, small = job("10", name="big"), job("11", user="bob")
    assert [*watch.look(large, small, gpus={"10": 64, "11": 63})] == ["alice/big"]
    found = watch.look(small, gpus={"11": 63}, ends=[ended("10"), ended("11")])
    assert found["alice/big"].status is CRITICAL
    assert [*found] == ["alice/big"]


def test_parts_of_a_heterogeneous_job_count_together() -> None:
    """A small head and 64 GPUs behind it."""
    watch = Watch(match=None, users=[], min_gpus=64, min_nodes=9)
    head = job("10", id="10+0", node_count=1)
    rest = job("11", id="10+1", node_count=8)
    assert [*watch.look(head, rest, gpus={"10": 1, "11": 64})] == ["alice/train"]


def test_a_size_that_is_not_told_is_unknown() -> None:
    """An empty answer with jobs in the queue is no small job."""
    watch = Watch(match=None, users=[], min_gpus=64)
    with pytest.raises(CannotTell, match="does not tell the GPUs of 1 jobs, such as 10"):
        watch.look(job(), gpus={})


def test_a_job_that_ended_between_two_questions_blinds_nobody() -> None:
    """Anybody can submit and cancel jobs all the time: one that squeue listed has no GPUs a moment
    later. The others are seen."""
    watch = Watch(match=None, users=[], min_gpus=64)
    short = job("11", name="short", user="mallory")
    assert [*watch.look(job(), short, gpus={"10": 64})] == ["alice/train"]


def test_no_large_job_is_no_alarm() -> None:
    """Nobody said that there has to be one."""
    watch = Watch(match=None, users=[], min_nodes=64)
    assert watch.look(job()) == {}
    assert watch.report.status is OK


# -- bounds


def test_the_memory_of_thousands_is_bounded_and_the_rest_is_said() -> None:
    """Never silently: what is not watched is unknown, and how to narrow it down."""
    jobs = [job(str(n), name=f"sweep-{n}", node_count=1) for n in range(10, MAX_TRAININGS + 20)]
    watch = Watch(match=None)
    watch.look(*jobs)
    last = watch.report.findings[-1]
    assert last.status is UNKNOWN
    assert last.summary.startswith("10 trainings more than the 5000")
    assert (watch.report.coverage.seen, watch.report.coverage.meant) == (
        MAX_TRAININGS,
        MAX_TRAININGS + 10,
    )
    assert len(watch.memory["trainings"]) == MAX_TRAININGS


def test_where_there_are_too_many_each_user_has_as_many_as_another() -> None:
    """Large jobs of mallory, known for long; alice's small one is new, and is watched."""
    hers = [job(str(n), name=f"m-{n}", user="mallory", node_count=9)
            for n in range(10, MAX_TRAININGS + 20)]  # fmt: skip
    watch = Watch(match=None)
    watch.look(*hers)
    found = watch.look(*hers, job("9", name="train", user="alice", node_count=1))
    assert found["alice/train"].status is OK
    assert len(watch.memory["trainings"]) == MAX_TRAININGS


class SlowSubmissions(FixedSlurm):
    """How a job was submitted takes 0.2 s to ask; whose jobs were asked about is kept."""

    asked: ClassVar[list[str]] = []

    def submission(self, job_id: str) -> None:
        time.sleep(0.2)
        self.asked.append(job_id)


def test_many_deaths_of_one_user_cost_another_user_no_question() -> None:
    """Sixty of mallory's die together with alice's one, and there is time for a few questions: alice's
    is asked for, and all are told as dead."""
    watch = Watch(match=None)
    watch.limit = 2.0
    hers = [job(str(n), name=f"m-{n}", user="mallory") for n in range(10, 70)]
    watch.look(*hers, job("99", name="train", user="alice"))
    ends = [JobEnd(job_id=str(n), state="FAILED", exit_code=3) for n in (*range(10, 70), 99)]
    known = {end.job_id: end for end in ends}
    began = time.monotonic()
    found = watch.look(slurm=SlowSubmissions(jobs=(), ends=known))
    assert time.monotonic() - began < 4.0
    assert "99" in SlowSubmissions.asked
    assert len(SlowSubmissions.asked) < 20
    assert {finding.status for finding in found.values()} == {CRITICAL}


class BrokenSubmission(FixedSlurm):
    """What slurmctld tells of one user's job breaks who reads it."""

    def submission(self, job_id: str) -> Submission | None:
        if job_id == "10":
            raise OverflowError("too large")
        return super().submission(job_id)


def test_what_breaks_the_kind_itself_costs_one_training_its_look() -> None:
    watch, here = Watch(), [flagship("10", "a"), flagship("11", "b", "bob")]
    watch.look(*here)
    slurm = BrokenSubmission(jobs=(), ends={n: ended(n) for n in ("10", "11")})
    found = watch.look(slurm=slurm)
    assert {s: f.status for s, f in found.items()} == {
        "alice/flagship-a": UNKNOWN,
        "bob/flagship-b": CRITICAL,
    }
    assert "internal error: OverflowError" in found["alice/flagship-a"].summary


def test_forgetting_takes_a_time_that_can_be_set() -> None:
    """`forget_after`."""
    watch = Watch(forget_after=Duration(2 * DAY))
    watch.look(flagship("10", "a"))
    watch.look(ends=[ended("10")])
    assert watch.look(ends=[ended("10")], after=1.9 * DAY)["alice/flagship-a"].status is CRITICAL
    watch.look(after=0.2 * DAY)
    assert "alice/flagship-a" not in watch.look()
