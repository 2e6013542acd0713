"""Power saving of a real Slurm, and a node whose slurmd is really gone while it sleeps."""

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from sentinel.checks.nodes import Nodes
from sentinel.clock import SystemClock
from sentinel.core.model import Status
from sentinel.core.values import Rate
from sentinel.slurm.client import Client
from sentinel.slurm.snapshot import Snapshot
from sentinel.testing import context
from tests.lab import needs
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until

SAVING: dict[str, Any] = {
    "SuspendProgram": "/bin/true",
    "ResumeProgram": "/bin/true",
    "SuspendTime": 1,
    "SuspendTimeout": 1,
    "ResumeTimeout": 300,
}


@pytest.fixture
def saving() -> Iterator[Lab]:
    """A cluster of its own: what sleeps would not be ready for the next test. Configured from its start: a
    reconfigure starts newer slurmctlds anew, and then they do not know their nodes for a moment."""
    if missing := needs.why_no_lab():
        needs.skip(missing)
    with Lab(nodes=1, **SAVING) as lab:
        yield lab


@pytest.mark.lab
def test_a_node_that_goes_to_sleep_and_is_woken_is_never_out(saving: Lab) -> None:
    """POWERING_DOWN outlasts SuspendTimeout by slurmctld's round of 10 s; the silence while it wakes
    is no absence."""
    slurm = Snapshot(Client(environ=saving.env), SystemClock(), users=(), max_age=0.0)
    assert slurm.timeouts().of(("main",), suspend=False) == 300
    assert slurm.timeouts().of(("main",), suspend=True) == 1
    check = Nodes(flapping=Rate("1 in 1d"))
    memory: dict[str, object] = {}
    seen: list[str] = []

    def until(flag: str) -> None:
        def look() -> bool:
            report = check.run(context(slurm, SystemClock().now(), memory=memory))
            memory.update(report.memory or {})
            assert {f.subject: f.status for f in report.findings}["node-0"] is Status.OK, seen
            seen.append(str(report.findings[1].values["state"]))
            return flag in seen[-1]

        wait_until(look, flag, 60.0)

    until("POWERED_DOWN")
    saving.crash_node(0)
    job = ["srun", "-w", "node-0", "-t1", "true"]
    with subprocess.Popen(job, env=saving.env, stderr=subprocess.DEVNULL) as waiting:
        until("NOT_RESPONDING+POWERING_UP")
        waiting.kill()
    assert any("POWERING_DOWN" in state for state in seen)
