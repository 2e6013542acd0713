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
from sentinel.core.hostlist import expand_hostlist
from sentinel.stacks.parse.model import JobProcess, StackFrame, StacksDump, StandKind

MOST = 200_000
"""Ranks that a job may have: their number is in an environment, which is the user's own."""

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_BATCH = frozenset({"batch", "extern", "interactive"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "tcsh", "csh", "env", "time", "numactl"})
_REPEATED = re.compile(r"([0-9]{1,6})(?:\(x([0-9]{1,6})\))?")


class RankSeat(Struct, frozen=True, kw_only=True):
    """A rank and who sits there; `process` None: nobody any more, or nobody could look."""

    rank: int | None
    node: str
    step: str = ""
    process: JobProcess | None = None


def find_seats(dump: StacksDump) -> tuple[RankSeat, ...]:
    """Every rank of the job, seen or missing, by step and rank."""
    mains = [p for node in dump.nodes for p in _main_processes(node.processes)]
    by_step: dict[str, list[JobProcess]] = {}
    for process in _training_processes(mains):
        by_step.setdefault(_step_id(process), []).append(process)
    missed = [m.node for m in dump.missed]
    found = [seat for step, some in by_step.items() for seat in _step_seats(step, some, missed)]
    # A step may go over nodes that nobody asked: those of a heterogeneous job's other parts.
    asked = {"", *missed, *(n.node for n in dump.nodes)}
    found = [seat for seat in found if seat.process or seat.node in asked]
    return tuple(sorted(found, key=lambda s: (s.step, s.rank is None, s.rank or 0, s.node)))


# -- who trains ----------------------------------------------------------------------------


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
    """Has no RANK itself, and gave ranks to processes below it."""
    return "RANK" not in process.env and any(p.python and "RANK" in p.env for p in below)


def _same_rank(process: JobProcess, other: JobProcess) -> bool:
    return _rank_label(process) == _rank_label(other)


def _rank_label(process: JobProcess) -> tuple[str, ...]:
    return tuple(process.env.get(key, "") for key in (*_RANKS, "SLURM_PROCID"))


def _non_python_tasks(
    processes: Sequence[JobProcess], below: Mapping[int, list[JobProcess]]
) -> list[JobProcess]:
    """Tasks that are no Python programs: what their shells run, else their leaders."""
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
    """Where Python runs at all, steps without it (monitors, shells) say nothing about a hang;
    where steps do, the batch script only started them."""
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


# -- ranks ---------------------------------------------------------------------------------


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
    """RANK and its like; meant only where it is not the same for all (see `_step_seats`)."""
    return next((n for key in _RANKS if (n := _environment_int(process, key)) is not None), None)


def _task_number(process: JobProcess) -> int | None:
    number = _environment_int(process, "SLURM_PROCID") if _step_id(process) not in _BATCH else None
    return process.task if number is None else number


def _environment_int(process: JobProcess, key: str) -> int | None:
    text = process.env.get(key, "")
    return int(text) if text.isdigit() and len(text) < 10 else None


def _torch_homes(processes: Sequence[JobProcess], missed: Sequence[str]) -> dict[int, str]:
    """torchrun's ranks by node: those of a group are together on one (GROUP_RANK)."""
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
    """Slurm's tasks by node, as srun(1) distributes them; {} where that is not plain."""
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


class RankGroup(Struct, frozen=True, kw_only=True):
    """Ranks of one kind at one place. `frames`: of the first of them, the innermost first.

    `detail` says what is not frames. `ranks` lacks processes whose rank is not known;
    `count` has them all.
    """

    kind: StandKind
    ranks: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    count: int = 1
    frames: tuple[StackFrame, ...] = ()
    detail: str = ""
    step: str = ""
    pids: tuple[tuple[str, int], ...] = ()


def group_ranks(dump: StacksDump) -> tuple[RankGroup, ...]:
    """Outliers first: troubles, then the smaller group before the larger."""
    found: dict[tuple[object, ...], list[RankSeat]] = {}
    sitting = find_seats(dump)
    missed = {m.node: m.why for m in dump.missed}
    several = len({s.step for s in sitting}) > 1
    for seat in sitting:
        if seat.process is not None or (seat.node not in missed and (seat.node or not missed)):
            found.setdefault(_group_key(seat), []).append(seat)
    groups = [_make_group(some, several) for some in found.values()]
    unreached = [_unreached_group(node, why, sitting) for node, why in missed.items()]
    return tuple(sorted([*groups, *unreached], key=_group_order))


def _group_order(group: RankGroup) -> tuple[bool, int, tuple[int, ...], tuple[str, ...]]:
    return (not group.kind.is_trouble, group.count, group.ranks[:1], group.nodes[:1])


def _group_key(seat: RankSeat) -> tuple[object, ...]:
    """What two ranks must have in common to stand at the same place."""
    process = seat.process
    if process is None:
        return (seat.step, StandKind.GONE)
    kind = process_kind(process)
    if kind is StandKind.PYTHON and process.main_thread:
        return (seat.step, kind, process.main_thread.frames[:DEPTH])
    if kind is StandKind.OTHER:
        return (seat.step, kind, process.name, process.native[:DEPTH])
    return (seat.step, kind, _group_detail(process, kind))


def process_kind(process: JobProcess) -> StandKind:
    """By the state of the process first: what is known of it is more than its stack."""
    if process.blocked:
        return StandKind.BLOCKED
    if process.state in ("Z", "X"):
        return StandKind.ZOMBIE
    if process.state in ("T", "t"):
        return StandKind.STOPPED
    if process.main_thread and process.main_thread.frames:
        return StandKind.PYTHON
    return StandKind.UNREADABLE if process.python or process.why else StandKind.OTHER


def _make_group(some: Sequence[RankSeat], several: bool) -> RankGroup:
    first = some[0].process
    kind = process_kind(first) if first else StandKind.GONE
    return RankGroup(
        kind=kind,
        ranks=tuple(s.rank for s in some if s.rank is not None),
        nodes=tuple(dict.fromkeys(s.node for s in some if s.node)),
        count=len(some),
        frames=first.main_thread.frames if first and first.main_thread else (),
        detail=_group_detail(first, kind) if first else "",
        step=some[0].step if several else "",
        pids=tuple((s.process.node, s.process.pid) for s in some if s.process),
    )


def _unreached_group(node: str, why: str, sitting: Sequence[RankSeat]) -> RankGroup:
    ranks = tuple(
        s.rank for s in sitting if s.node == node and s.process is None and s.rank is not None
    )
    return RankGroup(
        kind=StandKind.UNREACHED, ranks=ranks, nodes=(node,), count=len(ranks) or 1, detail=why
    )


def _group_detail(process: JobProcess, kind: StandKind) -> str:
    if kind is StandKind.BLOCKED and process.blocked:
        return _describe_blocked(process)
    if kind is StandKind.UNREADABLE:
        return process.why or "py-spy saw no thread of Python in it"
    if kind is StandKind.OTHER:
        return " < ".join([process.name, *(process.native[:DEPTH])])
    return ""


def _describe_blocked(process: JobProcess) -> str:
    """`blocked reading /scratch/x (state D in folio_wait_bit)`."""
    blocked = process.blocked
    if blocked is None:
        return ""
    doing = " ".join(filter(None, ["blocked", blocked.doing, blocked.path]))
    where = blocked.wchan if blocked.wchan not in ("", "0") else blocked.kernel.partition(" ")[0]
    other = "" if blocked.thread == process.pid else f", thread {blocked.thread}"
    return f"{doing} (state D{' in ' + where if where else ''}{other})"
