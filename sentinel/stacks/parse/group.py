"""Ranks that stand at the same place are one group; the odd ones come first. Pure.

Which process is which rank, and which ranks should be there and are not. Pure.

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
from sentinel.stacks.parse.model import Dump, Frame, Kind, Process

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


DEPTH = 5
"""Innermost frames that have to agree: further out, rank 0 differs by what it writes and logs."""


class Group(Struct, frozen=True, kw_only=True):
    """Ranks of one kind at one place. `frames`: of the first of them, the innermost first.

    `detail` says what is not frames. `ranks` lacks processes whose rank is not known;
    `count` has them all.
    """

    kind: Kind
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    count: int = 1
    frames: tuple[Frame, ...] = ()
    detail: str = ""
    step: str = ""
    pids: tuple[tuple[str, int], ...] = ()


def grouped(dump: Dump) -> tuple[Group, ...]:
    """Outliers first: troubles, then the smaller group before the larger."""
    found: dict[tuple[object, ...], list[Seat]] = {}
    sitting = seats(dump)
    missed = {m.node: m.why for m in dump.missed}
    several = len({s.step for s in sitting}) > 1
    for seat in sitting:
        if seat.process is not None or (seat.node not in missed and (seat.node or not missed)):
            found.setdefault(_place(seat), []).append(seat)
    groups = [_group(some, several) for some in found.values()]
    unreached = [_unreached(node, why, sitting) for node, why in missed.items()]
    return tuple(sorted([*groups, *unreached], key=_order))


def _order(group: Group) -> tuple[bool, int, tuple[int, ...], tuple[str, ...]]:
    return (not group.kind.trouble, group.count, group.ranks[:1], group.nodes[:1])


def _place(seat: Seat) -> tuple[object, ...]:
    """What two ranks must have in common to stand at the same place."""
    process = seat.process
    if process is None:
        return (seat.step, Kind.GONE)
    kind = kind_of(process)
    if kind is Kind.PYTHON and process.main:
        return (seat.step, kind, process.main.frames[:DEPTH])
    if kind is Kind.OTHER:
        return (seat.step, kind, process.name, process.native[:DEPTH])
    return (seat.step, kind, _detail(process, kind))


def kind_of(process: Process) -> Kind:
    """By the state of the process first: what is known of it is more than its stack."""
    if process.blocked:
        return Kind.BLOCKED
    if process.state in ("Z", "X"):
        return Kind.ZOMBIE
    if process.state in ("T", "t"):
        return Kind.STOPPED
    if process.main and process.main.frames:
        return Kind.PYTHON
    return Kind.UNREADABLE if process.python or process.why else Kind.OTHER


def _group(some: Sequence[Seat], several: bool) -> Group:
    first = some[0].process
    kind = kind_of(first) if first else Kind.GONE
    return Group(
        kind=kind,
        ranks=tuple(s.rank for s in some if s.rank is not None),
        nodes=tuple(dict.fromkeys(s.node for s in some if s.node)),
        count=len(some),
        frames=first.main.frames if first and first.main else (),
        detail=_detail(first, kind) if first else "",
        step=some[0].step if several else "",
        pids=tuple((s.process.node, s.process.pid) for s in some if s.process),
    )


def _unreached(node: str, why: str, sitting: Sequence[Seat]) -> Group:
    ranks = tuple(
        s.rank for s in sitting if s.node == node and s.process is None and s.rank is not None
    )
    return Group(kind=Kind.UNREACHED, ranks=ranks, nodes=(node,), count=len(ranks) or 1, detail=why)


def _detail(process: Process, kind: Kind) -> str:
    if kind is Kind.BLOCKED and process.blocked:
        return _waiting(process)
    if kind is Kind.UNREADABLE:
        return process.why or "py-spy saw no thread of Python in it"
    if kind is Kind.OTHER:
        return " < ".join([process.name, *(process.native[:DEPTH])])
    return ""


def _waiting(process: Process) -> str:
    """`blocked reading /scratch/x (state D in folio_wait_bit)`."""
    blocked = process.blocked
    if blocked is None:
        return ""
    doing = " ".join(filter(None, ["blocked", blocked.doing, blocked.path]))
    where = blocked.wchan if blocked.wchan not in ("", "0") else blocked.kernel.partition(" ")[0]
    other = "" if blocked.thread == process.pid else f", thread {blocked.thread}"
    return f"{doing} (state D{' in ' + where if where else ''}{other})"
