"""Every word squeue has for a job's state."""

import pytest

from sentinel.core.model import Status
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
    over = finding.summary.startswith("not running and nothing is queued")
    assert over or state in finding.summary or state in ("RUNNING", "PENDING")
