"""A drained node that is clean in every respect, to be spoilt in one."""

from typing import Any

from msgspec.structs import replace

from sentinel.checks.drained.node_evidence import NodeEvidence, ProofRules
from sentinel.core.actions import NodeReading
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Node
from sentinel.nodes.probe import (
    Cursor,
    KernelLine,
    KernelLog,
    NodeIdentity,
    NodeProbe,
    NodeProcess,
    StepProcess,
    StepTraces,
    UninterruptibleThread,
)
from tests.lab.gpus import gpus_of, nvidia_smi

DRAINED_AT = 1_800_000_000
BOOTED = DRAINED_AT - 86_400
NOW = DRAINED_AT + 300
RULES = ProofRules(reasons=("Kill task failed",))
NODE = Node(
    name="n1",
    state="IDLE",
    flags=frozenset({"DRAIN"}),
    reason="Kill task failed",
    reason_user="root",
    reason_time=DRAINED_AT,
    partitions=("prod",),
    gres="gpu:h100:2(S:0-1)",
    boot_time=BOOTED,
)
LEFT_SERVICE = NodeReading(
    node="n1",
    state="IDLE+DRAIN",
    reason=NODE.reason,
    user="root",
    reason_time=DRAINED_AT,
    out=True,
    seen=Instant(wall=DRAINED_AT * SECOND),
    left=Instant(wall=DRAINED_AT * SECOND),
)
"""The ledger saw it leave service."""
GPUS = gpus_of(1, 2)


def process(pid: int, uid: int = 0, user: str = "root", **more: Any) -> NodeProcess:
    told = {"parent": 1, "state": "S", "started": BOOTED, "command": "/usr/bin/python3 train.py"}
    return NodeProcess(pid=pid, uid=uid, user=user, **{**told, **more})


def step(pid: int, job: str = "12", witness: Any = "cgroup") -> StepProcess:
    return StepProcess(pid=pid, job=job, step="", witness=witness)


def blocked(
    pid: int = 7, wait: str = "request_wait_answer", kernel: bool = False
) -> UninterruptibleThread:
    return UninterruptibleThread(pid=pid, thread=pid, name="cat", wait=wait, kernel=kernel)


def kernel(*lines: tuple[float, str]) -> KernelLog:
    """A log that begins with the boot; times are seconds after the drain."""
    said = [KernelLine(at=0.0, level=6, text="Linux version 6.1.0")]
    said += [KernelLine(at=DRAINED_AT - BOOTED + at, level=3, text=text) for at, text in lines]
    cursor = Cursor(boot="b", source="kmsg", position=len(said))
    return KernelLog(source="kmsg", lines=tuple(said), cursor=cursor, lost=None)


CLEAN = NodeProbe(
    identity=NodeIdentity(
        hostname="n1.cluster", kernel="6.1", boot="b", uptime=86_700.0, time=NOW, uid=0
    ),
    processes=(
        process(1, command="/sbin/init"),
        process(2, 65534, "nobody"),
        process(7, command="/usr/bin/cat"),
        process(8, command="ps", started=NOW - 3),
    ),
    blocked=(blocked(kernel=True), blocked(wait="kernel_clone")),
    steps=StepTraces(processes=()),
    gpu_processes=(),
    gpus=nvidia_smi(GPUS),
    kernel=kernel(),
)


def sight(node: Node = NODE, **more: Any) -> NodeEvidence:
    """The clean node; `more` are fields of Sight."""
    return NodeEvidence(
        **{"node": node, "now": NOW, "answer": CLEAN, "readings": (LEFT_SERVICE,), **more}
    )


def spoilt(**parts: Any) -> NodeEvidence:
    """The clean node, but for these parts of its probe."""
    return sight(answer=replace(CLEAN, **parts))
