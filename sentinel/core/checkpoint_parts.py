"""Finds parts of one step that are missing by the numbers in the names of the others. Pure, standard library only.

Parts are numbered along axes: shards (`2-of-4`), ranks (`rank3`), and several at once, as nanotron's
`pp-rank-0-of-2_tp-rank-1-of-2` (https://github.com/huggingface/nanotron/blob/main/src/nanotron/serialize/utils.py).
A pipeline stage writes only its own files into a folder, and a node only those of its ranks. So an index
that one folder lacks may be in another folder of the same form. `clean` and `checkpoint` both use this.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from sentinel.core.checkpoint_names import is_log, name_form
from sentinel.core.checkpoint_series import NO_SERIES_PATTERN, SETTING_WORDS

_PART_OF_PATTERN = re.compile(r"(?<!\d)(\d{1,12})-of-(\d+)")
_RANK_PATTERN = re.compile(r"rank[-_.=]?(\d+)", re.IGNORECASE)
_LABEL_PATTERN = re.compile(r"([a-z]+)[-_.=]?(?:rank[-_.=]?)?$", re.IGNORECASE)

_NUMBER_PATTERN = re.compile("([0-9]+)")
_SETTING_PATTERN = re.compile(rf"(?:{SETTING_WORDS})[-_=.]?$", re.IGNORECASE)

MIN_FULL_SHARE = 0.8
"""Files whose names have so large a share of all combinations of their numbers ought to have all."""

MAX_PATH_CHARS = 500
"""A longer path proves nothing. What is compared of each is as long as its depth times its length: hours for
one folder that lies 700 levels deep."""

MAX_COMPARED = 5 * 10**7
"""How many indices are compared, some seconds of work. 20,000 files (as many as are looked at) of nodes with eight
ranks each are fewer. Where names have more, they prove nothing about ranks."""


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
    paths = [path for path in paths if len(path) <= MAX_PATH_CHARS]
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
        if (gap := _find_gap(axis, [*groups.values()], elsewhere)) is not None:
            return f"part {gap} of {axis.promised}" if axis.promised else f"rank {gap}"
    return _find_hole(paths)


def _find_hole(paths: Iterable[str]) -> str:
    """The name of a file that is missing in a full grid of numbers, such as layers and experts
    (DeepSpeed's `_get_expert_ckpt_name`) or ranks along two axes (Megatron's `mp_rank_00_001`).
    Empty if there is none.

    A name of numbers alone is one of an array's chunks: those that hold only zeros are left out. What lacks
    the last number of a row proves nothing, since ranks may write unlike numbers of files."""
    grids = dict[tuple[str, ...], set[tuple[str, ...]]]()
    for path in paths:
        words = _NUMBER_PATTERN.split(path)
        own = path.rstrip("/").rpartition("/")[2]
        if re.search("[A-Za-z]{2}", own) and not is_log(own):
            grids.setdefault(tuple(words[::2]), set()).add(tuple(words[1::2]))
    for texts, found in grids.items():
        if NO_SERIES_PATTERN.search("#".join(texts)):
            continue
        axes = [sorted({*values}, key=int) for values in zip(*found, strict=True)]
        varying = [text for text, values in zip(texts, axes, strict=False) if len(values) > 1]
        share = len(found) / prod(map(len, axes))
        if share == 1 or share < MIN_FULL_SHARE or any(map(_SETTING_PATTERN.search, varying)):
            continue
        inner = product(*(axis[: len(axis) - (len(axis) > 1)] for axis in axes))
        if hole := next((numbers for numbers in inner if numbers not in found), None):
            return "".join(map("".join, zip(texts, (*hole, ""), strict=True)))
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


def _find_gap(axis: _Axis, groups: Sequence[set[int]], elsewhere: set[int]) -> int | None:
    """The first index that is missing in a group and in the others of its axis. None if there is none.

    A count has to be whole in each group if it is in one of them, and over all of them if not. Where
    names have several axes, one stage alone may write some files: the index may be `elsewhere`, with
    the same label. Ranks may be spread over groups that do not hold each other's.
    """
    every = elsewhere.union(*groups)
    if axis.promised:
        gaps = [_first_missing(axis.promised, group) for group in groups]
        own = next((gap for gap in gaps if gap is not None), None)
        return own if None in gaps else _first_missing(axis.promised, every)
    for there in groups if len(groups) * len(every) <= MAX_COMPARED else ():
        spread = there.union(*(group for group in groups if not group.issuperset(there)))
        between = range(min(there), max(there))
        if (gap := next((n for n in between if n not in spread), None)) is not None:
            return gap
    return None


def _first_missing(count: int, there: Collection[int]) -> int | None:
    """The first of so many indices that is missing. TensorFlow counts from 0, Hugging Face from 1.

    Whoever names a file chooses the count: the indices are counted up to the first gap, never listed."""
    first = 0 if 0 in there else 1
    return next((n for n in range(first, first + count) if n not in there), None)
