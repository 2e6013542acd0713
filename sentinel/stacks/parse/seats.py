"""Finds the processes of a job that train, and the rank of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.errors import Invalid
from sentinel.core.hostlist import expand_hostlist
from sentinel.stacks.parse.model import JobProcess, StacksDump

MOST = 200_000
"""How many ranks a job may have. The number comes from an environment, which the user can set."""

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_BATCH = frozenset({"batch", "extern", "interactive"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "tcsh", "csh", "env", "time", "numactl"})
_REPEATED = re.compile(r"([0-9]{1,6})(?:\(x([0-9]{1,6})\))?")


class RankSeat(Struct, frozen=True, kw_only=True):
    """A rank and its process. `process` is None if there is none any more, or if its node was not
    reached."""

    rank: int | None
    node: str
    step: str = ""
    process: JobProcess | None = None


def find_seats(dump: StacksDump) -> tuple[RankSeat, ...]:
    """Every rank of the job, whether it was seen or not, by step and rank."""
    mains = [p for node in dump.nodes for p in _main_processes(node.processes)]
    by_step: dict[str, list[JobProcess]] = {}
    for process in _training_processes(mains):
        by_step.setdefault(_step_id(process), []).append(process)
    missed = [m.node for m in dump.missed]
    found = [seat for step, some in by_step.items() for seat in _step_seats(step, some, missed)]
    # A step may use nodes that were not asked: those of other parts of a heterogeneous job.
    asked = {"", *missed, *(n.node for n in dump.nodes)}
    found = [seat for seat in found if seat.process or seat.node in asked]
    return tuple(sorted(found, key=lambda s: (s.step, s.rank is None, s.rank or 0, s.node)))


def _main_processes(processes: Sequence[JobProcess]) -> list[JobProcess]:
    by_pid = {p.pid: p for p in processes}
    below = _children_by_pid(processes)
    trains = [p for p in processes if p.python and not _is_launcher(p, below[p.pid])]
    chosen = {p.pid for p in trains}
    mains = [
        p
        for p in trains
        if not any(_same_rank(p, a) for a in _ancestors(p, by_pid) if a.pid in chosen)
    ]
    return [*mains, *_non_python_tasks(processes, below)]


def _is_launcher(process: JobProcess, below: Sequence[JobProcess]) -> bool:
    """Whether the process has no RANK itself, and a Python process below it has one."""
    return "RANK" not in process.env and any(p.python and "RANK" in p.env for p in below)


def _same_rank(process: JobProcess, other: JobProcess) -> bool:
    return _rank_label(process) == _rank_label(other)


def _rank_label(process: JobProcess) -> tuple[str, ...]:
    return tuple(process.env.get(key, "") for key in (*_RANKS, "SLURM_PROCID"))


def _non_python_tasks(
    processes: Sequence[JobProcess], below: Mapping[int, list[JobProcess]]
) -> list[JobProcess]:
    """Tasks that are no Python programs: the programs that their shells run, otherwise the leaders
    of the tasks."""
    leaders = [p for p in processes if p.task is not None and not p.python]
    bare = [p for p in leaders if not any(q.python for q in below[p.pid])]
    return [_inherit_task(p, below) for p in bare]


def _inherit_task(process: JobProcess, below: Mapping[int, list[JobProcess]]) -> JobProcess:
    children = [p for p in below[process.pid] if p.parent == process.pid]
    if not children or not _SHELLS & {process.name, process.exe.rpartition("/")[2]}:
        return process
    child = _inherit_task(children[-1], below)
    env = {**process.env, **child.env}
    return replace(child, task=process.task, step=process.step, env=env)


def _training_processes(mains: Sequence[JobProcess]) -> list[JobProcess]:
    """The processes that may train. If any step runs Python, steps without it (monitors, shells)
    say nothing about a hang. If other steps do, the batch script only started them."""
    python = {_step_id(p) for p in mains if p.python}
    steps = python or {_step_id(p) for p in mains}
    steps = {s for s in steps if s not in _BATCH} or steps
    return [p for p in mains if _step_id(p) in steps]


def _step_id(process: JobProcess) -> str:
    return process.step or process.env.get("SLURM_STEP_ID", "")


def _children_by_pid(processes: Sequence[JobProcess]) -> dict[int, list[JobProcess]]:
    by_pid = {p.pid: p for p in processes}
    below: dict[int, list[JobProcess]] = {p.pid: [] for p in processes}
    for process in processes:
        for above in _ancestors(process, by_pid):
            below[above.pid].append(process)
    return below


def _ancestors(process: JobProcess, by_pid: Mapping[int, JobProcess]) -> Iterable[JobProcess]:
    seen = {process.pid}
    while (parent := by_pid.get(process.parent)) and parent.pid not in seen:
        seen.add(parent.pid)
        yield parent
        process = parent


def _step_seats(
    step: str, processes: Sequence[JobProcess], missed: Sequence[str]
) -> list[RankSeat]:
    told = [_environment_rank(p) for p in processes]
    given = [_task_number(p) for p in processes]
    known = [n for n in told if n is not None]
    unsaid = [p for n, p in zip(told, processes, strict=True) if n is None and p.env]
    own = bool(known) and not unsaid and len(set(known)) == len(known)
    numbers = told if own else given
    seats = [
        RankSeat(rank=n, node=p.node, step=step, process=p)
        for n, p in zip(numbers, processes, strict=True)
    ]
    homes = _torch_homes(processes, missed) if own else _task_homes(processes)
    present = {s.rank for s in seats}
    lost = missed[0] if len(missed) == 1 else ""
    absent = [
        RankSeat(rank=r, node=homes[r] or lost, step=step)
        for r in sorted(homes)
        if r not in present
    ]
    return [*seats, *absent]


def _environment_rank(process: JobProcess) -> int | None:
    """The rank in RANK or a similar variable. It counts only if it differs between processes (see
    `_step_seats`)."""
    return next((n for key in _RANKS if (n := _environment_int(process, key)) is not None), None)


def _task_number(process: JobProcess) -> int | None:
    number = _environment_int(process, "SLURM_PROCID") if _step_id(process) not in _BATCH else None
    return process.task if number is None else number


def _environment_int(process: JobProcess, key: str) -> int | None:
    text = process.env.get(key, "")
    return int(text) if text.isdigit() and len(text) < 10 else None


def _torch_homes(processes: Sequence[JobProcess], missed: Sequence[str]) -> dict[int, str]:
    """The node of each rank of torchrun. The ranks of a group are together on one node
    (GROUP_RANK)."""
    size = max((n for p in processes if (n := _environment_int(p, "WORLD_SIZE"))), default=0)
    if size > MOST:
        return {}
    each = max((n for p in processes if (n := _environment_int(p, "LOCAL_WORLD_SIZE"))), default=0)
    if not size or not each:
        return _task_homes(processes) if size in (0, _task_count(processes)) else {}
    node_of = {g: p.node for p in processes if (g := _environment_int(p, "GROUP_RANK")) is not None}
    unseen = [n for n in missed if n not in node_of.values()]
    groups = [g for g in range(-(-size // each)) if g not in node_of]
    if len(groups) == len(unseen) == 1:
        node_of[groups[0]] = unseen[0]
    return {r: node_of.get(r // each, "") for r in range(size)}


def _task_count(processes: Sequence[JobProcess]) -> int:
    return max(
        (n for p in processes if (n := _environment_int(p, "SLURM_STEP_NUM_TASKS"))), default=0
    )


def _task_homes(processes: Sequence[JobProcess]) -> dict[int, str]:
    """The node of each of Slurm's tasks, as srun(1) distributes them. Empty if the tasks are not
    known. If only the distribution is not certain, each node is empty."""
    first = next((p for p in processes if "SLURM_STEP_TASKS_PER_NODE" in p.env), None)
    if first is None:
        return {}
    try:
        nodes = expand_hostlist(first.env.get("SLURM_STEP_NODELIST", ""))
        counts = _unfold_counts(first.env["SLURM_STEP_TASKS_PER_NODE"])
    except (Invalid, ValueError):
        return {}
    if len(nodes) != len(counts):
        return {}
    for homes in (_block_distribution(nodes, counts), _cyclic_distribution(nodes, counts)):
        if all((t := _task_number(p)) is None or homes.get(t) == p.node for p in processes):
            return homes
    return dict.fromkeys(range(sum(counts)), "")


def _block_distribution(nodes: Sequence[str], counts: Sequence[int]) -> dict[int, str]:
    return dict(enumerate(n for n, c in zip(nodes, counts, strict=True) for _ in range(c)))


def _cyclic_distribution(nodes: Sequence[str], counts: Sequence[int]) -> dict[int, str]:
    rounds = range(max(counts, default=0))
    pairs = list(zip(nodes, counts, strict=True))
    return dict(enumerate(n for r in rounds for n, c in pairs if r < c))


def _unfold_counts(text: str) -> list[int]:
    """`2(x3),1` as [2, 2, 2, 1]. Raises ValueError."""
    counts: list[int] = []
    for part in text.split(","):
        match = _REPEATED.fullmatch(part)
        if not match or (int(match[1]) or 1) * int(match[2] or 1) + sum(counts) > MOST:
            raise ValueError(f"{text!r} are no tasks per node")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts
