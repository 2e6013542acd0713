"""Ranks that stand at the same place are one group; the odd ones come first. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sentinel.stacks.parse.model import Dump, Frame, Kind, Process
from sentinel.stacks.parse.ranks import Seat, seats

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
