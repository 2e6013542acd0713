"""The second witnesses of a hang: the GPUs, the processor time of the tasks, and a heartbeat. Pure.

A collective operation that waits keeps its GPUs busy at 100% by spinning, at little power. A
checkpoint looks the same, so power counts only outside of phases. A spinning process also uses
processor time. So tasks that stand still confirm a hang, but tasks that use processor time do not
disprove it.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from sentinel.core.gpu_power import (
    BUSY_PERCENT,
    COMPUTING_POWER_PERCENT,
    IDLE_PERCENT,
    WAITING_POWER_PERCENT,
    GpuLoad,
)
from sentinel.core.node_answers import Answer, Answered, Partial, TimedOut, Unreachable
from sentinel.core.text import visible

STILL_CORES = 0.02  # cores per process below which it stands still
MAX_NAMED_NODES = 4  # nodes that are named; if there are more, only their number is given


class NodeTasks(Struct, frozen=True):
    """The job's processes on a node: how many, how many in state D, and the cores they use. `sure`
    means that all were seen."""

    count: int  # Number of processes.
    blocked: int  # How many are in state D.
    cores: float  # Processors that they use.
    sure: bool


class WitnessAnswer(Struct, frozen=True):
    """The answer of a node. What could not be determined is empty."""

    gpus: tuple[GpuLoad, ...] = ()  # Load of each GPU of the node.
    tasks: NodeTasks | None = None  # Processes of the job there.
    stepped: bool = False  # Whether one of them belongs to a step that srun began.


class Testimony(Struct, frozen=True, kw_only=True):
    """The result of all witnesses. If they neither confirm nor contradict, they do not change the
    verdict.

    culprit: The rank that the others wait for. It is named first.
    nodes: All nodes on which something is wrong.
    """

    words: str = ""  # What they say, for people.
    culprit: str = ""
    nodes: tuple[str, ...] = ()
    confirms: bool = False  # Whether they say that the training hangs.
    contradicts: bool = False  # Whether they say that the training goes on.


def parse_witness_answer(out: bytes, user: str) -> WitnessAnswer:
    """Parse a node's answer. Malformed lines are ignored."""
    gpus: list[GpuLoad] = []
    tasks, unsure, stepped = None, False, False
    for line in out.decode("ascii", "replace").splitlines():
        word, _, rest = line.partition(" ")
        if word == "gpu":
            gpus += _parse_gpu(rest.split(","))
        elif word == "tasks":
            tasks = _parse_tasks(rest.split(), user)
        elif word in ("unmapped", "cut"):
            unsure = True
        elif word == "stepped":
            stepped = True
    # If it is not known whose processes these are, or the search was not complete, nobody can say
    # that none is left.
    if tasks and unsure:
        tasks = structs.replace(tasks, sure=False)
    return WitnessAnswer(tuple(gpus), tasks, stepped)


def judge_witnesses(answers: Mapping[str, Answer], user: str, phase: bool) -> Testimony:
    """The result of all nodes together. `phase` says whether a checkpoint or another phase runs. In
    a phase GPUs may wait."""
    nodes = {
        name: parse_witness_answer(answer.out, user)
        for name, answer in answers.items()
        if isinstance(answer, Answered | Partial)
    }
    gpus = [gpu for node in nodes.values() for gpu in node.gpus]
    said = [*_judge_gpu_power(gpus, phase), *_judge_cpu_time(nodes)]
    gone, blocked, silent = (
        _list_empty_nodes(nodes),
        [name for name, node in nodes.items() if node.tasks and node.tasks.blocked],
        _list_silent_nodes(answers),
    )
    odd = [
        *([f"no process of the job is left on {_join_node_names(gone)}"] if gone else []),
        *([f"processes in state D on {_join_node_names(blocked)}"] if blocked else []),
        *([f"{_join_node_names(silent)} does not answer"] if silent else []),
    ]
    return Testimony(
        words="; ".join([*(words for words, _ in said), *odd]),
        nodes=tuple(dict.fromkeys([*gone, *blocked, *silent])),
        confirms=any(verdict is True for _, verdict in said) or bool(gone),
        contradicts=any(verdict is False for _, verdict in said) and not odd,
    )


def merge_testimonies(first: Testimony, second: Testimony) -> Testimony:
    """Merge two results. If they contradict each other, neither counts."""
    odds = (first.confirms or second.confirms) and (first.contradicts or second.contradicts)
    return Testimony(
        words="; ".join(words for words in (first.words, second.words) if words),
        culprit=first.culprit or second.culprit,
        nodes=tuple(dict.fromkeys([*first.nodes, *second.nodes])),
        confirms=(first.confirms or second.confirms) and not odds,
        contradicts=(first.contradicts or second.contradicts) and not odds,
    )


def _parse_gpu(fields: list[str]) -> list[GpuLoad]:
    numbers = [_parse_float(field) for field in fields]
    if len(numbers) != 3 or numbers[0] is None:
        return []
    return [GpuLoad(numbers[0], numbers[1], numbers[2])]


def _parse_tasks(words: list[str], user: str) -> NodeTasks | None:
    if len(words) != 10:
        return None
    uid, name, *rest = words
    numbers = [_parse_float(word) for word in rest]
    if any(number is None for number in numbers):
        return None
    count, blocked, ticks, _, still, later, pause, clock = (number or 0.0 for number in numbers)
    cores = max(0.0, later - ticks) / clock / pause if clock and pause else 0.0
    return NodeTasks(int(count), int(min(blocked, still)), cores, uid == "0" or name == user)


def _parse_float(text: str) -> float | None:
    try:
        return float(text.strip())
    except ValueError:
        return None


def _judge_gpu_power(gpus: list[GpuLoad], phase: bool) -> list[tuple[str, bool | None]]:
    """A text, and whether the load of the GPUs confirms a hang (True), contradicts it (False), or
    neither."""
    if not gpus:
        return []
    busy = sum(gpu.busy for gpu in gpus) / len(gpus)
    known = [gpu for gpu in gpus if gpu.power_percent is not None]
    if busy < BUSY_PERCENT or not known:
        return [(f"GPUs {busy:.0f}% busy", None if phase or not busy < IDLE_PERCENT else True)]
    watts = sum(gpu.watts or 0 for gpu in known) / len(known)
    limit = sum(gpu.limit or 0 for gpu in known) / len(known)
    shown = f"GPUs {busy:.0f}% busy at {watts:.0f} of {limit:.0f} W"
    if all((gpu.power_percent or 0) >= COMPUTING_POWER_PERCENT for gpu in known):
        return [(f"{shown}: they compute", None if phase else False)]
    waiting = sum((gpu.power_percent or 0) < WAITING_POWER_PERCENT for gpu in known) * 2 > len(
        known
    )
    if waiting and not phase:
        return [(f"{shown}: they wait, and compute nothing", True)]
    return [(shown, None)]


def _judge_cpu_time(nodes: Mapping[str, WitnessAnswer]) -> list[tuple[str, bool | None]]:
    tasks = [node.tasks for node in nodes.values() if node.tasks and node.tasks.count]
    if not tasks:
        return []
    if all(one.cores <= STILL_CORES * one.count for one in tasks):
        return [("the processor time of its tasks stands still", True)]
    return [(f"its tasks use {sum(one.cores for one in tasks):.1f} cores", None)]


def _list_empty_nodes(nodes: Mapping[str, WitnessAnswer]) -> list[str]:
    """Nodes that certainly have no task of the job, although others have one of a step. If only the
    batch script runs, it may have begun nothing elsewhere, or by ssh."""
    empty = [
        n for n, node in nodes.items() if node.tasks and node.tasks.sure and not node.tasks.count
    ]
    others = any(node.tasks and node.tasks.count and node.stepped for node in nodes.values())
    return empty if others else []


def _list_silent_nodes(answers: Mapping[str, Answer]) -> list[str]:
    silent = [name for name, a in answers.items() if isinstance(a, TimedOut | Unreachable)]
    reached = any(isinstance(answer, Answered) for answer in answers.values())
    return silent if reached else []


def _join_node_names(names: Iterable[str]) -> str:
    several = [visible(name) for name in names]
    more = (
        f" and {len(several) - MAX_NAMED_NODES} more nodes"
        if len(several) > MAX_NAMED_NODES
        else ""
    )
    return ", ".join(several[:MAX_NAMED_NODES]) + more
