"""Which process is which rank, and which ranks should be there and are not. Pure.

A rank's main process is the one that trains: neither the launcher above it (torchrun) nor the
workers below it (of a DataLoader), which inherit its environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.errors import Invalid
from sentinel.core.hostlist import expand
from sentinel.stacks.parse.model import Dump, Process

MOST = 200_000
"""Ranks that a job may have: their number is in an environment, which is the user's own."""

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_BATCH = frozenset({"batch", "extern", "interactive"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "tcsh", "csh", "env", "time", "numactl"})
_REPEATED = re.compile(r"([0-9]{1,6})(?:\(x([0-9]{1,6})\))?")


class Seat(Struct, frozen=True, kw_only=True):
    """A rank and who sits there; `process` None: nobody any more, or nobody could look."""

    rank: int | None
    node: str
    step: str = ""
    process: Process | None = None


def seats(dump: Dump) -> tuple[Seat, ...]:
    """Every rank of the job, seen or missing, by step and rank."""
    mains = [p for node in dump.nodes for p in _mains(node.processes)]
    by_step: dict[str, list[Process]] = {}
    for process in _of_training(mains):
        by_step.setdefault(_step(process), []).append(process)
    missed = [m.node for m in dump.missed]
    found = [seat for step, some in by_step.items() for seat in _step_seats(step, some, missed)]
    # A step may go over nodes that nobody asked: those of a heterogeneous job's other parts.
    asked = {"", *missed, *(n.node for n in dump.nodes)}
    found = [seat for seat in found if seat.process or seat.node in asked]
    return tuple(sorted(found, key=lambda s: (s.step, s.rank is None, s.rank or 0, s.node)))


# -- who trains ----------------------------------------------------------------------------


def _mains(processes: Sequence[Process]) -> list[Process]:
    by_pid = {p.pid: p for p in processes}
    below = _descendants(processes)
    trains = [p for p in processes if p.python and not _launches(p, below[p.pid])]
    chosen = {p.pid for p in trains}
    mains = [
        p for p in trains if not any(_same(p, a) for a in _above(p, by_pid) if a.pid in chosen)
    ]
    return [*mains, *_without_python(processes, below)]


def _launches(process: Process, below: Sequence[Process]) -> bool:
    """Has no RANK itself, and gave ranks to processes below it."""
    return "RANK" not in process.env and any(p.python and "RANK" in p.env for p in below)


def _same(process: Process, other: Process) -> bool:
    return _label(process) == _label(other)


def _label(process: Process) -> tuple[str, ...]:
    return tuple(process.env.get(key, "") for key in (*_RANKS, "SLURM_PROCID"))


def _without_python(
    processes: Sequence[Process], below: Mapping[int, list[Process]]
) -> list[Process]:
    """Tasks that are no Python programs: what their shells run, else their leaders."""
    leaders = [p for p in processes if p.task is not None and not p.python]
    bare = [p for p in leaders if not any(q.python for q in below[p.pid])]
    return [_inside(p, below) for p in bare]


def _inside(process: Process, below: Mapping[int, list[Process]]) -> Process:
    children = [p for p in below[process.pid] if p.parent == process.pid]
    if not children or not _SHELLS & {process.name, process.exe.rpartition("/")[2]}:
        return process
    child = _inside(children[-1], below)
    env = {**process.env, **child.env}
    return replace(child, task=process.task, step=process.step, env=env)


def _of_training(mains: Sequence[Process]) -> list[Process]:
    """Where Python runs at all, steps without it (monitors, shells) say nothing about a hang;
    where steps do, the batch script only started them."""
    python = {_step(p) for p in mains if p.python}
    steps = python or {_step(p) for p in mains}
    steps = {s for s in steps if s not in _BATCH} or steps
    return [p for p in mains if _step(p) in steps]


def _step(process: Process) -> str:
    return process.step or process.env.get("SLURM_STEP_ID", "")


def _descendants(processes: Sequence[Process]) -> dict[int, list[Process]]:
    by_pid = {p.pid: p for p in processes}
    below: dict[int, list[Process]] = {p.pid: [] for p in processes}
    for process in processes:
        for above in _above(process, by_pid):
            below[above.pid].append(process)
    return below


def _above(process: Process, by_pid: Mapping[int, Process]) -> Iterable[Process]:
    seen = {process.pid}
    while (parent := by_pid.get(process.parent)) and parent.pid not in seen:
        seen.add(parent.pid)
        yield parent
        process = parent


# -- ranks ---------------------------------------------------------------------------------


def _step_seats(step: str, processes: Sequence[Process], missed: Sequence[str]) -> list[Seat]:
    told = [_told_rank(p) for p in processes]
    given = [_task(p) for p in processes]
    known = [n for n in told if n is not None]
    unsaid = [p for n, p in zip(told, processes, strict=True) if n is None and p.env]
    own = bool(known) and not unsaid and len(set(known)) == len(known)
    numbers = told if own else given
    seats = [
        Seat(rank=n, node=p.node, step=step, process=p)
        for n, p in zip(numbers, processes, strict=True)
    ]
    homes = _torch_homes(processes, missed) if own else _task_homes(processes)
    present = {s.rank for s in seats}
    lost = missed[0] if len(missed) == 1 else ""
    absent = [
        Seat(rank=r, node=homes[r] or lost, step=step) for r in sorted(homes) if r not in present
    ]
    return [*seats, *absent]


def _told_rank(process: Process) -> int | None:
    """RANK and its like; meant only where it is not the same for all (see `_step_seats`)."""
    return next((n for key in _RANKS if (n := _env(process, key)) is not None), None)


def _task(process: Process) -> int | None:
    number = _env(process, "SLURM_PROCID") if _step(process) not in _BATCH else None
    return process.task if number is None else number


def _env(process: Process, key: str) -> int | None:
    text = process.env.get(key, "")
    return int(text) if text.isdigit() and len(text) < 10 else None


def _torch_homes(processes: Sequence[Process], missed: Sequence[str]) -> dict[int, str]:
    """torchrun's ranks by node: those of a group are together on one (GROUP_RANK)."""
    size = max((n for p in processes if (n := _env(p, "WORLD_SIZE"))), default=0)
    if size > MOST:
        return {}
    each = max((n for p in processes if (n := _env(p, "LOCAL_WORLD_SIZE"))), default=0)
    if not size or not each:
        return _task_homes(processes) if size in (0, _tasks(processes)) else {}
    node_of = {g: p.node for p in processes if (g := _env(p, "GROUP_RANK")) is not None}
    unseen = [n for n in missed if n not in node_of.values()]
    groups = [g for g in range(-(-size // each)) if g not in node_of]
    if len(groups) == len(unseen) == 1:
        node_of[groups[0]] = unseen[0]
    return {r: node_of.get(r // each, "") for r in range(size)}


def _tasks(processes: Sequence[Process]) -> int:
    return max((n for p in processes if (n := _env(p, "SLURM_STEP_NUM_TASKS"))), default=0)


def _task_homes(processes: Sequence[Process]) -> dict[int, str]:
    """Slurm's tasks by node, as srun(1) distributes them; {} where that is not plain."""
    first = next((p for p in processes if "SLURM_STEP_TASKS_PER_NODE" in p.env), None)
    if first is None:
        return {}
    try:
        nodes = expand(first.env.get("SLURM_STEP_NODELIST", ""))
        counts = _unfolded(first.env["SLURM_STEP_TASKS_PER_NODE"])
    except (Invalid, ValueError):
        return {}
    if len(nodes) != len(counts):
        return {}
    for homes in (_block(nodes, counts), _cyclic(nodes, counts)):
        if all((t := _task(p)) is None or homes.get(t) == p.node for p in processes):
            return homes
    return dict.fromkeys(range(sum(counts)), "")


def _block(nodes: Sequence[str], counts: Sequence[int]) -> dict[int, str]:
    return dict(enumerate(n for n, c in zip(nodes, counts, strict=True) for _ in range(c)))


def _cyclic(nodes: Sequence[str], counts: Sequence[int]) -> dict[int, str]:
    rounds = range(max(counts, default=0))
    pairs = list(zip(nodes, counts, strict=True))
    return dict(enumerate(n for r in rounds for n, c in pairs if r < c))


def _unfolded(text: str) -> list[int]:
    """`2(x3),1` as [2, 2, 2, 1]; ValueError."""
    counts: list[int] = []
    for part in text.split(","):
        match = _REPEATED.fullmatch(part)
        if not match or (int(match[1]) or 1) * int(match[2] or 1) + sum(counts) > MOST:
            raise ValueError(f"{text!r} are no tasks per node")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts
