"""What a finding about a training that ended holds: each fact beside the case in which it is not said."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.job.judge import find_culprit_node, judge_training
from sentinel.checks.job.memory import GoneJob, Memory
from sentinel.checks.job.queue import JobQueue
from sentinel.checks.job.view import TrainingView
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Job, Submission
from sentinel.core.model import Finding, Status
from sentinel.testing import START
from tests.checks.job.making import check, pending
from tests.checks.job.test_rhythm import after, gone
from tests.kinds import looks

HOW = Submission(
    id="10", name="train", user="alice", workdir="/w", command="/w/t.sh", gpus=32, nodes=4
)
OLD = Memory(delays=after(120).delays)
"""One job has followed such an end, two minutes after it."""


def ended(last: GoneJob, *held: Job, memory: Memory = OLD, **more: Any) -> TrainingView:
    found = replace(memory, gone=(last,), dead=START)
    return TrainingView(subject="train", now=START, queue=JobQueue(held=held), memory=found, **more)


def told(last: GoneJob, *held: Job, settings: dict[str, Any] | None = None, **more: Any) -> Finding:
    return judge_training(check(**(settings or {})), ended(last, *held, **more))


def with_end(last: GoneJob, **end: Any) -> GoneJob:
    assert last.end is not None
    return replace(last, end=replace(last.end, **end))


DIED = replace(gone(), how=HOW)
NEVER = with_end(replace(DIED, seen=replace(DIED.seen, state="PENDING", nodes="")), nodes="")


def test_whose_work_stops_is_told_of_a_job_that_ran() -> None:
    """What never had nodes cost nobody any."""
    assert "(alice, 32 GPUs on 4 nodes)" in told(DIED).summary
    assert "32 GPUs" not in told(NEVER).summary


@pytest.mark.parametrize(
    ("stdout", "path"), [("/w/out", "/w/out"), ("/dev/null", "/w"), ("", "/w")]
)
def test_where_it_wrote_is_told_and_else_where_it_was_submitted(stdout: str, path: str) -> None:
    """By that, alerts find the file system that is their cause."""
    last = replace(DIED, seen=replace(DIED.seen, workdir="/w"), how=replace(HOW, stdout=stdout))
    assert told(last).values["path"] == path


def test_why_it_is_told_now_is_said_where_nobody_set_the_time() -> None:
    assert "new jobs came" in str(told(DIED).values["why_now"])
    assert "why_now" not in told(DIED, for_=600.0).values
    assert "why_now" not in told(DIED, pending("11", "JobHeldUser")).values


@pytest.mark.parametrize(
    ("reasons", "status"),
    [
        ([], Status.OK),
        (["JobHeldUser"], Status.OK),
        (["JobHeldAdmin"], Status.CRITICAL),
        (["JobHeldUser", "JobHeldAdmin"], Status.CRITICAL),
    ],
)
def test_a_training_that_its_user_stopped_is_a_note_unless_others_hold_the_rest(
    reasons: list[str], status: Status
) -> None:
    held = [pending(str(n), reason) for n, reason in enumerate(reasons, 11)]
    assert told(gone("CANCELLED", by="alice"), *held).status is status


@pytest.mark.parametrize(
    ("reasons", "patience"),
    [
        (["JobHeldAdmin"], 30.0),
        (["AssocGrpGRES"], 600.0),
        (["AssocGrpGRES", "JobHeldAdmin"], 30.0),
    ],
)
def test_a_limit_of_an_account_may_be_free_again_in_a_moment(
    reasons: list[str], patience: float
) -> None:
    """What a person holds is not."""
    held = [pending(str(n), reason) for n, reason in enumerate(reasons, 11)]
    assert told(DIED, *held).patience == patience


def test_a_gap_is_suggested_where_none_is_configured() -> None:
    assert "`gap: 4m`" in told(DIED).details
    assert "`gap:" not in told(DIED, settings={"gap": 60}).details


def test_what_lost_its_partition_is_not_submitted_again() -> None:
    """Nothing would take it."""
    died = with_end(DIED, state="NODE_FAIL")
    assert [act.argv[0] for act in told(died).acts] == ["sbatch"]
    assert told(with_end(died, reason="PartitionDown")).acts == ()


@pytest.mark.parametrize(
    ("seen", "end", "node"),
    [
        ("node-1", {"state": "NODE_FAIL"}, "node-1"),
        ("node-[0-3]", {"state": "NODE_FAIL"}, ""),
        ("node-1,node-2", {"state": "NODE_FAIL"}, ""),
        ("node-[0-3]", {"state": "NODE_FAIL", "failed_node": "node-2"}, "node-2"),
        ("node-1", {"state": "FAILED"}, ""),
        ("node-1", {"state": "NODE_FAIL", "reason": "PartitionDown"}, ""),
    ],
)
def test_the_node_that_failed_is_named_where_one_alone_can_be(
    seen: str, end: dict[str, str], node: str
) -> None:
    """An alert about that node explains this one, so none is guessed."""
    last = with_end(replace(DIED, seen=replace(DIED.seen, nodes=seen)), **end)
    assert find_culprit_node(ended(last)) == node


def test_what_shows_the_end_names_the_job_and_its_nodes() -> None:
    """Where Slurm tells no node of the end, those that the job was seen on; no id that is none."""
    lost = with_end(DIED, state="NODE_FAIL", nodes="")
    assert "scontrol show job 10 | cat -v" in looks(told(DIED))
    assert "sinfo -R -n n1" in looks(told(replace(lost, seen=replace(lost.seen, nodes="n1"))))
    odd = replace(DIED, seen=replace(DIED.seen, job_id="10_[1-4]"))
    assert not any("10_" in command for command in looks(told(odd)))


def test_the_moment_of_its_end_is_told() -> None:
    found = told(with_end(DIED, ended=1_790_000_000))
    assert found.began == 1_790_000_000
    assert told(replace(DIED, end=None, at=shift_instant(START, -5))).began is None
