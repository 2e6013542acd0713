"""The `job` check on a real Slurm cluster: what squeue, slurmctld and slurmd really say."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sentinel.checks.job import JobCheck
from sentinel.checks.job.settings import DoneWhen
from sentinel.clock import SystemClock
from sentinel.core.clock import shift_instant
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Status
from sentinel.core.ports import Context
from sentinel.core.values import Duration
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from tests.kinds import looks
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until

NAME = ("größtes Modell der Welt ☃ 176B, " * 4)[:80]
SLEEP = "exec sleep 300"


_NOTHING = Finding(subject="", status=Status.OK, summary="no such job is in the queue")


class Live:
    """A check that looks at the lab's queue, with a memory as the service keeps it."""

    def __init__(self, lab: Lab, **settings: Any) -> None:
        self.check = JobCheck(**{"name": "train", "users": ["root"], **settings})
        self._lab = lab
        self.env: Mapping[str, str] = {}
        self.memory: Mapping[str, Any] = {}
        self.findings: tuple[Finding, ...] = ()

    def look(self, earlier_s: float = 0.0) -> Finding:
        """As it would be so many seconds ago, by sentinel's clock."""
        clock, users = SystemClock(), self.check.jobs_of()
        client = SlurmClient(limit=20.0, environ={**self._lab.env, **self.env})
        slurm = SlurmSnapshot(client, clock, users=users, max_age=1.0)
        now = shift_instant(clock.now(), -earlier_s)
        ctx = Context(name="t", now=now, limit=40.0, slurm=slurm, memory=self.memory)
        report = self.check.run(ctx)
        self.memory, self.findings = report.memory or {}, report.findings
        return report.findings[0] if report.findings else _NOTHING

    def until(self, good: Callable[[Finding], bool], limit: float = 30.0) -> Finding:
        """Looks until a finding is as expected; fails with the last one."""
        last: list[Finding] = []

        def found() -> bool:
            last[:] = [self.look()]
            return good(last[0])

        wait_until(found, lambda: f"the expected finding; it is {last}", limit)
        return last[0]

    def until_dead(self) -> Finding:
        return self.until(lambda f: f.status is Status.CRITICAL)


Watcher = Callable[..., Live]


@pytest.fixture
def watch(fresh: Lab) -> Watcher:
    return lambda **settings: Live(fresh, **settings)


def test_a_job_with_80_characters_blanks_and_letters_of_others(fresh: Lab, watch: Watcher) -> None:
    """Watched by its exact name; cancelled it is critical, resubmitted ok, under one subject."""
    assert len(NAME) == 80
    live = watch(name=NAME)
    first = fresh.sbatch(SLEEP, name=NAME)
    fresh.wait_state(first, "RUNNING")
    finding = live.look()
    assert finding.status is Status.OK
    assert finding.summary.startswith(f"running: job {first} on node-")
    fresh.scancel(first)
    finding = live.until_dead()
    assert f"job {first} was cancelled" in finding.summary
    assert finding.subject == NAME
    second = fresh.sbatch(SLEEP, name=NAME)
    finding = live.until(lambda f: f.status is Status.OK and "running" in f.summary)
    assert second in finding.summary
    assert finding.subject == NAME


def test_a_name_that_forges_a_row_changes_nothing(fresh: Lab, watch: Watcher) -> None:
    """Its newline and its bars stay in its own name."""
    fresh.sbatch(SLEEP, name="x\n999|train|root|RUNNING|None")
    assert "not running and nothing is queued" in watch().until_dead().summary


def test_an_array_that_runs_one_task_at_a_time(fresh: Lab, watch: Watcher) -> None:
    """The waiting tasks are counted as elements; at the end of a task the next one is told."""
    array = fresh.sbatch(SLEEP, name="train", array="0-3%1")
    live = watch(queued=3)
    finding = live.until(lambda f: f.values["running"] == 1)
    assert finding.status is Status.OK
    assert finding.values["queued"] == 3
    assert f"running: job {array}_0 " in finding.summary
    fresh.scancel(f"{array}_0")
    finding = live.until(lambda f: f"{array}_1 " in f.summary and f.values["running"] == 1)
    assert finding.status is Status.WARNING
    assert "only 2 queued behind the running job, 3 wanted" in finding.summary


def test_a_held_job_needs_a_person_until_it_is_released(fresh: Lab, watch: Watcher) -> None:
    """The command in the alert's first step is the one that helps."""
    job = fresh.sbatch(SLEEP, name="train", hold=True)
    live = watch()
    finding = live.look()
    assert finding.status is Status.CRITICAL
    assert f"waits for a person: job {job} (JobHeldUser: held" in finding.summary
    assert f"`scontrol release {job}`" in finding.guidance.todo
    fresh.ask(["scontrol", "release", job])
    live.until(lambda f: f.status is Status.OK and "running" in f.summary)


def test_a_dependency_that_is_never_satisfied(fresh: Lab, watch: Watcher) -> None:
    """afterok of a job that fails: ok while that one runs, then nothing will ever start."""
    first = fresh.sbatch("sleep 2; exit 3", name="before")
    second = fresh.sbatch(SLEEP, name="train", dependency=f"afterok:{first}")
    live = watch()
    finding = live.look()
    assert finding.status is Status.OK
    assert f"{second} waits" in finding.summary
    assert "(Dependency: waits for another job)" in finding.summary
    finding = live.until_dead()
    assert f"{second} (Dependency" in finding.summary
    assert (
        "waits for a person" in finding.summary
    )  # NeverSatisfied, or unfulfilled until it next looks


def test_a_job_that_fails_is_told_with_its_code_node_and_last_lines(
    fresh: Lab, watch: Watcher
) -> None:
    """What a person asks first."""
    out = fresh.work / "train-%j.out"
    job = fresh.sbatch("sleep 2; echo Traceback: out of luck; exit 7", name="train", output=out)
    live = watch()
    live.until(lambda f: f.values["running"] == 1)
    finding = live.until_dead()
    assert f"job {job} FAILED with exit code 7 on node-" in finding.summary
    assert "Traceback: out of luck" in finding.details
    assert f"tail -n 50 {str(out).replace('%j', job)}" in looks(finding)


def test_the_last_lines_of_an_array_task_in_its_default_file(fresh: Lab, watch: Watcher) -> None:
    """slurm-ARRAY_TASK.out, which this Slurm's squeue names by the job id."""
    fresh.sbatch("sleep 2; echo task $SLURM_ARRAY_TASK_ID broke; exit 1", name="train", array="3-4")
    live = watch()
    live.until(lambda f: f.values["running"] == 2)
    finding = live.until_dead()
    assert "broke" in finding.details


def test_a_job_killed_by_a_signal(fresh: Lab, watch: Watcher) -> None:
    """The number and its name."""
    job = fresh.sbatch("sleep 1; kill -SEGV $$", name="train")
    live = watch()
    live.until(lambda f: f.values["running"] == 1)
    finding = live.until_dead()
    assert f"job {job} FAILED, killed by signal 11 (SIGSEGV)" in finding.summary


def test_a_training_that_completes_is_finished(fresh: Lab, watch: Watcher) -> None:
    """done_when by state: the real exit code 0 of a real job."""
    job = fresh.sbatch("sleep 2", name="train")
    live = watch(done_when=DoneWhen(state="completed"))
    live.until(lambda f: f.values["running"] == 1)
    finding = live.until(lambda f: "finished" in f.summary)
    assert finding.status is Status.OK
    assert f"job {job} COMPLETED with exit code 0" in finding.summary


def test_a_requeued_job_is_a_restart_under_its_own_id(fresh: Lab, watch: Watcher) -> None:
    """Slurm keeps the job id; begin time and start time tell the runs apart."""
    job = fresh.sbatch(SLEEP, name="train", requeue=True)
    live = watch(restarts="1 in 1h")
    live.until(lambda f: f.values["running"] == 1)
    fresh.ask(["scontrol", "requeue", job])
    finding = live.until(lambda f: f.values["pending"] == 1)
    assert finding.status is Status.OK
    assert "BeginTime" in finding.summary or "None" in finding.summary
    wait_until(  # until slurmd knows that the first run's credential is revoked
        lambda: set(fresh.ask(["sinfo", "-h", "-N", "-o", "%T"]).split()) == {"idle"},
        "the nodes to be idle",
        30,
    )
    # slurmd takes a credential of the second of that revocation (src/common/slurm_cred.c) for the
    # revoked one: slurmctld then ends the job as FAILED, "Job credential revoked".
    fresh.ask(["scontrol", "update", f"jobid={job}", "starttime=now+2seconds"])
    finding = live.until(lambda f: f.values["running"] == 1)
    assert finding.status is Status.WARNING
    assert "restarted 1 time within 1h" in finding.summary


def test_a_requeued_and_held_job_needs_a_person(fresh: Lab, watch: Watcher) -> None:
    """REQUEUE_HOLD or JobHeldUser: squeue shows one or the other."""
    job = fresh.sbatch(SLEEP, name="train", requeue=True)
    live = watch()
    live.until(lambda f: f.values["running"] == 1)
    fresh.ask(["scontrol", "requeuehold", job])
    finding = live.until_dead()
    assert f"waits for a person: job {job} (" in finding.summary
    assert f"scontrol release {job}" in finding.guidance.todo


def test_a_suspended_job_is_a_warning(fresh: Lab, watch: Watcher) -> None:
    """It has its nodes and does nothing; resumed, it is no restart."""
    job = fresh.sbatch(SLEEP, name="train")
    live = watch(restarts="1 in 1h")
    live.until(lambda f: f.values["running"] == 1)
    fresh.ask(["scontrol", "suspend", job])
    finding = live.until(lambda f: f.status is Status.WARNING)
    assert f"{job} is SUSPENDED on node-" in finding.summary
    fresh.ask(["scontrol", "resume", job])
    live.until(lambda f: f.status is Status.OK and f.values["running"] == 1)


def test_a_job_that_begins_tomorrow_is_too_late_for_tonight(fresh: Lab, watch: Watcher) -> None:
    """The begin time is Slurm's estimate."""
    fresh.sbatch(SLEEP, name="train", begin="now+1day")
    assert watch().look().status is Status.OK
    finding = watch(starts_within=Duration(300)).look()
    assert finding.status is Status.WARNING
    assert "not expected to start within 5m" in finding.summary


def test_the_time_limit_comes_before_a_successor_that_begins_tomorrow(
    fresh: Lab, watch: Watcher
) -> None:
    """Both times are Slurm's own."""
    fresh.sbatch(SLEEP, name="train", time="1:00:00")
    live = watch()
    live.until(lambda f: f.values["running"] == 1)
    fresh.sbatch(SLEEP, name="train", begin="now+1day")
    finding = live.look()
    assert finding.status is Status.WARNING
    assert "its time limit comes 23h" in finding.summary or "22h" in finding.summary


def test_members_of_a_group_are_watched_by_their_primary_group(fresh: Lab, watch: Watcher) -> None:
    """`getent group` does not list such a member; squeue is asked for her by name."""
    six = fresh.group("six")
    alice = fresh.user("alice", group=six)
    live = watch(users=[f"group:{six}"])
    assert live.check.jobs_of() == frozenset([alice.name])
    fresh.sbatch(SLEEP, name="train", user=alice)
    finding = live.until(lambda f: f.values["running"] == 1)
    assert finding.labels["user"] == alice.name


@pytest.mark.long
def test_a_slurmctld_that_is_gone_is_not_a_job_that_is_gone(fresh: Lab, watch: Watcher) -> None:
    """CannotTell, and the memory is as before."""
    fresh.wait_state(fresh.sbatch(SLEEP, name="train"), "RUNNING")
    live = watch()
    live.look()
    before = live.memory
    fresh.kill_controller()
    with pytest.raises(CannotTell):
        live.look()
    assert live.memory == before


def test_a_death_in_a_maintenance_names_it(fresh: Lab, watch: Watcher) -> None:
    """A real reservation, and no longer once that is deleted; it is told at the usual time."""
    live, go = watch(), fresh.work / "go"
    job = fresh.sbatch(f"until [ -e {go} ]; do sleep 0.1; done; exit 3", name="train")
    fresh.wait_state(job, "RUNNING")
    assert live.look().status is Status.OK
    words = ("StartTime=now", "Duration=60", "Users=root", "Nodes=ALL", "Flags=MAINT,IGNORE_JOBS")
    fresh.ask(["scontrol", "create", "reservation", "ReservationName=upgrade", *words])
    go.touch()
    try:
        finding = live.until_dead()
        assert finding.values["maintenance"] == "upgrade"
        assert finding.summary.endswith("; its nodes are in the maintenance reservation upgrade")
        assert finding.patience == 30
    finally:
        fresh.ask(["scontrol", "delete", "ReservationName=upgrade"])
    finding = live.look()
    assert "maintenance" not in finding.values
    assert finding.patience == 30
