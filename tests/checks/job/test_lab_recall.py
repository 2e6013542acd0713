"""The second look of the `job` check on a real Slurm: cut lists, unseen deaths, a lost memory."""

import os
import shutil
from pathlib import Path

import pytest

from sentinel.core.model import Finding, Status
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
    job = fresh_accounting.sbatch("exit 3", name="train")
    fresh_accounting.wait_state(job, "FAILED")
    other = fresh_accounting.sbatch("exit 2", name="train", user=alice)
    fresh_accounting.wait_state(other, "FAILED")
    named = ["sacct", "-n", "-X", "-P", "-a", "--name=train", "-o", "JobID"]
    wait_until(  # of a job that ends at once slurmdbd learns the name seconds after the end
        lambda: {job, other} <= set(fresh_accounting.ask(named).split()), "accounting", 30
    )
    live = Live(fresh_accounting)
    behind(live, tmp_path, FORGETFUL)
    finding = live.look()
    assert f"job {job} FAILED with exit code 3" in finding.summary


def look_twice(live: Live, lab: Lab, between: str, window_s: float) -> dict[str, Finding]:
    """A look so many seconds ago, then jobs of several sizes that fail at once, then a look."""
    live.look(earlier_s=window_s)
    jobs = [lab.sbatch("exit 3", name=f"{between}-{n}", nodes=n, gres="gpu:8") for n in (1, 2)]
    lab.wait_state(jobs[0], "FAILED")
    lab.wait_state(jobs[1], "FAILED")
    live.look()
    return {f.subject: f for f in live.findings}


def test_a_large_job_that_began_and_died_between_two_looks(fresh: Lab) -> None:
    """By its size alone; the smaller one is not meant."""
    for size in ({"min_nodes": 2}, {"min_gpus": 16}):
        name = "-".join(size)
        found = look_twice(Live(fresh, name=None, users=[], **size), fresh, name, 200)
        assert {s for s in found if name in s} == {f"root/{name}-2"}
        assert "FAILED with exit code 3 on node-" in found[f"root/{name}-2"].summary


@pytest.mark.long
def test_a_large_job_that_slurmctld_has_forgotten_accounting_knows(
    fresh_accounting: Lab, tmp_path: Path
) -> None:
    """The looks are farther apart than MinJobAge."""
    live = Live(fresh_accounting, name=None, users=[], min_nodes=2)
    behind(live, tmp_path, FORGETFUL)
    found = look_twice(live, fresh_accounting, "big", 900)
    assert not [name for name in found if "big" in name]  # accounting may be behind
    asked = ["sacct", "-n", "-X", "-P", "-a", "--name=big-2", "-o", "State"]
    wait_until(lambda: "FAILED" in fresh_accounting.ask(asked), "accounting", 30)
    live.look(earlier_s=-320)
    found = {f.subject: f for f in live.findings}
    assert {name for name in found if "big" in name} == {"root/big-2"}  # others have jobs there too
    assert "FAILED with exit code 3" in found["root/big-2"].summary
