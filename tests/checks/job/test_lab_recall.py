"""The second look of the `job` check on a real Slurm: cut lists, unseen deaths, a lost memory."""

import os
import shutil
from pathlib import Path

import pytest

from sentinel.core.model import Status
from tests.checks.job.test_lab import SLEEP, Live
from tests.lab.cluster import Lab
from tests.lab.needs import SLURM_BIN
from tests.lab.waiting import wait_until

CUT = f"""#!/bin/sh
for word; do [ "$word" = all ] && exec {SLURM_BIN}/squeue "$@"; done
exec {SLURM_BIN}/squeue --name=nosuch "$@"
"""
"""The list of jobs ends behind its header; a second question is answered in full."""

FORGETFUL = f'#!/bin/sh\nexec {SLURM_BIN}/squeue --name=nosuch "$@"\n'


def behind(live: Live, folder: Path, squeue: str) -> None:
    """From now on this squeue is asked."""
    script = folder / "squeue"
    script.write_text(squeue)
    script.chmod(0o755)
    live.env = {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_list_that_ends_too_early_is_no_death(fresh: Lab, tmp_path: Path) -> None:
    """All records whole, exit code 0, nothing on stderr, and the job is missing."""
    live = Live(fresh)
    job = fresh.sbatch(SLEEP, name="train")
    live.until(lambda f: f.values["running"] == 1)
    behind(live, tmp_path, CUT)
    finding = live.look()
    assert finding.status is Status.UNKNOWN
    assert f"squeue's list leaves out job {job}, which is RUNNING" in finding.summary
    live.env = {}
    assert live.look().status is Status.OK


def test_a_job_that_died_before_the_first_look_is_found_by_name(fresh: Lab) -> None:
    """With its code and its last lines; a name may hold what Slurm takes for a list."""
    name = "größte, beste|\n1|1|COMPLETED"
    out = fresh.work / "early-%j.out"
    job = fresh.sbatch("echo Traceback: early; exit 3", name=name, output=out)
    fresh.wait_state(job, "FAILED")
    finding = Live(fresh, name=name).look()
    assert finding.status is Status.CRITICAL
    assert f"job {job} FAILED with exit code 3 on node-" in finding.summary
    assert "Traceback: early" in finding.details


def test_of_an_array_whose_later_elements_failed(fresh: Lab) -> None:
    """Seen was the first one only, which is COMPLETED."""
    go = fresh.work / "go"
    script = f'[ "$SLURM_ARRAY_TASK_ID" = 0 ] || exit 4\nwhile [ ! -e {go} ]; do sleep 0.1; done'
    array = fresh.sbatch(script, name="train", array="0-2%1")
    live = Live(fresh)
    live.until(lambda f: f.values["running"] == 1)
    go.touch()
    wait_until(
        lambda: sorted(set(fresh.states(array))) == ["COMPLETED", "FAILED"], "the array's end", 30
    )
    finding = live.look()
    assert finding.status is Status.CRITICAL
    assert f"job {array}_2 FAILED with exit code 4" in finding.summary
    assert "COMPLETED" not in finding.summary


def test_a_slurmctld_that_has_lost_its_memory(fresh: Lab) -> None:
    """Its state is gone: all jobs vanish at once, and ids begin anew."""
    job = fresh.sbatch(SLEEP, name="train")
    live = Live(fresh)
    live.until(lambda f: f.values["running"] == 1)
    fresh.kill_controller()
    shutil.rmtree(fresh.folder / "state")
    (fresh.folder / "state").mkdir()
    fresh.start_controller()
    finding = live.until_dead()
    assert f"job {job} is gone: slurmctld started anew" in finding.summary
    assert "has lost its memory of it" in finding.summary


@pytest.mark.long
def test_what_slurmctld_has_forgotten_accounting_knows_by_name(
    fresh_accounting: Lab, tmp_path: Path
) -> None:
    """The name alone is known, and a job of another user has it too."""
    alice = fresh_accounting.user("alice")
    job = fresh_accounting.sbatch("exit 6", name="train")
    fresh_accounting.wait_state(job, "FAILED")
    other = fresh_accounting.sbatch("exit 7", name="train", user=alice)
    fresh_accounting.wait_state(other, "FAILED")
    named = ["sacct", "-n", "-X", "-P", "-a", "--name=train", "-o", "JobID"]
    wait_until(  # of a job that ends at once slurmdbd learns the name seconds after the end
        lambda: {job, other} <= set(fresh_accounting.ask(named).split()), "accounting", 30
    )
    live = Live(fresh_accounting)
    behind(live, tmp_path, FORGETFUL)
    finding = live.look()
    assert f"job {job} FAILED with exit code 6" in finding.summary
