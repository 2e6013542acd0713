"""Jobs and the queue, as clusters elsewhere showed them: each is played against the `job` check."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import structs

from sentinel.checks.job.settings import DoneWhen
from sentinel.checks.users import departed_members, watched_users
from sentinel.core.cluster import Job, JobPast, JobRun
from sentinel.core.model import Status
from sentinel.slurm import sizes, submission
from sentinel.slurm.queue import find_asked_name
from sentinel.testing import START, FixedSlurm
from tests.checks.job.making import Watch, check, job, pending
from tests.world.case import Case, each

NOW = START.wall // 1_000_000
AT_ONCE = 30.0
"""Seconds after which a death is told: Slurm is asked once more before."""


class Moment(NamedTuple):
    """What Slurm shows when so many seconds have passed since the moment before."""

    after: float
    jobs: tuple[Job, ...] = ()
    runs: tuple[JobRun, ...] = ()


def run(number: str, state: str, **more: Any) -> JobRun:
    """A run that slurmctld still remembers: it began at START less an hour and ended five minutes
    after START, on node-[0-3]."""
    fields: dict[str, Any] = {
        "id": number, "array_id": number, "name": "train", "user": "alice", "partition": "prod",
        "nodes": "node-[0-3]", "submitted": NOW - 7200, "started": NOW - 3600, "ended": NOW + 300,
        "source": "squeue",
    }  # fmt: skip
    return JobRun(job_id=number, state=state, **{**fields, **more})


def never_began(number: str, state: str, at: int = NOW + 310, **more: Any) -> JobRun:
    """A submission that never had nodes: Slurm makes its start its end."""
    return run(number, state, nodes="", submitted=at, started=at, ended=at, **more)


DEATH = run("10", "FAILED", exit_code=1)
REFUSED = never_began("11", "FAILED", reason="BadConstraints")


def played(moments: list[Moment], **settings: Any) -> Any:
    """The last finding, of which there is one."""
    watch, finding = Watch(check(**settings)), None
    for moment in moments:
        watch.clock.advance(moment.after)
        ends = {one.job_id: one for one in moment.runs}
        finding = watch.see(FixedSlurm(jobs=moment.jobs, ends=ends))
    return finding


@each(
    Case(
        name="sbatch-refused-after-a-death",
        source="slurmctld 20.11 to 26.05: job_allocate() keeps a refused job as FAILED",
        form=[Moment(0, (job("10"),)), Moment(360, (), (DEATH, REFUSED))],
        right="job 10 FAILED with exit code 1 on node-[0-3]",
        cost="the death is told as a job that ran for 0 seconds, or late",
    ),
    Case(
        name="refused-between-two-later-looks",
        source="slurmctld 20.11 to 26.05: job_allocate() keeps a refused job as FAILED",
        form=[
            Moment(0, (job("10"),)),
            Moment(310, (), (DEATH,)),
            Moment(60, (), (DEATH, REFUSED)),
        ],
        right="job 10 FAILED with exit code 1",
        cost="the refused one is learned as a successor, and the next death waits",
    ),
    Case(
        name="successor-cancelled-before-it-began",
        source="squeue 25.05: CANCELLED, NODELIST empty, START_TIME equal to END_TIME",
        form=[
            Moment(0, (job("10"),)),
            Moment(310, (pending("11", submitted=NOW + 305),), (DEATH,)),
            Moment(60, (), (DEATH, never_began("11", "CANCELLED", cancelled_by="alice"))),
        ],
        right="job 10 FAILED with exit code 1",
        cost="'stopped by its own user' and no alert, while nothing runs",
    ),
    Case(
        name="dependents-that-Slurm-cancels",
        source="slurm.conf(5): DependencyParameters=kill_invalid_depend",
        form=[
            Moment(0, (job("10"), *(pending(str(n), "Dependency") for n in range(11, 17)))),
            Moment(310, tuple(pending(str(n), "Dependency") for n in range(11, 17)), (DEATH,)),
            Moment(
                60,
                (),
                (
                    DEATH,
                    *(
                        never_began(str(n), "CANCELLED", reason="DependencyNeverSatisfied")
                        for n in range(11, 17)
                    ),
                ),
            ),
        ],
        right="job 10 FAILED with exit code 1",
        cost="six dependents push the death out of memory, and nobody learns why it stopped",
    ),
    Case(
        name="deadline-of-a-job-that-never-began",
        source="sbatch(1): --deadline; slurmctld ends a pending job as DEADLINE",
        form=[
            Moment(0, (job("10"),)),
            Moment(360, (), (DEATH, never_began("12", "DEADLINE"))),
        ],
        right="job 10 FAILED with exit code 1",
        cost="the message speaks of a deadline, and not of the crash",
    ),
)
def test_what_never_had_nodes_is_no_run(case: Case) -> None:
    finding = played(case.form)
    assert case.right in finding.summary
    assert (finding.status, finding.patience) == (Status.CRITICAL, AT_ONCE)


def test_a_successor_that_ran_and_failed_is_what_is_told() -> None:
    """The healthy control: it had nodes, if only for a moment."""
    later = run("11", "FAILED", started=NOW + 310, ended=NOW + 312, exit_code=2)
    finding = played([Moment(0, (job("10"),)), Moment(360, (), (DEATH, later))])
    assert "job 11 FAILED with exit code 2" in finding.summary


def test_a_training_of_which_only_a_refused_submission_is_known_is_no_training() -> None:
    """With a pattern a training is what ran; sbatch has told its user that it was refused."""
    mine = {"name": None, "match": re.compile("train.*")}
    other = job("20", name="train-b")
    refused = never_began("21", "FAILED", reason="BadConstraints")
    finding = played([Moment(0, (other,)), Moment(60, (other,), (refused,))], **mine)
    assert (finding.status, finding.subject) == (Status.OK, "train-b")


NO_NUMBERS = (
    "slurm/slurm.h: NO_VAL, INFINITE, NO_VAL64 and NO_VAL16, which squeue prints as they are"
)


@each(
    Case("no-val", NO_NUMBERS, "4294967294", "", "a command that sbatch refuses"),
    Case("infinite", NO_NUMBERS, "4294967295", "", "a command that sbatch refuses"),
    Case("no-val-64", NO_NUMBERS, "18446744073709551614", "", "a command that sbatch refuses"),
)
def test_a_number_that_stands_for_none_is_in_no_command(case: Case) -> None:
    fields = dict.fromkeys(submission._SUBMISSION_FIELDS, "N/A")
    fields |= {"Name": "train", "WorkDir": "/w", "Command": "/w/t.sh", "JobArrayID": "11"}
    fields |= {"NumNodes": "2", "NumTasks": case.form, "cpus-per-task": "65534"}
    row = "".join(f"{fields[name]}m|" for name in submission._SUBMISSION_FIELDS) + "11m.\n"
    told = submission.read_submission(row.encode(), "m", "11")
    assert told is not None
    assert submission.resubmit_argv(told) == ("sbatch", "--job-name=train", "--nodes=2", "/w/t.sh")


def test_gpus_per_task_of_no_tasks_are_none() -> None:
    fields = ("11", "N/A", "N/A", "N/A", "gres/gpu:1", "N/A", "2", "4294967294")
    row = "m|".join(fields) + "m.\n"
    assert sizes.read_gpu_counts(row.encode(), "m") == {"11": 0}


# A reason is judged with what stands beside it.


def waiting(reason: str, **more: Any) -> Job:
    """A job that was submitted an hour ago."""
    return pending("11", reason, **{"submitted": NOW - 3600, "account": "six", **more})


RUNS_ELSEWHERE = job("20", name="other", user="bob", account="six")
LONG_AGO = {"submitted": NOW - 3 * 86400}


@each(
    Case(
        "one-of-two-partitions-is-too-short",
        "squeue 24.11: a job in `long,short` shows the reason of the partition tried last",
        (waiting("PartitionTimeLimit", partition="long,short"),),
        Status.OK,
        "a person is called for a job that starts by itself",
    ),
    Case(
        "slurm-expects-a-start",
        "squeue --start 24.11: an estimate beside PartitionNodeLimit",
        (waiting("PartitionNodeLimit", started=NOW + 14000),),
        Status.OK,
        "a person is called for a job that starts by itself",
    ),
    Case(
        "one-partition-without-an-estimate",
        "squeue 24.11: PartitionTimeLimit",
        (waiting("PartitionTimeLimit"),),
        Status.CRITICAL,
        "nobody learns that it can never start",
    ),
    Case(
        "an-empty-partition-that-grows",
        "scontrol show partition 25.05: TotalNodes=0 with nodes that register themselves",
        (waiting("PartitionConfig", partition="cloud"),),
        Status.OK,
        "a person is called while the autoscaler boots nodes",
    ),
    Case(
        "a-partition-that-is-too-small",
        "squeue 24.11: PartitionConfig",
        (waiting("PartitionConfig"),),
        Status.CRITICAL,
        "nobody learns that it can never start",
    ),
    Case(
        "a-part-of-a-heterogeneous-job",
        "https://slurm.schedmd.com/heterogeneous_jobs.html",
        (
            pending("13", "Resources", id="13+0"),
            pending("14", "PartitionNodeLimit", id="13+1"),
        ),
        Status.CRITICAL,
        "the job waits for ever for a part that can never start",
    ),
    Case(
        "all-parts-wait-for-nodes",
        "https://slurm.schedmd.com/heterogeneous_jobs.html",
        (pending("13", "Resources", id="13+0"), pending("14", "Resources", id="13+1")),
        Status.OK,
        "a false alarm",
    ),
    Case(
        "three-days-for-a-limit-of-the-account-that-nobody-uses",
        "squeue 24.11: AssocGrpNodeLimit of a job larger than GrpTRES",
        (waiting("AssocGrpNodeLimit", **LONG_AGO),),
        Status.CRITICAL,
        "a training waits for ever, and is called pending",
    ),
    Case(
        "three-days-for-a-limit-that-others-use",
        "squeue 24.11: AssocGrpNodeLimit while the account's jobs run",
        (waiting("AssocGrpNodeLimit", **LONG_AGO), RUNS_ELSEWHERE),
        Status.OK,
        "an alarm for a queue that moves",
    ),
    Case(
        "an-hour-for-a-licence",
        "squeue 24.11: Licenses",
        (waiting("Licenses"),),
        Status.OK,
        "an alarm for a queue that moves",
    ),
)
def test_a_reason_is_judged_with_its_context(case: Case) -> None:
    slurm = FixedSlurm(jobs=case.form, nodes=(), partitions={"prod": 4, "cloud": 0})
    assert Watch(check()).see(slurm).status is case.right


def test_a_pending_reason_of_ten_kilobytes_is_survived() -> None:
    long = "ReqNodeNotAvail, UnavailableNodes:" + ",".join(f"node-{n}" for n in range(1200))
    finding = Watch(check()).see(FixedSlurm(jobs=(waiting(long),)))
    assert finding.status is Status.OK
    assert len(finding.summary) < 600


# How it ended, where Slurm itself is behind, or says less than it knows.


class Booked(FixedSlurm):
    """A Slurm with accounting, which may be behind."""

    def past(self, *asked: Any, **more: Any) -> JobPast:
        """What accounting has, and that it was asked."""
        return structs.replace(super().past(*asked, **more), accounting=True)


def seen_gone(row: JobRun | None, after: float, **settings: Any) -> Any:
    """Looks so many seconds apart; slurmctld does not know the job any more."""
    watch = Watch(check(**settings))
    watch.look(job("10"))
    for _ in range(2):
        watch.clock.advance(after)
        finding = watch.see(Booked(jobs=(), ends={"10": row} if row else {}))
    return finding


def test_a_runaway_job_is_gone() -> None:
    """sacctmgr(1), show runawayjobs: accounting says RUNNING for ever."""
    row = run("10", "RUNNING", ended=None, source="sacct")
    for settings in ({}, {"done_when": DoneWhen(state="completed")}):
        finding = seen_gone(row, 70, **settings)
        assert finding.status is Status.CRITICAL
        assert "accounting still has it as RUNNING (a runaway job" in finding.summary
    assert "how is not known yet" in seen_gone(row, 10).summary


def test_a_row_that_accounting_does_not_have_yet_is_asked_for_again() -> None:
    """slurmdbd gets its records some seconds later."""
    assert "how is not known yet" in seen_gone(None, 10).summary
    assert "neither squeue nor sacct said how it ended" in seen_gone(None, 70).summary


def test_a_step_that_failed_is_no_finished_training() -> None:
    """sacct(1), DerivedExitCode: the script's last command was an `echo`."""
    well, failed = run("10", "COMPLETED"), run("10", "COMPLETED", step_failed="1:0")
    settings = {"done_when": DoneWhen(state="completed")}
    assert played([Moment(0, (job("10"),)), Moment(360, (), (well,))], **settings).status is (
        Status.OK
    )
    finding = played([Moment(0, (job("10"),)), Moment(360, (), (failed,))], **settings)
    assert finding.status is Status.CRITICAL
    assert "a step of it failed with exit code 1:0" in finding.summary


def test_nobody_is_a_name_that_could_not_be_looked_up() -> None:
    """squeue prints it while the directory does not answer; accounting has the name."""
    watch = Watch(check(users=["*"], name=None))
    watch.look(job("10", user="nobody"))
    watch.clock.advance(360)
    finding = watch.see(FixedSlurm(jobs=(), ends={"10": run("10", "COMPLETED", source="sacct")}))
    assert "job 10 COMPLETED" in finding.summary


@each(
    Case("plain", "sbatch(1): --parsable", b"4711\n", "4711", "the job is not found again"),
    Case("cluster", "sbatch(1): --parsable with -M", b"4711;wice\n", "4711", "the same"),
    Case(
        "greeting",
        "a site's wrapper around sbatch",
        b"\n-----\n  Welcome to Example 7\n--> checking allocation 42 (six)...OK\n4711\n",
        "4711",
        "a job that was submitted counts as refused, and is submitted again",
    ),
    Case("refused", "a site's wrapper around sbatch", b"Welcome 7\n", "", "a job of nobody"),
)
def test_the_id_that_sbatch_prints(case: Case) -> None:
    assert submission.submitted_job(case.form) == case.right


def test_a_cluster_that_is_not_followed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """SLURM_CLUSTERS in the user's shell: squeue there asks another cluster."""
    monkeypatch.setenv("SLURM_CLUSTERS", "wice")
    finding = Watch(check()).look()
    assert "SLURM_CLUSTERS=wice is set here and not followed" in finding.summary


def test_two_names_of_one_user_are_one_person() -> None:
    """winbind prints `CORP\\bob` for the uid that `squeue -u bob.k` was asked for."""
    assert find_asked_name("CORP\\bob", {"bob.k"}) == "bob.k"
    assert find_asked_name("root", {"0", "daemon"}) == "0"
    assert find_asked_name("CORP\\bob", {"bob.k", "alice"}) == "CORP\\bob"
    assert find_asked_name("alice", {"bob.k", "alice"}) == "alice"


def test_a_member_who_left_hides_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """getent(1) still lists them in the group; squeue refuses the whole list for one name."""
    tool = tmp_path / "getent"
    tool.write_text(
        '#!/bin/sh\n[ "$1" = group ] && echo team:x:900:alice,bob,left && exit\n'
        "echo alice:x:1:1::/:/bin/sh; echo bob:x:2:2::/:/bin/sh; exit 2\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert watched_users(["group:team"]) == {"alice", "bob"}
    assert departed_members(["group:team"]) == {"left"}
    finding = Watch(check(users=["group:team"])).look(job("10"))
    assert finding.status is Status.OK
    assert "not watched, no such user any more: left" in finding.details


MEGATRON = (
    " [2026-01-05 10:00:00] iteration      {step}/     300 | consumed samples:        76800 |"
    " elapsed time per iteration (ms): 4225.8 | lm loss: 2.100000E+00 | number of skipped"
    " iterations:   0 | number of nan iterations:   0 |\n"
)
DONE = MEGATRON.format(step=299) + MEGATRON.format(step=300)


@each(
    Case("trained-to-the-end", "Megatron-LM core_r0.8, training_log()", DONE, Status.WARNING,
         "somebody is woken because a training has finished"),
    Case("output-goes-elsewhere", "bash(1): python train.py > train.log 2>&1; echo ok", "ok\n",
         Status.CRITICAL, "a crash in a log that nobody reads is taken for the end"),
    Case("script-goes-on-after-srun", "slurm 25.05, srun: task exits",
         DONE + "srun: error: node-2: task 9: Exited with exit code 1\n", Status.CRITICAL,
         "a night is lost because the script ended with `echo`"),
    Case("guard-stopped-it", "docs/training.md: what a training prints that the guard stops",
         DONE + "stopping: the allocation ends in 88 s\n", Status.CRITICAL,
         "a chain that ends half way is taken for a finished training"),
)  # fmt: skip
def test_exit_code_0_without_a_word_in_the_file(case: Case, tmp_path: Path) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    (tmp_path / "out").write_text(case.form)
    os.utime(tmp_path / "out", (NOW + 300, NOW + 300))
    end = run("10", "COMPLETED", exit_code=0, user=me, stdout=f"{tmp_path}/out")
    moments = [Moment(0, (job("10", user=me),)), Moment(360, (), (end,))]
    finding = played(moments, users=[me])
    assert (finding.status, finding.tell_once) == (case.right, case.right is Status.WARNING)
