"""What one node shows of its GPUs, its jobs and its traffic at one look. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from sentinel.checks.idle.stored_use import StoredUse
from sentinel.core.node_answers import Unreached, describe_unreached
from sentinel.core.text import visible
from sentinel.gpu import smi
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.model import Gpu
from sentinel.gpu.recent_use import parse_peak_use
from sentinel.nodes.probe import NodeProbe, NodeTraffic, Section, StepProcess, StepTraces, Unread

LOOK_PARTS: tuple[Section, ...] = ("gpus", "gpu_use", "steps", "traffic")
"""The parts of a probe that this module reads. `gpu_use` is not asked for where a Prometheus has it."""

_PART_WORDS = {
    "gpus": "nvidia-smi",
    "gpu_use": "nvidia-smi -d UTILIZATION",
    "steps": "the processes of jobs",
    "traffic": "the node's traffic",
}

_BLIND_WITNESSES = ("daemons", "cgroups")
_MPS_SERVER = "nvidia-cuda-mps-server"


class NodeUse(Struct, frozen=True, kw_only=True):
    """The use of one node. `peaks`: the highest utilization of each GPU in its last seconds, by UUID.

    `unknown`: why nothing can be said of the node; empty if something can. `unseen`: it gave no
    answer, or not all of it.
    """

    node: str
    peaks: Mapping[str, float] = {}
    boot: str = ""  # Id of the boot, from which on the traffic counts.
    moved_bytes: int | None = None  # Over the network and to and from disks since the boot.
    has_batch_step: bool = False  # The job's script runs here.
    has_processes: bool = True  # The job itself has a process here, or that is not known.
    gpu_processes: int = 0  # Processes that have memory on a GPU.
    unknown: str = ""
    unseen: bool = False


def read_node_use(
    node: str, answer: NodeProbe | Unreached, names: Collection[str], stored: StoredUse | None
) -> NodeUse:
    """How busy a node is that one job has for itself. `names`: the ids of the job, and its SLUIDs.
    `stored`: what a Prometheus has, if one was asked in place of the node."""
    if not isinstance(answer, NodeProbe):
        return NodeUse(node=node, unknown=describe_unreached(answer), unseen=True)
    page, use, steps, traffic = answer.gpus, answer.gpu_use, answer.steps, answer.traffic
    use = use if stored is None else ""
    if not (
        isinstance(page, str)
        and isinstance(use, str)
        and isinstance(steps, StepTraces)
        and isinstance(traffic, NodeTraffic)
    ):
        return NodeUse(node=node, unknown=_describe_unread(answer), unseen=True)
    try:
        gpus = smi.parse(page).gpus
        peaks = parse_peak_use(use) if stored is None else _find_peaks(gpus, stored)
    except Unreadable as error:
        return NodeUse(node=node, unknown=str(error), unseen=True)
    if why := _refuse_steps(steps, names):
        return NodeUse(node=node, unknown=why)
    if why := next(_refuse_gpus(gpus, peaks, stored), ""):
        return NodeUse(node=node, unknown=why)
    mine = [one for one in steps.processes if one.job in names]
    return NodeUse(
        node=node,
        peaks={gpu.uuid: max(peaks[gpu.bus], gpu.utilization or 0.0) for gpu in gpus},
        boot="" if isinstance(answer.identity, Unread) else answer.identity.boot,
        moved_bytes=traffic.network + traffic.disk,
        has_batch_step=any(one.witness == "daemon" and one.step == "batch" for one in mine),
        has_processes=_has_processes(mine),
        gpu_processes=sum(len(gpu.processes) for gpu in gpus),
    )


def _find_peaks(gpus: Collection[Gpu], stored: StoredUse) -> dict[str, float]:
    return {gpu.bus: stored.peaks[gpu.uuid] for gpu in gpus if gpu.uuid in stored.peaks}


def _describe_unread(answer: NodeProbe) -> str:
    for name in LOOK_PARTS:
        part = getattr(answer, name)
        if isinstance(part, Unread):
            return visible(f"{_PART_WORDS[name]} not read ({part.kind_words}): {part.why}")
    return "its answer lacks a part"


def _has_processes(mine: Collection[StepProcess]) -> bool:
    """Whether the job itself has started a process that is there, or that is not known. Slurm's
    `extern` step holds one of its own. Where Slurm uses no cgroups, the slurmstepd of a step tells
    that the step is there. What a process inherited proves nothing."""
    steps = [one.step for one in mine if one.witness == "cgroup"]
    daemons = [one.step for one in mine if one.witness == "daemon"]
    return any(step != "extern" for step in steps or daemons)


def _refuse_steps(steps: StepTraces, names: Collection[str]) -> str:
    """Why the node's load cannot be taken for that of the one job; empty if it can."""
    blind = [word for word in steps.blind if word.startswith(_BLIND_WITNESSES)]
    if blind:
        return visible(f"processes of jobs not all seen: {blind[0]}")
    # A job's environment may be inherited by processes that outlive it: no sign of another job.
    others = {one.job for one in steps.processes if one.witness != "environment"} - set(names)
    return visible(f"job {min(others)} is there too") if others else ""


def _refuse_gpus(
    gpus: Collection[Gpu], peaks: Mapping[str, float], stored: StoredUse | None
) -> Iterator[str]:
    """Why the use of these GPUs is not known."""
    if not gpus:
        yield "nvidia-smi shows no GPU"
    for gpu in gpus:
        if gpu.mig or gpu.part:
            yield "its GPUs are divided (MIG), and no part tells its use"
        elif any(_is_of_mps(one.kind, one.name) for one in gpu.processes):
            yield "its GPUs are shared by MPS, which hides whose use it is"
        elif not gpu.uuid or not gpu.answers:
            yield "a GPU does not answer"
        elif gpu.bus not in peaks:
            yield (
                stored.explain_missing(gpu.uuid) if stored else "a GPU does not tell its use (N/A)"
            )


def _is_of_mps(kind: str, name: str) -> bool:
    """Whether a process on a GPU is a client (type M+C) or the server of MPS."""
    return "M" in kind.split("+") or name.rpartition("/")[2] == _MPS_SERVER
