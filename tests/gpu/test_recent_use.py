"""`nvidia-smi -q -d UTILIZATION`, and what nodes show of GPUs that are held: recorded on an H200.

`holds.xml`: a program that has opened CUDA and sleeps. `processes.mps.xml`: the same as a client of
MPS. `use.idle.txt`: nothing runs. `use.burst.txt`: a program that computes for one second of ten.
"""

import re
from pathlib import Path

import pytest

from sentinel.checks.idle.node_use import read_node_use
from sentinel.gpu import smi
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.recent_use import parse_peak_use
from sentinel.nodes.probe import NodeIdentity, NodeProbe, NodeTraffic, StepProcess, StepTraces

HERE = Path(__file__).parent / "h200"
BUS = "00000000:00:06.0"


def node(page: str, use: str) -> NodeProbe:
    """The node of job 5001, whose script and program ran there, as recorded."""
    steps = (
        StepProcess(pid=537, job="5001", step="batch", witness="daemon"),
        StepProcess(pid=787, job="5001", step="batch", witness="cgroup"),
    )
    return NodeProbe(
        identity=NodeIdentity(hostname="vm", kernel="6", boot="b", uptime=1.0, time=1, uid=0),
        gpus=page,
        gpu_use=use,
        steps=StepTraces(processes=steps),
        traffic=NodeTraffic(network=2098, disk=1812362240),
    )


def test_the_peak_of_the_last_seconds_shows_what_one_number_misses() -> None:
    burst, idle = ((HERE / f"use.{name}.txt").read_text() for name in ("burst", "idle"))
    assert parse_peak_use(burst) == {BUS: 99.0}
    assert parse_peak_use(idle) == {BUS: 0.0}
    assert re.search(r"GPU +: 0 %", burst), "at that moment it did nothing"


def test_a_gpu_that_does_not_tell_is_left_out() -> None:
    text = re.sub(r": \d+ %", ": N/A", (HERE / "use.burst.txt").read_text())
    assert parse_peak_use(text) == {}
    with pytest.raises(Unreadable):
        parse_peak_use("No devices were found\n")


def test_an_idle_holder_has_a_process_and_memory_and_no_use() -> None:
    page, use = (HERE / "holds.xml").read_text(), (HERE / "use.idle.txt").read_text()
    (gpu,) = smi.parse(page).gpus
    assert (gpu.utilization, gpu.unknown) == (0, ())
    assert [(p.kind, p.memory) for p in gpu.processes] == [("C", 612 * 2**20)]
    seen = read_node_use("vm", node(page, use), {"5001"}, None)
    assert (seen.unknown, dict(seen.peaks)) == ("", {gpu.uuid: 0.0})
    assert (seen.has_batch_step, seen.has_processes, seen.gpu_processes) == (True, True, 1)


def test_clients_of_mps_are_unknown() -> None:
    """nvidia-smi shows the client as M+C, and the server as a process of its own."""
    processes = (HERE / "processes.mps.xml").read_text().strip()
    page = re.sub(
        r"<processes>.*?</processes>", processes, (HERE / "holds.xml").read_text(), flags=re.S
    )
    (gpu,) = smi.parse(page).gpus
    assert [p.kind for p in gpu.processes] == ["M+C", "C"]
    seen = read_node_use("vm", node(page, (HERE / "use.idle.txt").read_text()), {"5001"}, None)
    assert "shared by MPS" in seen.unknown
