"""Jobs and the queue, as clusters elsewhere showed them: each is played against the `job` check."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from sentinel.core.model import Status
from sentinel.slurm import sizes, submission
from sentinel.slurm.model import Job, Run
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
    runs: tuple[Run, ...] = ()


def run(number: str, state: str, **more: Any) -> Run:
    """A run that slurmctld still remembers: it began at START less an hour and ended five minutes
    after START, on node-[0-3]."""
    fields: dict[str, Any] = {
        "id": number, "array_id": number, "name": "train", "user": "alice", "partition": "prod",
        "nodes": "node-[0-3]", "submitted": NOW - 7200, "started": NOW - 3600, "ended": NOW + 300,
        "source": "squeue",
    }  # fmt: skip
    return Run(job_id=number, state=state, **{**fields, **more})


def never_began(number: str, state: str, at: int = NOW + 310, **more: Any) -> Run:
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
    fields = dict.fromkeys(submission._FIELDS, "N/A")
    fields |= {"Name": "train", "WorkDir": "/w", "Command": "/w/t.sh", "JobArrayID": "11"}
    fields |= {"NumNodes": "2", "NumTasks": case.form, "cpus-per-task": "65534"}
    row = "".join(f"{fields[name]}m|" for name in submission._FIELDS) + "11m.\n"
    told = submission.read(row.encode(), "m", "11")
    assert told is not None
    assert submission.again(told) == ("sbatch", "--job-name=train", "--nodes=2", "/w/t.sh")


def test_gpus_per_task_of_no_tasks_are_none() -> None:
    fields = ("11", "N/A", "N/A", "N/A", "gres/gpu:1", "2", "4294967294")
    row = "m|".join(fields) + "m.\n"
    assert sizes.read_sizes(row.encode(), "m") == {"11": 0}
