"""A job of four real nodes hangs: the log says so, and the nodes say what else is wrong."""

from pathlib import Path

from sentinel.checks.log import Log
from sentinel.clock import SystemClock
from sentinel.core.clock import shifted
from sentinel.core.model import Finding, Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.slurm.client import Client
from sentinel.slurm.snapshot import Snapshot
from sentinel.testing import START, context
from tests.lab.cluster import Lab
from tests.nodes.nodes import Nodes
from tests.stacks.training import Training


class Hang:
    """A training that has written its last line, watched over twenty minutes."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        log = folder / "log"
        log.write_text("step 1\nstep 2\n")
        self.check = Log(job="llm", path=FilePath(log), stale_after=Duration(1200))
        self.slurm = Snapshot(Client(environ=lab.env), SystemClock(), users=None, max_age=0.0)
        self.remote = Nodes(lab, folder).reach(timeout=8, connect=2)
        self.memory: dict[str, object] = {}

    def look(self, minutes: float) -> Finding:
        ctx = context(
            self.slurm,  # type: ignore[arg-type]
            now=shifted(START, minutes * 60),
            memory=self.memory,
            remote=self.remote,
            limit=60.0,
        )
        report = self.check.run(ctx)
        self.memory = dict(report.memory or {})
        return report.findings[0]


def test_the_nodes_confirm_a_hang_and_name_what_is_odd(fresh: Lab, tmp_path: Path) -> None:
    """Tasks that stand still; then a node whose rank has died; then one that is gone."""
    training = Training(fresh, each=1, odd=3)
    hang = Hang(fresh, tmp_path)
    assert hang.look(0).status is Status.OK
    found = hang.look(1e6)
    assert found.status is Status.CRITICAL
    assert "the processor time of its tasks stands still" in found.summary
    assert "no process" not in found.summary
    training.on(2, f"kill -9 {training.pid(2)}")
    assert "no process of the job is left on node-2" in hang.look(1e6 + 1).summary
    fresh.cut_node(1)
    found = hang.look(1e6 + 2)
    assert found.status is Status.CRITICAL
    assert "node-1 does not answer" in found.summary
