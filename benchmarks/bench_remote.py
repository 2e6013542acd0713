"""1,000 nodes of which 5% are dead: time against the slowest node, and memory.

The nodes are one small program in the place of ssh; fan-out, processes, pipes and parsing are
real. ClusterShell's own Task asks the same nodes the same question, for comparison.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from subprocess import PIPE, run
from typing import Any

from benchmarks.measure import row

NODES, FANOUT, PATIENCE = 1000, 64, 3.0
PROCESSES = 400
ROUNDS = 3


def main() -> None:
    """About a minute."""
    own = _best("sentinel")
    peer = _best("clustershell")
    probe = _best("probe")
    slowest = f"of the slowest node's {PATIENCE:g} s, {NODES} nodes, fan-out {FANOUT}"
    row(
        "run, 5% dead: time",
        f"{own['seconds']:.2f} s",
        f"{own['seconds'] / PATIENCE:.2f} {slowest}",
    )
    row(
        "run, 5% dead: ClusterShell's Task",
        f"{peer['seconds']:.2f} s",
        f"sentinel takes {own['seconds'] / peer['seconds']:.2f} of it",
    )
    row(
        f"probe, {PROCESSES} processes a node: time",
        f"{probe['seconds']:.2f} s",
        f"{probe['seconds'] / PATIENCE:.2f} {slowest}",
    )
    row("run: memory at its peak", _megabytes(own), f"ClusterShell's Task: {_megabytes(peer)}")
    row(
        "probe: memory at its peak",
        _megabytes(probe),
        f"{(probe['peak'] - own['peak']) / NODES / 1000:.0f} kB a node held",
    )


def _best(what: str) -> dict[str, Any]:
    """The quickest of several runs, each a process of its own."""
    argv = [sys.executable, "-m", "benchmarks.bench_remote", what]
    runs = [json.loads(run(argv, stdout=PIPE, check=True).stdout) for _ in range(ROUNDS)]
    return min(runs, key=lambda told: float(told["seconds"]))


def _one(what: str) -> None:
    from tests.nodes.cluster import Cluster

    with tempfile.TemporaryDirectory() as folder:
        canned = Path(folder, "canned")
        canned.write_text(_canned())
        cluster = Cluster(Path(folder), NODES, canned=canned if what == "probe" else None)
        began = time.monotonic()
        good = {"sentinel": _sentinel, "clustershell": _peer, "probe": _probe}[what](cluster)
        seconds = time.monotonic() - began
    assert good >= NODES * 95 // 100, f"{what}: only {good} nodes answered"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak": peak}))


def _sentinel(cluster: Any) -> int:
    from sentinel.core.node_answers import Answered

    told = cluster.reach(fanout=FANOUT, timeout=PATIENCE).run(cluster.names, ["true"], limit=120)
    return sum(isinstance(answer, Answered) for answer in told.values())


def _probe(cluster: Any) -> int:
    from sentinel.nodes.probe import ALL_PARTS_REQUEST, NodeProbe

    told = cluster.reach(fanout=FANOUT, timeout=PATIENCE).probe(
        cluster.names, ALL_PARTS_REQUEST, limit=120
    )
    return sum(isinstance(answer, NodeProbe) for answer in told.values())


def _peer(cluster: Any) -> int:
    import os

    from ClusterShell.Task import task_self

    os.environ.update(cluster.environ)
    task = task_self()
    task.set_info("fanout", FANOUT)
    task.run("true", nodes=",".join(cluster.names), timeout=PATIENCE, tree=False, stdin=False)
    return sum(len(list(nodes)) for code, nodes in task.iter_retcodes() if code == 0)


def _canned() -> str:
    """A probe as a busy node answers it: the fixture with more processes and their commands."""
    text = (
        Path("tests/nodes/fixtures/probe.txt").read_text().replace("0123456789abcdef" * 2, "MARK")
    )
    facts = [
        f" {i:5} 1 1000 S Sat Nov 21 01:02:04 2026 python" for i in range(1000, 1000 + PROCESSES)
    ]
    names = [
        f" {i:5} alice python train.py --rank {i} " + "x" * 200
        for i in range(1000, 1000 + PROCESSES)
    ]
    for section, count, more in (("processes", 5, facts), ("commands", 4, names)):
        old = f"MARK {section} ok {count} \n"
        new = f"MARK {section} ok {count + PROCESSES} \n" + "".join(f"{line}\n" for line in more)
        text = text.replace(old, new)
    return text


def _megabytes(told: dict[str, Any]) -> str:
    return f"{told['peak'] / 1e6:.1f} MB"


if __name__ == "__main__":
    _one(sys.argv[1]) if sys.argv[1:] else main()
