"""Every word squeue has for a job's state."""

import pytest

from sentinel.core.model import Status
from sentinel.slurm.job_states import state_meaning
from tests.checks.job.making import check, glance, job

STATES = {
    "RUNNING": Status.OK,
    "RESIZING": Status.OK,
    "SIGNALING": Status.OK,
    "CONFIGURING": Status.OK,
    "PENDING": Status.OK,
    "REQUEUED": Status.OK,
    "REQUEUED_CRON": Status.OK,
    "REQUEUE_FED": Status.OK,
    "EXPEDITING": Status.OK,
    "COMPLETING": Status.OK,
    "STAGE_OUT": Status.OK,
    "REVOKED": Status.UNKNOWN,
    "SOMETHING_NEW": Status.UNKNOWN,
    "SUSPENDED": Status.WARNING,
    "STOPPED": Status.WARNING,
    "REQUEUE_HOLD": Status.CRITICAL,
    "SPECIAL_EXIT": Status.CRITICAL,
    "RESV_DEL_HOLD": Status.CRITICAL,
    "COMPLETED": Status.CRITICAL,
    "CANCELLED": Status.CRITICAL,
    "FAILED": Status.CRITICAL,
    "TIMEOUT": Status.CRITICAL,
    "NODE_FAIL": Status.CRITICAL,
    "PREEMPTED": Status.CRITICAL,
    "BOOT_FAIL": Status.CRITICAL,
    "DEADLINE": Status.CRITICAL,
    "OUT_OF_MEMORY": Status.CRITICAL,
}


@pytest.mark.parametrize(("state", "status"), STATES.items())
def test_what_a_lone_job_in_each_state_means(state: str, status: Status) -> None:
    """Alive or on its way is ok, doing nothing is a warning, held or over is critical."""
    finding = glance(check(), job(state=state)).findings[0]
    assert finding.status is status
    over = "not running and nothing is queued" in finding.summary
    assert over or state in finding.summary or state in ("RUNNING", "PENDING")


@pytest.mark.parametrize(
    ("state", "step"),
    [
        ("CANCELLED by 1000", "Ask who cancelled it"),
        ("TIMEOUT", "{owner} submits it again, from its last checkpoint"),
        ("AWordOfSlurm31", ""),
    ],
)
def test_the_first_step_after_an_end_is_known_by_its_state(state: str, step: str) -> None:
    """Also in the form of accounting; of a word that nobody knows the log has to say it."""
    found = state_meaning(state).first_step
    assert found.startswith(step)
    assert bool(found) == bool(step)
