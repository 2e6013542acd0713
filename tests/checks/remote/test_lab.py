"""`memory` and `fs` on real nodes, by ssh."""

from pathlib import Path

import pytest

from sentinel.alerting.observations import RunOutcome
from sentinel.checks.fs.check import FsCheck
from sentinel.checks.memory import MemoryCheck
from sentinel.clock import SystemClock
from sentinel.core.model import Status
from sentinel.core.settings import CheckCommon, CheckConfig, FilePath
from sentinel.engine.runner import CheckRunner
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.testing import context
from tests.lab.cluster import Lab
from tests.nodes.nodes import Nodes

pytestmark = pytest.mark.lab


def test_a_full_disk_and_a_lost_node(fresh: Lab, tmp_path: Path) -> None:
    """A tmpfs that is full on node-1 only, node-2 cut off: each is told by itself."""
    nodes = Nodes(fresh, tmp_path)
    for name, size in (("node-0", "8m"), ("node-1", "1m")):
        nodes.on(name, f"mount -t tmpfs -o size={size} lab /mnt; head -c 990k /dev/zero >/mnt/full")
    fresh.cut_node(2)
    check = FsCheck(nodes="node-[0-2]", paths=[FilePath("/mnt")], mounted=True)
    found = {f.subject: f for f in check.run(context(remote=nodes.reach(), limit=20)).findings}
    assert found["node-0:/mnt"].status is Status.OK
    assert found["node-1:/mnt"].status is Status.CRITICAL
    assert "used" in found["node-1:/mnt"].summary
    assert found["node-2:/mnt"].status is Status.UNKNOWN
    assert found["node-2:/mnt"].summary.startswith("unreachable: ")


def test_memory_of_nodes(fresh: Lab, tmp_path: Path) -> None:
    """The level that node and host have in common here, told for the node."""
    nodes = Nodes(fresh, tmp_path)
    check = MemoryCheck(nodes="node-[0-1]")
    report = check.run(context(remote=nodes.reach(), limit=20, one_shot=True))
    assert [(f.subject, f.status is Status.UNKNOWN) for f in report.findings] == [
        ("node-0", False), ("node-1", False),
    ]  # fmt: skip
    assert {s.subject for s in report.samples} == {"node-0", "node-1"}


def test_all_nodes_of_which_slurm_hears_nothing_are_not_well(fresh: Lab, tmp_path: Path) -> None:
    """By slurmctld's own states: one of some, with its reason, and then none of them."""
    fresh.configure(ReturnToService=0)
    reach, count = Nodes(fresh, tmp_path).reach(), len(fresh.nodes)
    check = CheckConfig(
        name="c", common=CheckCommon(kind="memory"), plugin=MemoryCheck(nodes="all")
    )

    def look() -> RunOutcome:
        slurm = SlurmSnapshot(
            SlurmClient(environ=fresh.env), SystemClock(), users=None, max_age=0.0
        )
        return CheckRunner().run(check, context(slurm, remote=reach, limit=20, one_shot=True))  # type: ignore[arg-type]

    fresh.ask(
        ["scontrol", "update", f"nodename=node-[1-{count - 1}]", "state=down", "reason=power"]
    )
    partly, why = look(), "(Slurm does not hear from them)"
    assert [f.subject for f in partly.findings] == ["node-0", ""]
    assert partly.unseen_summary == f"saw 1 of {count} nodes: not node-[1-{count - 1}] {why}"
    assert partly.itself.status is Status.OK
    fresh.ask(["scontrol", "update", "nodename=node-0", "state=down", "reason=power"])
    dark = look().itself
    assert dark.status is Status.UNKNOWN
    assert dark.summary == f"saw 0 of {count} nodes: not node-[0-{count - 1}] {why}"
