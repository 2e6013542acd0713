"""Power saving of a real Slurm, and a node whose slurmd is really gone while it sleeps."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel.checks.nodes import NodesCheck
from sentinel.clock import SystemClock
from sentinel.core.hostlist import expand_hostlist
from sentinel.core.model import Status
from sentinel.core.values import Rate
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
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


@pytest.mark.long
@pytest.mark.lab
def test_a_node_that_goes_to_sleep_and_is_woken_is_never_out(saving: Lab) -> None:
    """POWERING_DOWN outlasts SuspendTimeout by slurmctld's round of 10 s; the silence while it wakes
    is no absence."""
    slurm = SlurmSnapshot(SlurmClient(environ=saving.env), SystemClock(), users=(), max_age=0.0)
    assert slurm.timeouts().node_timeout(("main",), suspend=False) == 300
    assert slurm.timeouts().node_timeout(("main",), suspend=True) == 1
    check = NodesCheck(flapping=Rate("1 in 1d"))
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


SIZE, ROUNDS, RESUME = 5, 4, 30
BOOT = 2.0
"""Seconds. slurmd tells whole ones of its uptime: a node that was there within one may say that it booted in
the second before it was asked, and slurmctld goes on waiting for it. Seen with 22.05.8: the one node of
five that said Uptime=1 was marked down after ResumeTimeout, and its job requeued."""
PROGRAM = '#!/bin/sh\necho "$1" >> "$0.asked"\n'


class Cloud:
    """Does what Slurm asks of its SuspendProgram and ResumeProgram: ends nodes and boots them."""

    def __init__(self, lab: Lab) -> None:
        self._lab, self._done = lab, {"suspend": 0, "resume": 0}
        self.woken: list[str] = []
        self.broken: frozenset[str] = frozenset()
        self._booting: dict[str, float] = {}
        self._nodes = {node.name: node for node in lab.nodes}
        self.running = {*self._nodes}
        for name in self._done:
            program = self._program(name)
            program.write_text(PROGRAM)
            program.chmod(0o755)
        lab.configure(
            SuspendProgram=self._program("suspend"),
            ResumeProgram=self._program("resume"),
            SuspendTime=1,
            SuspendTimeout=1,
            ResumeTimeout=RESUME,
            SlurmctldParameters="power_save_interval=1,power_save_min_interval=1",
        )

    def work(self) -> None:
        """All that was asked since the last time."""
        for name in self._asked("suspend"):
            self._nodes[name].crash()
            self.running.discard(name)
        for name in self._asked("resume"):
            self.woken.append(name)
            if name not in self.broken:
                self._booting[name] = time.monotonic() + BOOT
        for name in [name for name, at in self._booting.items() if at <= time.monotonic()]:
            del self._booting[name]
            self._nodes[name].start(booted=True)
            self.running.add(name)

    def _program(self, name: str) -> Path:
        return self._lab.folder / name

    def _asked(self, name: str) -> list[str]:
        file = Path(f"{self._program(name)}.asked")
        lines = file.read_text().splitlines() if file.exists() else []
        new, self._done[name] = lines[self._done[name] :], len(lines)
        return [node for line in new for node in expand_hostlist(line)]


@pytest.mark.lab
@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_twenty_cycles_of_sleep_and_wake_and_one_that_never_wakes() -> None:
    """Nodes that are really gone and boot again: no alarm; the one that does not: one, once its
    ResumeTimeout is over."""
    if missing := needs.why_no_lab():
        needs.skip(missing)
    with Lab(nodes=SIZE) as lab:
        cloud, check = Cloud(lab), NodesCheck(flapping=Rate("1 in 1d"))
        slurm = SlurmSnapshot(SlurmClient(environ=lab.env), SystemClock(), users=(), max_age=0.0)
        memory: dict[str, object] = {}
        bad: list[dict[str, str]] = [{}]

        def look() -> None:
            cloud.work()
            report = check.run(context(slurm, SystemClock().now(), memory=memory))
            memory.update(report.memory or {})
            now = {f.subject: f.summary for f in report.findings if f.status is not Status.OK}
            if now.keys() != bad[-1].keys():
                bad.append(now)

        def asleep() -> bool:
            look()
            # Slurm's program may be late; a node that is woken before it ended does not boot.
            off = not cloud.running
            return off and all("POWERED_DOWN" in node.flags for node in slurm.nodes())

        def over(job: str) -> bool:
            look()
            return lab.states(job) == ["COMPLETED"]

        for _ in range(ROUNDS):
            wait_until(asleep, lambda: str(slurm.nodes()), 90)
            job = lab.sbatch("true", nodes=SIZE, output="/dev/null")
            wait_until(lambda: over(job), lambda: f"{lab.describe(job)} {slurm.nodes()}", 90)  # noqa: B023
        assert (len(cloud.woken), bad) == (SIZE * ROUNDS, [{}])

        wait_until(asleep, lambda: str(slurm.nodes()), 90)
        cloud.broken = frozenset(["node-0"])
        lab.sbatch("true", nodelist="node-0")
        wait_until(lambda: look() or "node-0" in cloud.woken[SIZE * ROUNDS :], "a call", 60)
        called = time.monotonic()
        wait_until(lambda: look() or len(bad) > 1, lambda: str(slurm.nodes()), RESUME + 60)
        assert time.monotonic() - called > RESUME - 2
        until = time.monotonic() + 10
        wait_until(lambda: look() or time.monotonic() > until, "ten seconds more", 60)
        assert [[*told] for told in bad] == [[], ["node-0"]]
