"""A controller with very many nodes that do not exist: for measuring what questions cost.

Nodes are idle by decree (no slurmd), so jobs can wait but not run.
"""

import sys

from tests.lab import slurmconf
from tests.lab.base import Cluster
from tests.lab.network import CONTROLLER

SETTINGS = {
    "MaxArraySize": 100_001,
    "MaxJobCount": 250_000,
    "SchedulerParameters": "bf_max_job_test=1,default_queue_depth=1,sched_interval=600",
    "SlurmctldDebug": "error",
    "SlurmdTimeout": 0,
    "MessageTimeout": 600,
}
"""The controller asks all nodes once, 3 s after its start (ping_nodes.c), and those that have not
answered when MessageTimeout is over are NOT_RESPONDING: until then they are what was decreed."""

PORT = 18_999
DEAF = f"import signal, socket; s = socket.create_server(('127.0.0.1', {PORT})); signal.pause()"
"""Where slurmd would be: connections are taken, and nobody answers."""


class ScaleLab(Cluster):
    """`nodes` idle nodes; `fill` puts waiting jobs into the queue."""

    def __init__(self, index: int | None = None, nodes: int = 10_000) -> None:
        super().__init__(index, accounting=False, **SETTINGS)
        self._nodes = f"n[{0:05}-{nodes - 1:05}]"

    def fill(self, jobs: int = 100_000, name: str = "train") -> str:
        """One held array of so many elements (at most 100,000); its job id."""
        return self.sbatch("exit 0", name=name, hold=True, array=f"0-{jobs - 1}")

    def _up(self) -> None:
        super()._up()
        space = ["ip", "netns", "exec", self._net.namespace(CONTROLLER)]
        self._daemons.start("deaf", [*space, sys.executable, "-c", DEAF], self.folder / "log/deaf")
        self.wait_ready()
        self.ask(["scontrol", "update", f"nodename={self._nodes}", "state=idle"])

    def _node_lines(self) -> list[str]:
        node = f"NodeName={self._nodes} NodeAddr=127.0.0.1 Port={PORT} CPUs=64 RealMemory=512000"
        return [f"{node} Gres=gpu:8 State=DOWN", slurmconf.partition_line(self._nodes)]
