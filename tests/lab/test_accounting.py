"""The lab with a slurmdbd: what squeue has forgotten, sacct still knows."""

import subprocess

import pytest

from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until


def sacct(lab: Lab, job: str) -> str:
    """State and exit code of the job itself."""
    return lab.ask(["sacct", "-D", "-X", "-n", "-P", "-j", job, "-o", "State,ExitCode"]).strip()


@pytest.mark.long
def test_sacct_knows_how_a_job_ended(fresh_accounting: Lab) -> None:
    """State and exit code of a job that failed."""
    job = fresh_accounting.sbatch("exit 3")
    wait_until(lambda: sacct(fresh_accounting, job) == "FAILED|3:0", "sacct: FAILED", 20.0)


@pytest.mark.long
def test_a_stopped_slurmdbd_holds_sacct_but_not_squeue(fresh_accounting: Lab) -> None:
    """The two have different servers."""
    fresh_accounting.accounting.stop()
    with pytest.raises(subprocess.TimeoutExpired):
        fresh_accounting.run(["sacct"], limit=3)
    assert fresh_accounting.run(["squeue"]).returncode == 0
    fresh_accounting.accounting.cont()
    assert fresh_accounting.run(["sacct"]).returncode == 0
