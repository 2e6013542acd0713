"""Finds the ranks that the collectives of a job wait for, from the dumps of its ranks. Pure.

A rank waits for every rank that has not enqueued the same operation. That rank may itself wait for
others in another group. The culprit is a rank that others wait for, and that waits for nobody. A
collective that has ended for one rank ends for all ranks with working GPUs. So a rank for which it
has not ended is also a culprit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from sentinel.stacks.parse.flight_recorder import GroupMembership, PendingOp, Recording

_Key = tuple[str, int, str]
_Row = tuple[str, tuple[int, ...]]
_Place = tuple[str, tuple[int, ...], int]
"""A collective: the name and ranks of its group, and its number."""

SILENT = 0.5
"""If this share of the ranks has no dump, a missing dump proves nothing."""

# In these, one rank may finish before others have begun, because one side only sends
# (torch.distributed's documentation of broadcast, reduce, gather and scatter).
_ONE_SIDED = ("broadcast", "reduce", "gather", "scatter", "send", "recv", "coalesced")


class CulpritReason(str, Enum):
    """Why others wait for a rank.

    absent: Others are in a collective that it has not enqueued.
    unfinished: It has enqueued a collective that has ended for others, and it has not ended for
        this rank.
    odd: It is in another collective than the others of its group.
    silent: Others wait in a collective with it, and it left no dump.
    """

    ABSENT = "absent"
    UNFINISHED = "unfinished"
    ODD = "odd"
    SILENT = "silent"


class Culprit(Struct, frozen=True, kw_only=True):
    """Ranks for which others wait, and the collective.

    `seq`: its number in its group. `group`: the description of the group. `waiting`: how many
    others wait in it. `place`: the line that called it.
    """

    ranks: tuple[int, ...]
    why: CulpritReason
    collective: str
    seq: int
    group: str
    waiting: int = 0
    place: str = ""


class Standstill(Struct, frozen=True, kw_only=True):
    """The result of all dumps together.

    `circle`: the culprits wait for each other. `silent`: ranks of the job without a dump. `open`:
    how many ranks are in an operation that has not ended.
    """

    culprits: tuple[Culprit, ...] = ()
    ranks: int = 0
    silent: tuple[int, ...] = ()
    open: int = 0
    circle: bool = False


class _PendingWait(Struct, frozen=True):
    """An operation that has not ended. `lacks` are the ranks that have not enqueued it. `silent`
    are those that left no dump, so they may not have enqueued it."""

    rank: int
    op: PendingOp
    lacks: frozenset[int]
    silent: frozenset[int] = frozenset()


def find_standstill(recordings: Iterable[Recording]) -> Standstill:
    """The ranks that hold up the others. The result counts only for a job that stands still: in a
    running one, ranks are always a few operations apart."""
    by_rank = _add_group_ranks({one.rank: one for one in recordings})
    world = sorted({r for one in by_rank.values() for g in one.groups.values() for r in g.ranks})
    waits = _pending_waits(by_rank)
    silent = tuple(rank for rank in world if rank not in by_rank)
    culprits = _odd_culprits(by_rank) or _merge_absent(
        _absent_culprits(waits), _unfinished_culprits(by_rank)
    )
    circle = not culprits and not silent and any(wait.lacks for wait in waits)
    if circle:
        culprits = _culprits_once(waits, frozenset().union(*(wait.lacks for wait in waits)))
    if not culprits and len(silent) < SILENT * len(world):
        culprits = _silent_culprits(waits)
    return Standstill(
        culprits=tuple(culprits),
        ranks=len(world),
        silent=silent,
        open=len({wait.rank for wait in waits}),
        circle=circle,
    )


def _add_group_ranks(by_rank: Mapping[int, Recording]) -> dict[int, Recording]:
    """gloo does not say which ranks are in a group. So a rank is in it if the group is in its dump.
    All ranks are in the first group."""
    known: dict[str, list[int]] = defaultdict(list)
    for rank in sorted(by_rank):
        for name, group in by_rank[rank].groups.items():
            if not group.ranks:
                known[name].append(rank)
    if "0" in known:
        known["0"] = sorted(by_rank)
    groups = {
        rank: {
            name: group if group.ranks else replace(group, ranks=tuple(known[name]))
            for name, group in one.groups.items()
        }
        for rank, one in by_rank.items()
    }
    return {rank: replace(one, groups=groups[rank]) for rank, one in by_rank.items()}


def _group_identity(recording: Recording, group: str) -> tuple[str, tuple[int, ...]]:
    """The identity of a group: its name and ranks. Ranks that make groups by themselves may use one
    name for several groups."""
    return group, recording.groups[group].ranks


def _pending_waits(by_rank: Mapping[int, Recording]) -> list[_PendingWait]:
    """For each rank and group, the oldest operation that another rank lacks. If there is none, the
    oldest."""
    enqueued = {
        (*_group_identity(one, name), rank): group.enqueued
        for rank, one in by_rank.items()
        for name, group in one.groups.items()
    }
    posted = _posted_pairs(by_rank.values())
    lacking: dict[tuple[str, tuple[int, ...], int], frozenset[int]] = {}
    waits: dict[tuple[int, str], _PendingWait] = {}
    for rank, one in by_rank.items():
        for op in one.ops:
            before = waits.get((rank, op.group))
            if op.group not in one.groups or (before and before.lacks):
                continue
            name, ranks = _group_identity(one, op.group)
            if op.peer is not None:
                lacks = _missing_peer(one, op, posted)
            elif (name, ranks, op.seq) in lacking:
                lacks = lacking[name, ranks, op.seq]
            else:
                counts = ((r, enqueued.get((name, ranks, r))) for r in ranks)
                lacks = frozenset(r for r, n in counts if n is not None and n < op.seq)
                lacking[name, ranks, op.seq] = lacks
            if lacks or not before:
                with_it = ranks if op.peer is None else lacks
                gone = frozenset(r for r in with_it if r not in by_rank)
                waits[rank, op.group] = _PendingWait(rank, op, lacks - gone, gone)
    return list(waits.values())


def _posted_pairs(recordings: Iterable[Recording]) -> set[tuple[str, int, int, bool]]:
    """Sends and receives that have not ended: group, who, with whom, and whether it sends."""
    return {
        (op.group, one.rank, ranks[op.peer], op.sends)
        for one in recordings
        for op in one.ops
        if op.peer is not None and op.group in one.groups
        if op.peer < len(ranks := one.groups[op.group].ranks)
    }


def _missing_peer(
    one: Recording, op: PendingOp, posted: set[tuple[str, int, int, bool]]
) -> frozenset[int]:
    """The other side of a send or receive, if it has not begun its own operation."""
    ranks = one.groups[op.group].ranks
    if op.peer is None or op.peer >= len(ranks):
        return frozenset()
    other = ranks[op.peer]
    begun = (op.group, other, one.rank, not op.sends) in posted
    return frozenset() if begun else frozenset([other])


def _absent_culprits(waits: Sequence[_PendingWait]) -> list[Culprit]:
    wanted = frozenset().union(*(wait.lacks for wait in waits))
    waiting = {wait.rank for wait in waits if wait.lacks or wait.silent}
    return _culprits_once(waits, wanted - waiting)


def _merge_absent(absent: list[Culprit], unfinished: list[Culprit]) -> list[Culprit]:
    """Do not report an absent rank again for the work of its GPU."""
    told = {rank for one in absent for rank in one.ranks}
    rest = [(one, [r for r in one.ranks if r not in told]) for one in unfinished]
    return [*absent, *(replace(one, ranks=tuple(ranks)) for one, ranks in rest if ranks)]


def _culprits_once(waits: Sequence[_PendingWait], ranks: frozenset[int]) -> list[Culprit]:
    """Each of these ranks once, with the operation in which most ranks wait for it. A collective is
    preferred to a send or receive, which may only wait as a consequence."""
    found: dict[int, Counter[_Key]] = defaultdict(Counter)
    of: dict[_Key, list[_PendingWait]] = defaultdict(list)
    for wait in waits:
        key = (wait.op.group, wait.op.seq, wait.op.name if wait.op.peer is not None else "")
        if wanted := wait.lacks & ranks:
            of[key].append(wait)
        for rank in wanted:
            found[rank][key] += 1 if key[2] else len(waits)
    chosen: dict[_Key, list[int]] = defaultdict(list)
    for rank, counted in found.items():
        chosen[counted.most_common(1)[0][0]].append(rank)
    return [
        _make_culprit(
            of[key][0].op, some, CulpritReason.ABSENT, len({wait.rank for wait in of[key]}), of[key]
        )
        for key, some in sorted(chosen.items(), key=lambda pair: min(pair[1]))
    ]


def _unfinished_culprits(by_rank: Mapping[int, Recording]) -> list[Culprit]:
    """The ranks for which a collective has not ended that has ended for others. Only groups without
    sends and receives count, because their numbers are consecutive.

    If one rank has not enqueued an operation, no rank can have finished it. So ranks that say so
    have an operation that failed.
    """
    members: dict[_Row, list[GroupMembership]] = defaultdict(list)
    for one in by_rank.values():
        for name, group in one.groups.items():
            members[_group_identity(one, name)].append(group)
    found: dict[_Key, tuple[PendingOp, list[int], int]] = {}
    for rank, one in sorted(by_rank.items()):
        for op in one.ops:
            if op.group not in one.groups or _is_one_sided(op.name):
                continue
            all_of = members[_group_identity(one, op.group)]
            others = sum((m.completed or -1) >= op.seq for m in all_of)
            begun = all(m.enqueued is None or m.enqueued >= op.seq for m in all_of)
            if others and begun and not any(m.pairs for m in all_of):
                found.setdefault((op.group, op.seq, ""), (op, [], others))[1].append(rank)
                break
    return [
        _make_culprit(op, some, CulpritReason.UNFINISHED, others, ())
        for op, some, others in found.values()
    ]


def _is_one_sided(name: str) -> bool:
    """Whether in this operation one rank may finish before others begin. `reduce_scatter` and
    `all_gather` are not one-sided."""
    bare = name.strip("_")
    both = bare.startswith(("all", "reduce_scatter")) or "barrier" in bare
    return not both and bare.startswith(_ONE_SIDED)


def _odd_culprits(by_rank: Mapping[int, Recording]) -> list[Culprit]:
    """Ranks of a group that are in another collective than most others, with the same number. If no
    set of ranks is the largest, all are odd."""
    found: dict[_Place, dict[tuple[str, str], list[tuple[int, PendingOp]]]] = {}
    for rank, one in sorted(by_rank.items()):
        for op in (*one.ops, *one.ended):
            if op.peer is None and op.group in one.groups:
                what = (
                    op.name,
                    op.shape if op.name.startswith(("allreduce", "all_reduce")) else "",
                )
                where = (*_group_identity(one, op.group), op.seq)
                found.setdefault(where, {}).setdefault(what, []).append((rank, op))
    for told in found.values():
        if len(told) > 1:
            sides = sorted(told.values(), key=len)
            most = sides.pop() if len(sides[-1]) > len(sides[-2]) else []
            return [
                _make_culprit(
                    side[0][1], [rank for rank, _ in side], CulpritReason.ODD, len(most), ()
                )
                for side in sides
            ]
    return []


def _silent_culprits(waits: Sequence[_PendingWait]) -> list[Culprit]:
    """The smallest sets of ranks without a dump for which others wait."""
    found: dict[frozenset[int], list[_PendingWait]] = defaultdict(list)
    for wait in waits:
        if wait.silent:
            found[wait.silent].append(wait)
    few = sorted(found.items(), key=lambda pair: (len(pair[0]), -len(pair[1])))
    return [
        _make_culprit(
            some[0].op, list(ranks), CulpritReason.SILENT, len({wait.rank for wait in some}), some
        )
        for ranks, some in few
        if len(ranks) == len(few[0][0])
    ]


def _make_culprit(
    op: PendingOp,
    ranks: Sequence[int],
    why: CulpritReason,
    waiting: int,
    waits: Sequence[_PendingWait],
) -> Culprit:
    """Make a culprit. The line comes from the calls of `waits`. If there are none, it is the line
    of `op`."""
    places = [wait.op.place for wait in waits if wait.op.place]
    return Culprit(
        ranks=tuple(sorted(ranks)),
        why=why,
        collective=op.name.strip("_"),
        seq=op.seq,
        group=op.desc or op.group,
        waiting=waiting,
        place=next(iter(places), "" if waits else op.place),
    )
