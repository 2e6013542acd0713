"""What sentinel says of a form of a GPU's tools or of its driver's lines, in one word that a batch can hold."""

from __future__ import annotations

from sentinel.checks.gpu import GpuCheck
from sentinel.core.cluster import Node
from sentinel.gpu import xid
from sentinel.gpu.advice import worst
from sentinel.gpu.dcgm import Ran, judge
from sentinel.nodes.probe import Unread
from tests.checks.gpu.world import World
from tests.lab.gpus import Failure, dcgmi_json, gpus_of, nvidia_smi

MILD = "nothing is wrong with the device"


def page(*changes: tuple[str, str], version: str = "v13", count: int = 1) -> str:
    """A page of eight GPUs with the first (or all: -1) of each piece of text replaced."""
    text = nvidia_smi(gpus_of(0), version)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, count)
    return text


def statuses(form: str, looks: int = 2) -> dict[int | str, str]:
    """By the number of the GPU, or by "node", what is bad at the last of so many looks."""
    here = World(GpuCheck(nodes="n1"), ("n1",))
    here.nodes["n1"].smi = form if "<" in form else Unread(kind="failed", why=form)
    for _ in range(looks - 1):
        here.look()
    numbers = {gpu.uuid: gpu.index for gpu in gpus_of(0)}
    return {numbers.get(s, "node"): f.status.value for s, f in here.bad().items()}


def of_four(form: str) -> dict[int | str, str]:
    """The same of a node for which Slurm has four GPUs."""
    here = World(GpuCheck(nodes="n1"), ("n1",))
    here.listed["n1"] = Node(name="n1", state="IDLE", gres="gpu:h100:4")
    here.nodes["n1"].smi = form
    here.look()
    return {s: f.status.value for s, f in here.bad().items()}


def advice(*records: str) -> str:
    """What the worst of these lines of the kernel asks of the device, or MILD."""
    found = worst([event.advice for event in xid.read(records, [3] * len(records)).events])
    return found.value if found.hardware else MILD


def diagnosis(error_id: int, text: str, severity: int, category: int, test: str = "memory") -> str:
    """The outcome of a run of level 3 in which GPU 3 failed that test with that remark."""
    failure = Failure(
        gpu=3, test=test, text=text, error_id=error_id, severity=severity, category=category
    )
    return judge(Ran(out=dcgmi_json("4", [failure], level=3), code=226, level=3, gpus=8)).outcome
