"""A few nodes with GPUs that a test changes at will, and a ledger over several passes."""

from collections.abc import Mapping, Sequence
from typing import Any

from sentinel.checks.gpu import GpuCheck
from sentinel.core.cluster import Job, JobEnd, Node
from sentinel.core.gpu_ledger import GpuLedger
from sentinel.core.model import Finding, Report
from sentinel.core.node_answers import Answer, Unreachable, Unreached
from sentinel.nodes.probe import (
    Cursor,
    KernelLine,
    KernelLog,
    NodeIdentity,
    NodeProbe,
    ProbeRequest,
    Unread,
)
from sentinel.testing import FixedSlurm, ManualClock, context
from tests.lab.gpus import FakeGpu, gpus_of, nvidia_smi
from tests.store.gpu_memory import MemoryGpus

UPTIME = 100_000.0


def job(
    number: str, nodes: str, user: str = "ann", exclude: str = "", state: str = "RUNNING"
) -> Job:
    count = 1 if "," not in nodes and "[" not in nodes else 2
    return Job(
        number, number, "", "", "train", user, "prod", state, "", nodes, count, "",
        None, None, None, None, exclude=exclude,
    )  # fmt: skip


class NodeWithGpus:
    """What a node would tell now. `log`: lines of its kernel, each with its seconds since boot."""

    def __init__(self, gpus: Sequence[FakeGpu]) -> None:
        self.gpus = list(gpus)
        self.boot, self.log = "boot-1", list[tuple[float, str]]()
        self.smi: str | Unread | None = None
        self.kernel: Unread | None = None
        self.gone = False
        self.version, self.hostname, self.lost = "v13", "", 0

    def say(self, text: str, at: float = UPTIME) -> None:
        self.log.append((at, text))

    def xid(self, code: int, gpu: int = 0, text: str = "pid=1, name=python, something") -> None:
        bus = self.gpus[gpu].address[4:-2].lower()
        self.say(f"NVRM: Xid (PCI:{bus}): {code}, {text}")

    def reboot(self) -> None:
        self.boot, self.log = self.boot + "+", []

    def probe(self, since: Cursor | None) -> NodeProbe | Unreached:
        if self.gone:
            return Unreachable("no route")
        start = since.position if since and since.boot == self.boot else 0
        lines = [KernelLine(at=at, level=3, text=text) for at, text in self.log[start:]]
        cursor = Cursor(boot=self.boot, source="kmsg", position=len(self.log))
        log = KernelLog(source="kmsg", lines=tuple(lines), cursor=cursor, lost=self.lost)
        return NodeProbe(
            identity=NodeIdentity(
                hostname=self.hostname, kernel="6", boot=self.boot, uptime=UPTIME, time=0, uid=0
            ),
            gpus=self.smi or nvidia_smi(self.gpus, self.version),
            kernel=self.kernel or log,
        )


class World:
    """core.remote.Remote and the passes of one check over it."""

    def __init__(self, check: GpuCheck, names: Sequence[str] = ("n1",), **slurm: Any) -> None:
        self.check = check
        self.nodes = {n: NodeWithGpus(gpus_of(i)) for i, n in enumerate(names)}
        self.gpus: GpuLedger | None = MemoryGpus()
        self.clock = ManualClock()
        self.memory: Mapping[str, Any] = {}
        self.listed = {n: Node(name=n, state="IDLE", gres="gpu:h100:8(S:0-1)") for n in names}
        self.logbook: Any = None
        self.jobs, self.ends = list[Job](), dict[str, JobEnd]()

    def run(self, *_: Any, **__: Any) -> Mapping[str, Answer]:
        raise NotImplementedError

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        return {name: self.nodes[name].probe(wants.restrict_to_node(name).since) for name in nodes}

    def look(self, seconds: float = 300) -> Report:
        """One pass, that much later."""
        now = self.clock.advance(seconds)
        slurm = FixedSlurm(nodes=list(self.listed.values()), jobs=self.jobs, ends=self.ends)
        report = self.check.run(
            context(
                slurm, now, memory=self.memory, remote=self, gpus=self.gpus, logbook=self.logbook
            )
        )
        self.memory = report.memory or {}
        return report

    def bad(self, seconds: float = 300) -> dict[str, Finding]:
        """By subject, what a pass finds that is not ok."""
        found = self.look(seconds).findings
        assert len({f.subject for f in found}) == len(found)
        return {f.subject: f for f in found if f.status.value != "ok"}
