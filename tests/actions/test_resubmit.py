"""`resubmit`: what became of a submission, and that there is never a second one."""

import os
import pwd
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from sentinel.actions.resubmit import ResubmitAction
from sentinel.core.cluster import Job, Node
from sentinel.core.model import ActionRequest
from sentinel.testing import job

ME = pwd.getpwuid(os.geteuid()).pw_name
WISH = ActionRequest(
    action="resubmit",
    target="11",
    reason="it died at step 5",
    params={
        "user": ME,
        "workdir": "/w",
        "words": '["sbatch", "/w/t.sh"]',
        "name": "train",
        "since": "1790000000",
    },
)


class Slurm:
    """A Slurm that remembers the job that died, and whose memory of submissions is this."""

    def __init__(self, again: Sequence[str] | None, *jobs: Job) -> None:
        self.again, self.rows = again, jobs
        self.asked: list[tuple[str, float, str]] = []

    def node(self, name: str) -> Node | None:
        return None

    def jobs(self, job_id: str) -> Sequence[Job]:
        return self.rows

    def size(self, path: str, user: str) -> int | None:
        return None

    def tail(self, path: str, size: int, user: str) -> str:
        return ""

    def submitted_since(self, name: str, since: float, job_id: str) -> Sequence[str] | None:
        self.asked.append((name, since, job_id))
        return self.again


DEAD = job("11", "FAILED", user=ME)


def test_nothing_speaks_against_the_first_submission() -> None:
    """It is the same when slurmctld has forgotten the job that died."""
    slurm = Slurm([], DEAD)
    look = ResubmitAction().look(WISH, slurm)
    assert (look.done, look.unneeded, look.not_ready) == (False, "", "")
    assert slurm.asked == [("train", 1790000000, "11")]
    assert ResubmitAction().look(WISH, Slurm([])).mark == look.mark


def test_a_job_that_was_submitted_since_is_what_was_asked_for() -> None:
    """sbatch timed out, and slurmctld took the job all the same; or somebody was faster."""
    look = ResubmitAction().look(WISH, Slurm(["12"], DEAD))
    assert look.done
    assert look.unneeded == look.text == "job 12 of its name was submitted since"


def test_where_nobody_can_tell_nothing_is_submitted() -> None:
    """And the outcome of one that timed out is never called none."""
    look = ResubmitAction().look(WISH, Slurm(None, DEAD))
    assert not look.done
    assert look.not_ready.startswith("nobody can tell whether it was submitted")
    assert look.mark != ResubmitAction().look(WISH, Slurm([], DEAD)).mark


@pytest.mark.parametrize(
    ("state", "user", "says"),
    [
        ("RUNNING", ME, "it is RUNNING, and not over"),
        ("FAILED", "bob", f"it belongs to bob, and sentinel runs as {ME}"),
    ],
)
def test_what_still_runs_or_is_of_another_user_is_not_submitted(
    state: str, user: str, says: str
) -> None:
    """Slurm would run it as the user who submits it."""
    wish = replace(WISH, params={**WISH.params, "user": user})
    look = ResubmitAction().look(wish, Slurm([], job("11", state, user=user)))
    assert (look.not_ready, look.done, look.unneeded) == (says, False, "")


def test_it_is_submitted_as_it_was_where_it_was() -> None:
    assert ResubmitAction().commands(WISH) == (("sbatch", "--chdir=/w", "/w/t.sh"),)
    assert ResubmitAction.leaves_no_trace  # a new job may not be seen at once, and is no failure


@pytest.mark.parametrize("params", [{"name": ""}, {"since": ""}])
def test_a_request_of_an_older_version_is_carried_out(params: dict[str, str]) -> None:
    """It names neither."""
    old = replace(WISH, params={**WISH.params, **params})
    assert ResubmitAction().look(old, Slurm(None, DEAD)).not_ready == ""
