"""`stacks`: evidence of a job that runs, taken without a change to it."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.actions.job_requests import StillLogSighting, make_job_request
from sentinel.actions.stacks import StacksAction
from sentinel.core.actions import Answer, Reply
from sentinel.core.cluster import Job
from sentinel.core.model import ActionRequest
from tests.checks.log.jobs import job

LOG = "/logs/train.log"


class Desk:
    """Slurm's rows, a log of some size, and what it was asked to take."""

    def __init__(self, *rows: Job, size: int | None = 100) -> None:
        self.rows, self.bytes, self.taken = rows, size, list[str]()

    def jobs(self, job_id: str) -> Sequence[Job]:
        return [row for row in self.rows if row.job_id == job_id]

    def size(self, path: str, user: str) -> int | None:
        return self.bytes if path == LOG else None

    def tail(self, path: str, size: int, user: str) -> str:
        return ""

    def evidence(self, job_id: str) -> Reply:
        self.taken.append(job_id)
        return Reply(Answer.ACCEPTED, "/evidence/job-10: rank 3 stands alone")

    def create(self, path: str, line: str, user: str, *, literal: bool) -> Reply:
        raise AssertionError("it changes nothing")


def wish() -> ActionRequest:
    return make_job_request("stacks", job(), "hangs", seen=StillLogSighting(path=LOG, size=100))


def test_a_running_job_whose_log_stands_still_is_looked_at() -> None:
    """It is never done already: each time it finds out anew."""
    look = StacksAction().look(wish(), Desk(job()))
    assert (look.done, look.not_ready, look.unneeded) == (False, "", "")


def test_a_log_that_goes_on_keeps_it_back() -> None:
    assert "log" in StacksAction().look(wish(), Desk(job(), size=101)).not_ready


def test_a_run_that_is_over_needs_none() -> None:
    """Nor is it called done: nothing was kept."""
    look = StacksAction().look(wish(), Desk())
    assert (look.done, bool(look.unneeded)) == (False, True)


def test_the_answer_is_what_was_found_and_where_it_is() -> None:
    desk = Desk(job())
    reply = StacksAction().perform(wish(), desk)
    assert (reply.answer, reply.text) == (Answer.ACCEPTED, "/evidence/job-10: rank 3 stands alone")
    assert desk.taken == [job().job_id]


def test_the_command_that_does_it_by_hand_is_named() -> None:
    assert StacksAction().commands(wish()) == (("sentinel", "stacks", job().job_id),)


def test_six_a_day_and_job_are_allowed_and_leave_no_trace() -> None:
    assert str(StacksAction.limits.per_node) == "6 in 1d"
    assert StacksAction.asks_anew
    assert StacksAction.leaves_no_trace
