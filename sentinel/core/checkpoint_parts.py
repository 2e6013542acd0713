"""Finds parts of one step that are missing by the numbers in the names of the others. Pure, standard library only.

Parts are numbered along axes: shards (`2-of-4`), ranks (`rank3`), and several at once, as nanotron's
`pp-rank-0-of-2_tp-rank-1-of-2` (https://github.com/huggingface/nanotron/blob/main/src/nanotron/serialize/utils.py).
A pipeline stage writes only its own files into a folder, and a node only those of its ranks. So an index
that one folder lacks may be in another folder of the same form. `clean` and `checkpoint` both use this.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from sentinel.core.checkpoint_names import name_form

_PART_OF_PATTERN = re.compile(r"(?<!\d)(\d{1,12})-of-(\d+)")
_RANK_PATTERN = re.compile(r"rank[-_.=]?(\d+)", re.IGNORECASE)
_LABEL_PATTERN = re.compile(r"([a-z]+)[-_.=]?(?:rank[-_.=]?)?$", re.IGNORECASE)


class _Axis(NamedTuple):
    """What an index in a name counts."""

    form: str  # the path without the index, with `#` in place of all other numbers
    promised: int  # how many there are; 0 if the name does not say it
    label: str  # the word before the index, if the name has several that state their count


def find_missing_part(paths: Iterable[str]) -> str:
    """Describe the first shard or rank that is missing in a step; empty if none is.

    `2-of-4` says how many shards there are. Ranks have no gap between them, but need not begin at
    0: the disk of a node may hold the ranks of that node alone.

    The files of torch DCP (`__3_0.distcp`) prove nothing: a rank that has nothing to write has none.
    """
    # Indices by axis, and within it by the names and numbers beside the index.
    found = dict[_Axis, dict[str, set[int]]]()
    for path in paths:
        for axis, group, index in _list_indices(path):
            found.setdefault(axis, {}).setdefault(group, set()).add(index)
    by_label = dict[tuple[str, int], set[int]]()
    for axis, groups in found.items():
        by_label.setdefault((axis.label, axis.promised), set()).update(*groups.values())
    for axis, groups in found.items():
        elsewhere = by_label[axis.label, axis.promised] if axis.label else set[int]()
        for there in groups.values():
            if (gap := _find_gap(axis, there, [*groups.values()], elsewhere)) is not None:
                return f"part {gap} of {axis.promised}" if axis.promised else f"rank {gap}"
    return ""


def _list_indices(path: str) -> Iterator[tuple[_Axis, str, int]]:
    """The indices in all names of a path: the axis, what stands beside the index, and the index."""
    above = ""
    for name in path.rstrip("/").split("/"):
        counted = [*_PART_OF_PATTERN.finditer(name)]
        for one in counted or _RANK_PATTERN.finditer(name):
            group = f"{above}/{name[: one.start()]}/{name[one.end() :]}"
            label = _LABEL_PATTERN.search(name[: one.start()]) if len(counted) > 1 else None
            count = int(one[2]) if counted else 0
            yield _Axis(name_form(group), count, label[1] if label else ""), group, int(one[1])
        above = f"{above}/{name}"


def _find_gap(
    axis: _Axis, there: Collection[int], groups: list[set[int]], elsewhere: Collection[int]
) -> int | None:
    """The first index that is missing in a group and in the others of its axis. None if there is none.

    A count has to be whole in each group if it is in one of them, and over all of them if not. Where
    names have several axes, one stage alone may write some files: the index may be `elsewhere`, with
    the same label. Ranks may be spread over groups that do not hold each other's.
    """
    if not axis.promised:
        missing = (n for n in range(min(there), max(there)) if n not in there)
        return next((n for n in missing if not _is_spread(n, there, groups)), None)
    there = {*there}
    wanted = _wanted_indices(axis.promised, there)
    if not any(group >= _wanted_indices(axis.promised, group) for group in groups):
        there |= set[int]().union(*groups, elsewhere)
        wanted = _wanted_indices(axis.promised, there)
    return min(wanted - there, default=None)


def _wanted_indices(count: int, there: Collection[int]) -> set[int]:
    """TensorFlow counts from 0, Hugging Face from 1."""
    first = 0 if 0 in there else 1
    return {*range(first, first + count)}


def _is_spread(index: int, there: Collection[int], groups: Iterable[set[int]]) -> bool:
    """Whether another group holds the index, and is not the same set without the gap."""
    return any(index in group and not group.issuperset(there) for group in groups)
