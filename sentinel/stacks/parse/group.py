"""Groups ranks that stand at the same place. Odd ranks come first. Pure.

The main process of a rank is the one that trains. It is neither the launcher above it (torchrun)
nor a worker below it (of a DataLoader), which inherits its environment.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sentinel.stacks.parse.model import JobProcess, StackFrame, StacksDump, StandKind
from sentinel.stacks.parse.seats import RankSeat, find_seats

DEPTH = 5
"""How many innermost frames must be the same. Further out, rank 0 differs because it writes and
logs."""


class RankGroup(Struct, frozen=True, kw_only=True):
    """Ranks of one kind at one place.

    `frames`: those of the first rank, the innermost first. `detail`: what else is known of the
    place. `ranks` lacks processes whose rank is not known; `count` includes them.
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
    """The groups, odd ones first: troubles, then smaller groups before larger ones."""
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
    """Two ranks with the same key are at the same place."""
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
    """The kind of a process. Its state comes first, because it says more than the stack."""
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
