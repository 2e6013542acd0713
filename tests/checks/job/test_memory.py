"""What is remembered between runs: restarts, ages, those that are gone; bounded, plain."""

import json
from typing import Any

import pytest

from sentinel.checks.job.memory import MAX_GONE_JOBS, MAX_JOBS
from sentinel.core.cluster import Job
from sentinel.core.model import Status
from sentinel.testing import FixedSlurm, context
from tests.checks.job.making import NOW, Watch, check, glance, job, pending

STORM = {"restarts": "3 in 1h"}


def test_a_job_that_is_requeued_again_and_again_is_a_storm() -> None:
    """Three restarts within the hour warn; the first start is none. It keeps its job id."""
    watch = Watch(check(**STORM))
    found = [watch.look(job(started=NOW + 600 * n), after=600).status for n in range(4)]
    assert found == [Status.OK, Status.OK, Status.OK, Status.WARNING]
    assert "restarted 3 times within 1h" in watch.look(job(started=NOW + 1800)).summary


def test_jobs_of_a_train_that_die_at_once_are_a_storm() -> None:
    """Each has an id of its own, and one look may fall between two of them."""
    watch = Watch(check(**STORM))
    for number in range(3):
        watch.look(job(str(10 + number)), after=60)
        watch.look(pending(str(11 + number)), after=60)
    assert watch.look(job("13"), after=60).status is Status.WARNING


def test_a_storm_passes_with_its_window() -> None:
    """What is older than the window does not count."""
    watch = Watch(check(**STORM))
    for number in range(4):
        watch.look(job(started=NOW + number), after=600)
    last = job(started=NOW + 3)
    assert watch.look(last, after=2400).status is Status.WARNING
    assert watch.look(last, after=1).status is Status.OK


def test_a_clock_that_jumps_ends_no_storm() -> None:
    """The window is measured by the boot's own clock."""
    watch = Watch(check(**STORM))
    for number in range(4):
        watch.look(job(started=NOW + number), after=60)
    watch.clock.jump(7200)
    assert watch.look(job(started=NOW + 3), after=60).status is Status.WARNING


@pytest.mark.parametrize(
    "looks",
    [
        [[job(str(n)) for n in range(10, 18)]] * 2,
        [[job(str(n)) for n in range(10, 10 + size)] for size in range(1, 9)],
        [[job(state=state)] for state in ("RUNNING", "SUSPENDED") * 5],
        [[job(state="CONFIGURING")], [job(state="RUNNING", started=NOW)]],
        [[job(started=NOW)]] * 9,
    ],
    ids=["side by side", "one by one", "suspended in turns", "configured", "unchanged"],
)
def test_what_is_no_restart(looks: list[list[Job]]) -> None:
    """Jobs of an array side by side, gang scheduling, a start time set when nodes are ready."""
    watch = Watch(check(restarts="1 in 1h"))
    assert {watch.look(*jobs, after=30).values["restarts"] for jobs in looks} == {0}


def test_a_restart_is_counted_once() -> None:
    """A job that is added later takes nobody's place."""
    watch = Watch(check(restarts="1 in 1d"))
    watch.look(job("10"), after=60)
    watch.look(job("11"), after=60)
    assert watch.look(job("11"), job("12"), after=60).values["restarts"] == 1


def test_a_storm_that_ends_in_death_is_told_with_it() -> None:
    """That it was restarted again and again is part of what happened."""
    watch = Watch(check(restarts="1 in 1h"))
    watch.look(job("10"))
    watch.look(job("11"))
    finding = watch.look()
    assert finding.status is Status.CRITICAL
    assert "restarted 1 time within 1h" in finding.summary


def test_memory_is_plain_json_and_bounded() -> None:
    """Thousands of jobs that come and go leave a memory of fixed size."""
    watch = Watch(check(restarts="1 in 7d"))
    for start in range(0, 3000, 300):
        jobs = [job(str(start + n), reason="r" * 5000, nodes="n" * 5000) for n in range(300)]
        watch.look(*jobs, after=60)
    assert len(watch.memory["seen"]) == MAX_JOBS
    assert len(watch.memory["gone"]) == MAX_GONE_JOBS
    assert json.loads(json.dumps(watch.memory)) == watch.memory
    assert len(json.dumps(watch.memory)) < 250_000


@pytest.mark.parametrize("stored", [{"seen": 3}, {"alive": "noon"}, {"other": 1}])
def test_a_damaged_or_older_memory_is_started_anew(stored: dict[str, Any]) -> None:
    """Watching goes on; only what was remembered is lost."""
    watch = Watch(check())
    watch.memory = stored
    assert watch.look(job()).status is Status.OK


def test_a_single_look_remembers_nothing() -> None:
    """`sentinel check` changes no state."""
    assert glance(check(), job()).memory is None
    watch = Watch(check())
    watch.look(job())
    report = check().run(context(FixedSlurm(jobs=[]), one_shot=True, memory=watch.memory))
    assert "no such job has been seen" in report.findings[0].summary


def test_a_job_that_comes_back_is_no_longer_gone() -> None:
    """A requeue in the moment of the look, or a queue read by halves."""
    watch = Watch(check())
    watch.look(job())
    assert watch.look().status is Status.CRITICAL
    watch.look(job())
    assert watch.memory["gone"] == []
