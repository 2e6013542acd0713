"""GPUs that hold memory for nobody, and DCGM's daemon: told at two looks, and only where nobody is at work."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.host.leftovers import MAX_ENGINE_BYTES, MAX_LOG_BYTES, MAX_LOG_GROWTH
from sentinel.core.cluster import Node
from sentinel.core.host_parts import HostEngine
from sentinel.nodes.probe import GpuProcess
from sentinel.testing import FixedSlurm, job
from tests.checks.host.test_host import DCGM_LOG, ENGINE, IDLE, Night, Way, of, told

HELD = 12_799 * 2**20
"""Without any process: https://github.com/wencolani/CrossE/issues/2."""
PYTHON = GpuProcess(gpu="GPU-1", pid=7, memory=5, name="python")


def in_state(state: str, *flags: str) -> FixedSlurm:
    return FixedSlurm(nodes=[Node(name="n1", state=state, flags=frozenset(flags))], jobs=[])


PAUSED = FixedSlurm(
    nodes=[Node(name="n1", state="IDLE")], jobs=[job("12", "SUSPENDED", nodes="n[1-2]")]
)


@pytest.mark.parametrize(
    ("used", "processes", "slurm", "right"),
    [
        (HELD, (), IDLE, {"n1/gpus": "warning"}),
        (HELD, (), in_state("IDLE", "DRAIN"), {"n1/gpus": "warning"}),
        (HELD, (PYTHON,), IDLE, {}),  # of another GPU of the node, or of this one
        (HELD, (), in_state("ALLOCATED"), {}),  # in a container the driver may show none
        (HELD, (), in_state("IDLE", "COMPLETING"), {}),
        (
            HELD,
            (),
            PAUSED,
            {},
        ),  # Slurm calls it idle: _suspend_job_nodes() in src/slurmctld/job_mgr.c
        (HELD, (), FixedSlurm(nodes=[], jobs=[]), {}),  # Slurm does not know the node
        (HELD, (), FixedSlurm(), {"n1/gpus": "unknown"}),
        # A suspended job may be in a queue that cannot be read.
        (HELD, (), FixedSlurm(nodes=[Node(name="n1", state="IDLE")]), {"n1/gpus": "unknown"}),
        (450 * 2**20, (), IDLE, {}),  # what older drivers keep for themselves
        (None, (), IDLE, {}),  # the driver does not tell
    ],
)
def test_memory_that_a_gpu_holds_for_nobody(
    used: int | None, processes: Any, slurm: FixedSlurm, right: dict[str, str]
) -> None:
    """At the second look, with the GPU and its bytes."""
    night, way = Night(), Way(gpu_memory={"GPU-1": used}, gpu_processes=processes)
    assert told(night.look(way, slurm=slurm)) == {}
    report = night.look(way, slurm=slurm)
    assert told(report) == right
    if right:
        assert "GPU-1 13.4 GB" in of(report, "n1/gpus").summary


def test_memory_that_is_given_back_ends_the_alert() -> None:
    """And the next job counts from the first look again."""
    night, held = Night(), Way(gpu_memory={"GPU-1": HELD})
    for _ in range(2):
        night.look(held)
    assert told(night.look(Way())) == {"n1/gpus": "ok"}
    assert told(night.look(held)) == {}


def test_slurm_is_asked_only_where_memory_is_held() -> None:
    """A host without Slurm and with healthy GPUs is ok."""
    assert told(Night().look(Way(), slurm=FixedSlurm())) == {}


BIG = replace(ENGINE, memory=MAX_ENGINE_BYTES + 1)
LONG = replace(ENGINE, logs={DCGM_LOG: 15 * 10**9})
"""https://github.com/NVIDIA/gpu-monitoring-tools/issues/146"""


@pytest.mark.parametrize(
    ("engine", "first", "second"),
    [
        (HostEngine(), {}, {}),  # it does not run
        (ENGINE, {}, {}),
        (replace(ENGINE, answers=None), {}, {}),
        (replace(ENGINE, answers=False), {}, {"n1/nv-hostengine": "warning"}),
        (BIG, {"n1/nv-hostengine": "warning"}, {"n1/nv-hostengine": "warning"}),
        (LONG, {"n1/dcgm-log": "warning"}, {"n1/dcgm-log": "warning"}),
        (replace(ENGINE, logs={DCGM_LOG: MAX_LOG_BYTES}), {}, {}),
    ],
)
def test_the_daemon_of_dcgm(
    engine: HostEngine, first: dict[str, str], second: dict[str, str]
) -> None:
    """One slow answer is no hang."""
    night = Night()
    assert told(night.look(Way(dcgm=engine))) == first
    assert told(night.look(Way(dcgm=engine))) == second


def test_a_log_that_grows_is_told_and_one_that_was_rotated_is_not() -> None:
    """By its growth within a day; https://github.com/NVIDIA/DCGM/issues/279."""
    night = Night()

    def look(size: int, after: float = 300) -> dict[str, str]:
        return told(night.look(Way(dcgm=replace(ENGINE, logs={DCGM_LOG: size})), after=after))

    assert look(10**6) == {}
    assert look(10**6 + MAX_LOG_GROWTH) == {}
    assert look(10**6 + MAX_LOG_GROWTH + 1) == {"n1/dcgm-log": "warning"}
    assert look(4096) == {"n1/dcgm-log": "ok"}
    assert look(8192) == {}
    slow = [look(8192 + day * MAX_LOG_GROWTH // 2, after=86400) for day in range(1, 4)]
    assert slow == [{}, {}, {}]
