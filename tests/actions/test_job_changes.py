"""Actions on jobs without a cluster: what is asked again right before the commands run."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace

from sentinel.actions.guard import judge_request
from sentinel.actions.jobs import JOB_ACTION_LIMITS, change_after_evidence, look_at_running_job
from sentinel.actions.resubmit import ONCE_PER_JOB_LIMITS
from sentinel.core.action_limits import Limits
from sentinel.core.actions import ActionHistory, Answer, Reply
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest
from sentinel.testing import START, job
from tests.actions.test_guard import CALM, before


class Queue:
    """A Slurm with these jobs, which keeps what it is told, and whose log has so many bytes."""

    def __init__(self, *rows: Job, size: int | None = 7, refuses: str = "") -> None:
        self.rows, self.bytes, self.refuses = rows, size, refuses
        self.is_silent = False
        self.told: list[Sequence[str]] = []

    def jobs(self, job_id: str) -> Sequence[Job]:
        if self.is_silent:
            raise CannotTell("slurmctld does not answer")
        return self.rows

    def size(self, path: str, user: str) -> int | None:
        return self.bytes

    def tail(self, path: str, size: int, user: str) -> str:
        assert self.bytes is not None, "there is no file"
        return "iteration 7\n"

    def evidence(self, job_id: str) -> Reply:
        return Reply(Answer.REFUSED, "no stacks")

    def change(self, argv: Sequence[str]) -> Reply:
        self.told.append(argv)
        refused = self.refuses and self.refuses in argv
        return Reply(Answer.REFUSED, "Access denied") if refused else Reply(Answer.ACCEPTED)

    @property
    def hands(self) -> Any:
        return cast("Any", self)


def wish(target: str = "10", **params: str) -> ActionRequest:
    return ActionRequest(action="cancel", target=target, reason="no progress", params=params)


def cancel(queue: Queue, request: ActionRequest) -> Reply:
    return change_after_evidence(request, queue.hands, [["scancel", request.target]])


COUNTED = {"path": "/l", "pattern": r"iteration (\d+)", "number": "7.0"}


@pytest.mark.parametrize("seen", [{"path": "/l", "size": "7"}, COUNTED])
def test_a_job_that_still_hangs_is_changed_though_there_is_no_evidence(
    seen: Mapping[str, str],
) -> None:
    """The same run, of the same user, with the same log; whatever else Slurm lists first."""
    queue = Queue(job("9", "COMPLETED"), job("10"))
    reply = cancel(queue, wish(user="alice", started=str(job("10").started), **seen))
    assert (reply.answer, reply.text, queue.told) == (
        Answer.ACCEPTED,
        "no stacks",
        [["scancel", "10"]],
    )


@pytest.mark.parametrize(("number", "named"), [("12_4", "12_4"), ("12", "12"), ("12+0", "12")])
def test_an_element_that_has_the_arrays_number_is_named_by_its_own(number: str, named: str) -> None:
    """`scancel 12` would end all elements; a plain job and a whole heterogeneous one keep the
    number of the request."""
    queue = Queue(replace(job(number), job_id="12"))
    assert cancel(queue, wish("12")).answer is Answer.ACCEPTED
    assert queue.told == [["scancel", named]]


@pytest.mark.parametrize(
    ("rows", "size", "params", "says"),
    [
        ((), 7, {}, "Slurm knows no such job"),
        ((job("10", "COMPLETED"),), 7, {}, "it is COMPLETED, not RUNNING"),
        ((job("10"),), 7, {"started": "1"}, "it was started anew since"),
        ((job("10"),), 7, {"user": "bob"}, "it belongs to alice"),
        ((job("10"),), 8, {"path": "/l", "size": "7"}, "its log went from 7 to 8 bytes"),
        ((job("10"),), 7, {**COUNTED, "number": "6.0"}, "its progress went from 6 to 7"),
        ((job("10"),), None, COUNTED, "/l is gone"),
    ],
)
def test_what_is_another_run_or_moves_is_left_alone(
    rows: Sequence[Job], size: int | None, params: Mapping[str, str], says: str
) -> None:
    """After the evidence, which took a while, and before anything of it."""
    queue = Queue(*rows, size=size)
    reply = cancel(queue, wish(**params))
    assert (reply.answer, queue.told) == (Answer.REFUSED, [])
    assert says in reply.text
    look = look_at_running_job(wish(**params), queue.hands)
    assert says in look.unneeded + look.not_ready


def test_a_look_says_where_the_job_is_and_whose() -> None:
    on = replace(job("10"), nodes="node-1")
    assert look_at_running_job(wish(), Queue(on).hands).text == "RUNNING on node-1, of alice"
    off = replace(job("10", "PENDING"), nodes="")
    assert look_at_running_job(wish(), Queue(off).hands).text == "PENDING, of alice"
    assert look_at_running_job(wish(), Queue().hands).text == "gone from Slurm"


def test_what_cannot_be_read_again_is_left_alone() -> None:
    queue = Queue(job("10"))
    queue.is_silent = True
    reply = cancel(queue, wish())
    assert (reply.answer, queue.told) == (Answer.REFUSED, [])
    assert "it could not be read again: slurmctld does not answer" in reply.text


def test_after_a_refusal_no_further_command_runs() -> None:
    """A requeue that was refused is not held."""
    queue = Queue(job("10"), refuses="requeue")
    commands = [["scontrol", "requeue", "10"], ["scontrol", "hold", "10"]]
    reply = change_after_evidence(wish(), queue.hands, commands)
    assert (reply.answer, reply.text) == (Answer.REFUSED, "Access denied; no stacks")
    assert queue.told == commands[:1]


@pytest.mark.parametrize(
    ("limits", "an_hour", "a_job"), [(JOB_ACTION_LIMITS, 10, 2), (ONCE_PER_JOB_LIMITS, 3, 1)]
)
def test_so_many_jobs_an_hour_and_one_job_so_often(
    limits: Limits, an_hour: int, a_job: int
) -> None:
    """At once after another: stacks come before each other action, so there is no pause."""

    def rule(*targets: str, last: str) -> str:
        past = ActionHistory(
            records=tuple(before(n / 1e6, t, action="cancel") for n, t in enumerate(targets))
        )
        alone = replace(CALM, partitions={})
        return judge_request(wish(last), past, limits, alone, START).rule

    others = [f"{number}" for number in range(100, 100 + an_hour)]
    assert rule(*others[1:], last="10") == ""
    assert rule(*others, last="10") == "per_hour"
    assert rule(*["10"] * (a_job - 1), last="10") == ""
    assert rule(*["10"] * a_job, last="10") == "suspect"
