"""Jobs of a real Slurm, asked over a real sshd: which are told, by slurmstepd and cgroups as they are.
nvidia-smi is not there, so a script prints its pages; the clock is moved on by hand."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from sentinel.checks.idle import IdleCheck
from sentinel.clock import SystemClock
from sentinel.core.model import Finding, Status
from sentinel.core.values import Duration, Size
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.testing import ManualClock, context
from tests.checks.idle.world import use_text
from tests.lab.cluster import Lab
from tests.lab.gpus import gpus_of, nvidia_smi
from tests.lab.slurmconf import GPUS
from tests.lab.waiting import wait_until
from tests.nodes.nodes import Nodes

pytestmark = [pytest.mark.lab, pytest.mark.long]

LOOK_S = 300.0
ANSWERS = """\
#!/bin/sh
case "$*" in
*-x*) cat {folder}/page.{node} ;;
*UTILIZATION*) cat {folder}/use.{node} ;;
*) exit 1 ;;
esac
"""


class Site:
    """The lab with a check. Its nodes share this machine, whose traffic is not that of a job."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder, self.nodes = lab, folder, Nodes(lab, folder)
        self.clock, self.memory = ManualClock(SystemClock().now()), {}
        self.check = IdleCheck(users=["*"], trial=Duration(0), traffic=Size.parse("100TB"))
        for number, node in enumerate(lab.nodes):
            gpus = gpus_of(number, GPUS)
            (folder / f"page.{node.name}").write_text(nvidia_smi(gpus))
            self.is_at_work(number, 0.0)
            (node.bin / "nvidia-smi").write_text(ANSWERS.format(folder=folder, node=node.name))
            (node.bin / "nvidia-smi").chmod(0o755)

    def is_at_work(self, number: int, percent: float) -> None:
        use = {gpu.address: percent for gpu in gpus_of(number, GPUS)}
        (self.folder / f"use.node-{number}").write_text(use_text(use))

    def watch(self, looks: int = 14) -> dict[str, Finding]:
        """The findings of the last look, by subject."""
        found: dict[str, Finding] = {}
        self.clock.advance(float(self.check.grace) + 60)
        for _ in range(looks):
            client = SlurmClient(environ=self.lab.env)
            slurm = SlurmSnapshot(client, SystemClock(), users=None, max_age=0.0)
            now = self.clock.now()
            ctx = context(slurm, now, remote=self.nodes.reach(), memory=self.memory, limit=60.0)
            report = self.check.run(ctx)
            self.memory = msgspec.json.decode(msgspec.json.encode(report.memory))
            found = {f.subject.partition("/")[2]: f for f in report.findings}
            self.clock.advance(LOOK_S)
        return found


def test_real_jobs_are_told_apart(fresh: Lab, tmp_path: Path) -> None:
    """A batch job that sleeps, one whose GPUs work, one of salloc, and two that share a node."""
    site = Site(fresh, tmp_path)
    gpus: dict[str, Any] = {"gres": f"gpu:{GPUS}", "exclusive": True}
    idle = fresh.sbatch("exec sleep 600", name="idle", nodelist="node-0", **gpus)
    fresh.sbatch("exec sleep 600", name="busy", nodelist="node-1", **gpus)
    half: dict[str, Any] = {
        "gres": f"gpu:{GPUS // 2}",
        "nodelist": "node-2",
        "cpus_per_task": 1,
        "mem": 100,
    }
    for name in ("half", "other"):
        fresh.sbatch("exec sleep 600", name=name, **half)
    fresh.ask(
        ["salloc", "--no-shell", "--job-name=hand", "-wnode-3", f"--gres=gpu:{GPUS}", "--exclusive"]
    )
    site.is_at_work(1, 90.0)
    wait_until(lambda: fresh.ask(["squeue", "-h", "-t", "R", "-o", "%j"]).count("\n") == 5, "jobs")
    found = site.watch()
    said = {name: (f.status, f.summary) for name, f in found.items()}
    assert found["idle"].status is Status.WARNING, said
    assert f"{GPUS} of {GPUS} GPUs unused for 1h" in found["idle"].summary
    assert f"(job {idle})" in found["idle"].summary
    assert "no process of it on" not in found["idle"].summary, "its script is there, by its cgroup"
    assert said["busy"] == (Status.OK, f"{GPUS} of {GPUS} GPUs at work at this look")
    assert said["hand"] == (Status.OK, f"0 of {GPUS} GPUs at work; an interactive job")
    for name in ("half", "other"):
        assert found[name].status is Status.UNKNOWN
        assert "another job has the node too" in found[name].summary
