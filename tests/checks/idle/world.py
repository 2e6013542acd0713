"""Nodes with GPUs that jobs hold, and passes of the check over hours."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.checks.idle import IdleCheck
from sentinel.core.cluster import Job
from sentinel.core.model import Report
from sentinel.core.node_answers import Answer, Unreachable, Unreached
from sentinel.core.values import Duration
from sentinel.nodes.probe import (
    NodeIdentity,
    NodeProbe,
    NodeTraffic,
    ProbeRequest,
    StepProcess,
    StepTraces,
    Unread,
)
from sentinel.testing import START, FixedSlurm, ManualClock, context, job
from tests.lab.gpus import FakeGpu, gpus_of, nvidia_smi

QUIET_BYTES_PER_S = 100_000
DOWNLOAD_BYTES_PER_S = 50_000_000
LOOK_S = 300.0


def use_text(peaks: Mapping[str, float | str]) -> str:
    """`nvidia-smi -q -d UTILIZATION`, as driver 580 prints it, by address."""
    head = "==============NVSMI LOG==============\n\nAttached GPUs    : 1\n"
    return head + "".join(
        f"GPU {address}\n    Utilization\n        GPU     : {_percent(peak and 0)}\n"
        f"    GPU Utilization Samples\n        Duration : 14.00 sec\n        Max     : {_percent(peak)}\n"
        if not isinstance(peak, str)
        else f"GPU {address}\n    Utilization\n        GPU     : {peak}\n"
        for address, peak in peaks.items()
    )


def _percent(number: float) -> str:
    return f"{number:g} %"


class IdleNode:
    """What a node would tell now. `peaks`: the use of its GPUs in percent, `N/A` where not told."""

    def __init__(self, number: int, count: int = 8) -> None:
        self.name, self.gpus = f"node-{number}", list(gpus_of(number, count))
        self.peaks: Sequence[float | str] = [0.0] * count
        self.moved, self.rate, self.boot = 10**12, QUIET_BYTES_PER_S, "boot-1"
        self.steps: list[StepProcess] = []
        self.blind: tuple[str, ...] = ()
        self.gone, self.page = False, ""
        self.unread: dict[str, Unread] = {}

    def runs(self, number: str, pid: int, step: str = "0") -> None:
        """A process of a job's step, as its cgroup says."""
        self.steps.append(StepProcess(pid=pid, job=number, step=step, witness="cgroup"))

    def has_daemon(self, number: str, step: str = "batch") -> None:
        self.steps.append(StepProcess(pid=2, job=number, step=step, witness="daemon"))

    def holds(self, *pids: int) -> None:
        """Each GPU has memory of a process of these."""
        held = zip(self.gpus, pids, strict=False)
        self.gpus[: len(pids)] = [_with_process(gpu, pid) for gpu, pid in held]

    def probe(self) -> NodeProbe | Unreached:
        if self.gone:
            return Unreachable("no route")
        whole = NodeProbe(
            identity=NodeIdentity(
                hostname=self.name,
                kernel="6",
                boot=self.boot,
                uptime=1e5,
                time=1_800_000_000,
                uid=0,
            ),
            gpus=self.page or nvidia_smi(self.gpus),
            gpu_use=use_text(
                {gpu.address: peak for gpu, peak in zip(self.gpus, self.peaks, strict=True)}
            ),
            steps=StepTraces(processes=tuple(self.steps), blind=self.blind),
            traffic=NodeTraffic(network=self.moved, disk=0),
        )
        return replace(whole, **self.unread)


def _with_process(gpu: FakeGpu, pid: int) -> FakeGpu:
    from dataclasses import replace as with_fields

    return with_fields(gpu, processes=((pid, "python"),))


class World:
    """A cluster with one job that holds all GPUs of its nodes, and passes of one check."""

    def __init__(self, nodes: int = 1, batch: bool = True, **fields: Any) -> None:
        self.nodes = {f"node-{n}": IdleNode(n) for n in range(nodes)}
        self.check = IdleCheck(**{"users": ["*"], "trial": Duration(0), **fields})
        self.jobs = [self.job("4711", nodes=f"node-[0-{nodes - 1}]" if nodes > 1 else "node-0")]
        self.held = {"4711": 8 * nodes}
        self.clock, self.asked = ManualClock(), list[tuple[str, ...]]()
        self.memory: Mapping[str, Any] = {}
        for node in self.nodes.values():
            node.runs("4711", 100)
            node.runs("4711", 3, step="extern")
        if batch:
            next(iter(self.nodes.values())).has_daemon("4711")

    def job(self, number: str, **more: Any) -> Job:
        return job(
            number,
            **{"name": "llm", "node_count": 1, "started": START.wall // 10**6 - 7200, **more},
        )

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        raise NotImplementedError

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        self.asked.append(tuple(nodes))
        return {name: self.nodes[name].probe() for name in nodes}

    def look(self, *, one_shot: bool = False) -> Report:
        """One pass. The memory goes through the state, as with a service."""
        slurm = FixedSlurm(jobs=self.jobs, gpus=self.held, sluids={})
        ctx = context(
            slurm, self.clock.now(), remote=self, memory=self.memory, limit=60.0, one_shot=one_shot
        )
        report = self.check.run(ctx)
        if report.memory is not None:
            self.memory = msgspec.json.decode(msgspec.json.encode(report.memory))
        return report

    def watch(self, seconds: float, every: float = LOOK_S) -> list[Report]:
        """Passes for so long; the first at once, and time has gone on after the last."""
        reports = []
        for _ in range(int(seconds // every)):
            reports.append(self.look())
            for node in self.nodes.values():
                node.moved += int(node.rate * every)
            self.clock.advance(every)
        return reports

    def says(self, seconds: float, every: float = LOOK_S) -> list[str]:
        """The different statuses and summaries of the first finding in passes for so long."""
        found = [r.findings[0] for r in self.watch(seconds, every)]
        return list(dict.fromkeys(f"{f.status.value}: {f.summary}" for f in found))
