"""Finds parts of one step that are missing by the numbers in the names of the others. Pure, standard library only.

Parts are numbered along axes: shards (`2-of-4`), ranks (`rank3`), and several at once, as nanotron's
`pp-rank-0-of-2_tp-rank-1-of-2` (https://github.com/huggingface/nanotron/blob/main/src/nanotron/serialize/utils.py).
A pipeline stage writes only its own files into a folder, and a node only those of its ranks. So an index
that one folder lacks may be in another folder of the same form. `clean` and `checkpoint` both use this.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, pairwise, product
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
    paths, places = [*dict.fromkeys(paths)], dict[tuple[int, str], tuple[int, int]]()
    # Indices by axis, and within it by the names and numbers beside the index.
    found = dict[_Axis, dict[str, set[int]]]()
    for path in paths:
        for axis, group, index in _list_indices(path, places):
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
    grids = dict[str, list[str]]()
    for path in paths:
        own = path.rstrip("/").rpartition("/")[2]
        if re.search("[A-Za-z]{2}", own) and not is_log(own):
            grids.setdefault(_NUMBER_PATTERN.sub("\0", path), []).append(path)
    counted = (
        found
        for form, found in grids.items()
        if len(found) > 1 and not NO_SERIES_PATTERN.search(form.replace("\0", "#"))
    )
    return next(filter(None, map(_find_in_grid, counted)), "")


def _find_in_grid(paths: Sequence[str]) -> str:
    """The first path that is missing among these of one form. Only their numbers that differ are held."""
    first = _NUMBER_PATTERN.split(paths[0])
    values = [set[str]() for _ in first[1::2]]
    for path in paths:
        for one, number in zip(values, _NUMBER_PATTERN.split(path)[1::2], strict=True):
            one.add(number)
    places = [2 * at + 1 for at, one in enumerate(values) if len(one) > 1]
    axes = [sorted(one, key=int) for one in values if len(one) > 1]
    if (
        any(_SETTING_PATTERN.search(first[at - 1]) for at in places)
        or not MIN_FULL_SHARE <= len(paths) / prod(map(len, axes)) < 1
    ):
        return ""
    found = {tuple(map(_NUMBER_PATTERN.split(path).__getitem__, places)) for path in paths}
    inner = product(*(axis[:-1] for axis in axes))
    hole = next((numbers for numbers in inner if numbers not in found), ())
    for at, number in zip(places, hole, strict=bool(hole)):
        first[at] = number
    return "".join(first) if hole else ""


def _list_indices(
    path: str, places: dict[tuple[int, str], tuple[int, int]]
) -> Iterator[tuple[_Axis, str, int]]:
    """The indices in those names of a path that were not read yet: the axis, what stands beside the index,
    and the index.

    `places` numbers the folders by their parent and name, and their forms in the same way, whose parents
    count below 0. So the work grows with the names, and not with how deep they lie."""
    above, form = 0, 0
    for name in path.rstrip("/").split("/"):
        if known := places.get((above, name)):
            above, form = known
            continue
        counted = [*_PART_OF_PATTERN.finditer(name)]
        for one in counted or _RANK_PATTERN.finditer(name):
            beside = f"{name[: one.start()]}/{name[one.end() :]}"
            label = _LABEL_PATTERN.search(name[: one.start()]) if len(counted) > 1 else None
            count = int(one[2]) if counted else 0
            axis = _Axis(f"{form}/{name_form(beside)}", count, label[1] if label else "")
            yield axis, f"{above}/{beside}", int(one[1])
        number = len(places) + 1
        form, _ = places.setdefault((-1 - form, name_form(name)), (number, 0))
        places[above, name] = number, form
        above = number


def _find_gap(axis: _Axis, groups: Sequence[set[int]], elsewhere: set[int]) -> int | None:
    """The first index that is missing in a group and in the others of its axis. None if there is none.

    A count has to be whole in each group if it is in one of them, and over all of them if not. Where
    names have several axes, one stage alone may write some files: the index may be `elsewhere`, with
    the same label.
    """
    if not axis.promised:
        return _find_rank_gap(groups)
    gaps = [_first_missing(axis.promised, group) for group in groups]
    own = next((gap for gap in gaps if gap is not None), None)
    return own if None in gaps else _first_missing(axis.promised, elsewhere.union(*groups))


def _find_rank_gap(groups: Sequence[set[int]]) -> int | None:
    """The first rank between those of a group that is nowhere, or only in groups that hold all of its own.

    Ranks may be spread over groups that do not hold each other's. So a group is compared only with those
    that hold all that it holds, found by its rarest rank."""
    holders = dict[int, list[frozenset[int]]]()
    distinct = dict.fromkeys(map(frozenset, groups))
    for group in distinct:
        for rank in group:
            holders.setdefault(rank, []).append(group)
    nowhere = [rank + 1 for rank, after in pairwise(sorted(holders)) if after > rank + 1]
    lost_with = dict[
        frozenset[int], list[int]
    ]()  # by the wider groups: the ranks that only they hold
    for group in distinct:
        low, high = min(group), max(group)
        if len(group) == high - low + 1:
            continue
        wider = [one for one in min((holders[rank] for rank in group), key=len) if one > group]
        if (key := frozenset(map(id, wider))) not in lost_with:
            held = Counter(chain.from_iterable(wider))
            lost_with[key] = [rank for rank in held if held[rank] == len(holders[rank])]
        lost = [rank for rank in lost_with[key] if low < rank < high and rank not in group]
        lost += [rank for rank in nowhere[bisect(nowhere, low) :][:1] if rank < high]
        if lost:
            return min(lost)
    return None


def _first_missing(count: int, there: Collection[int]) -> int | None:
    """The first of so many indices that is missing. TensorFlow counts from 0, Hugging Face from 1.

    Whoever names a file chooses the count: the indices are counted up to the first gap, never listed."""
    first = 0 if 0 in there else 1
    return next((n for n in range(first, first + count) if n not in there), None)
