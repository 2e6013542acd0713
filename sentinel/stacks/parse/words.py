"""Describes groups of ranks in words: one line for an alert, and all of it for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.core.hostlist import fold_for_people
from sentinel.core.text import format_ranges, shortened
from sentinel.stacks.parse.group import RankGroup, group_ranks
from sentinel.stacks.parse.model import StackFrame, StacksDump, StandKind

MOST_GROUPS = 5
"""How many groups the headline names. Further ones are only counted."""
NAMED = 16
"""Up to this many ranks, a group is named with its ranks and nodes. Larger groups are only
counted."""
LONGEST = 160
"""Characters of one line of ranks or nodes."""

_FOREIGN = ("site-packages/", "dist-packages/", "/lib/python", "<frozen", "lib64/python")
_STATES = {
    StandKind.GONE: "has no process any more|have no process any more",
    StandKind.ZOMBIE: "has ended and nobody has noticed (zombie)|have ended and nobody has noticed (zombies)",
    StandKind.STOPPED: "is stopped (state T)|are stopped (state T)",
}


def dump_headline(dump: StacksDump) -> str:
    """`rank 3 (node-3) in load_batch (trainer.py:5); 63 ranks in all_reduce (trainer.py:3)`."""
    groups = group_ranks(dump)
    if not groups:
        return _nothing_left(dump)
    told = [_group_line(group, alone=len(groups) == 1) for group in groups[:MOST_GROUPS]]
    if len(groups) > MOST_GROUPS:
        rest = groups[MOST_GROUPS - 1 :]
        told[-1] = f"{len(rest)} more places with {sum(g.count for g in rest)} ranks"
    if dump.ended:
        told.insert(0, f"the job ended during the dump ({dump.ended})")
    return "; ".join(told)


def interpret_dump(dump: StacksDump) -> str:
    """The interpretation in one line. Empty if there is none."""
    groups = group_ranks(dump)
    if any(g.kind.is_trouble or len(groups) > 1 for g in groups):
        return ""
    if not groups or groups[0].kind is not StandKind.PYTHON:
        return "nothing can be said of a hang: no stack was read"
    if groups[0].count == 1:
        return "this is the only rank that was found: there is none to compare it with"
    return "all ranks stand at the same place: no rank is odd, look at the network or at one GPU"


def dump_lines(dump: StacksDump) -> list[str]:
    """Every group with its stack, outliers first, for a terminal of 80 columns."""
    groups = group_ranks(dump)
    out = [dump_headline(dump), *filter(None, [interpret_dump(dump)])]
    for group in groups:
        out += ["", _group_title(group), *_group_body(group)]
    return [*out, *_install_lines(dump)]


def _install_lines(dump: StacksDump) -> list[str]:
    """How to get py-spy to the nodes that have none. What /proc shows is reported all the same."""
    bare = [n.node for n in dump.nodes if n.no_tool and any(p.python for p in n.processes)]
    if not bare:
        return []
    return [
        "",
        f"No py-spy on {_node_words(bare)}, so the lines of Python are not known there. Install it where",
        "the nodes see it: pip install py-spy into the training's own environment (root never runs that",
        "one), or anywhere on a shared file system and name it: --py-spy PATH, or `remote: {py_spy: PATH}`.",
    ]


def _group_line(group: RankGroup, *, alone: bool = False) -> str:
    who, one = _group_subject(group, alone), group.count == 1
    if group.kind is StandKind.UNREACHED:
        ranks = f" ({_rank_words(group.ranks)})" if group.ranks else ""
        return f"{group.nodes[0]}{ranks} was not reached: {shortened(group.detail, 120)}"
    if group.kind in _STATES:
        single, _, several = _STATES[group.kind].partition("|")
        return f"{who} {single if one else several}"
    if group.kind is StandKind.PYTHON:
        return f"{who} in {frame_place(group.frames)}"
    if group.kind is StandKind.OTHER:
        return f"{who} {'runs' if one else 'run'} {shortened(group.detail, 120)}, not Python"
    if group.kind is StandKind.UNREADABLE:
        return f"{who} not readable: {group.detail}"
    return f"{who} {group.detail}"


def frame_place(frames: Sequence[StackFrame]) -> str:
    """The innermost frame, and the nearest one of the user's own code if that is another."""
    inner = frames[0]
    own = next((f for f in frames if not _is_foreign_frame(f)), None)
    if own is None or own == inner:
        return _frame_words(inner)
    return f"{_frame_words(inner)} from {_frame_words(own)}"


def _frame_words(frame: StackFrame) -> str:
    line = f":{frame.line}" if frame.line else ""
    return f"{shortened(frame.function, 80)} ({shortened(frame.file, 80)}{line})"


def _is_foreign_frame(frame: StackFrame) -> bool:
    return ".so" in frame.file or any(part in frame.path for part in _FOREIGN)


def _group_subject(group: RankGroup, alone: bool) -> str:
    step = f"step {group.step}: " if group.step else ""
    if alone and group.count > 1:
        return f"{step}all {group.count} ranks"
    if group.count > NAMED:
        return f"{step}{group.count} ranks"
    nodes = f" ({_node_words(group.nodes)})" if group.nodes else ""
    if len(group.ranks) == group.count:
        return f"{step}{_rank_words(group.ranks)}{nodes}"
    pids = ", ".join(str(pid) for _, pid in group.pids[:4])
    return f"{step}{'process' if group.count == 1 else 'processes'} {pids}{nodes}"


def _rank_words(ranks: Sequence[int]) -> str:
    word = "rank" if len(ranks) == 1 else "ranks"
    return shortened(f"{word} {format_ranges(ranks)}", LONGEST)


def _node_words(nodes: Sequence[str]) -> str:
    return shortened(fold_for_people(nodes), LONGEST)


def _group_title(group: RankGroup) -> str:
    ranks = _rank_words(group.ranks) if group.ranks else f"{group.count} of unknown rank"
    if group.count > 1 and group.ranks:
        ranks = f"{group.count} {ranks}"
    nodes = f", on {_node_words(group.nodes)}" if group.nodes else ""
    step = f", step {group.step}" if group.step else ""
    return f"{ranks}{nodes}{step}: {group.kind.value}"


def _group_body(group: RankGroup) -> list[str]:
    if group.kind is StandKind.PYTHON:
        return [f"    {_frame_words(frame)}" for frame in group.frames]
    return [f"    {group.detail}"] if group.detail else []


def _nothing_left(dump: StacksDump) -> str:
    if dump.ended:
        return f"the job ended before its processes could be looked at ({dump.ended})"
    return "no process of the job is left on its nodes"
