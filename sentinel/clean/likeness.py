"""Shows that an older step is like the newer ones of its series, so that retention may take it. Pure,
standard library only.

What is not shown stays: a name that says more than those of the newest, files that they do not have, files that
somebody protected, and a small step that may be the difference to a large one before it. No list of words
decides this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import heappush, heappushpop
from typing import NamedTuple

from sentinel.clean.replacing import MAX_UNLIKE, WHOLE_SHARE, StepContent, replaces
from sentinel.clean.rules import TWO

_NUMBER_PATTERN = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE)


class ComparedStep(NamedTuple):
    """What is compared of a step."""

    names: tuple[str, ...]  # of its entries
    number: int | None
    written: float  # when its last file was written (seconds UTC)
    content: StepContent
    is_whole: bool  # it counts as complete
    is_unfinished: bool  # its name says that the save was not ended
    is_locked: bool  # a file in it may not be written
    is_based: bool  # a description in it names what it goes on from


def explain_unlike(steps: Sequence[ComparedStep], count: int) -> list[str]:
    """For each step, the oldest first, why it is not shown to be like the `count` newest ones of its series;
    empty if it is."""
    # The positions of the whole steps that have an entry of the form.
    series = dict[str, list[int]]()
    for at, step in enumerate(steps):
        if step.is_whole:
            for name in step.content.names:
                series.setdefault(name, []).append(at)
    newest = [step for step in steps if step.is_whole][-count:]
    small = _find_differences(steps)
    return [
        (step.is_locked and not any(one.is_locked for one in newest) and "is protected against writing")
        or ("" if step.is_unfinished else _explain_series(at, steps, series, newest, count))
        or (small[at] and "may be the difference to a larger one before it")
        or ""
        for at, step in enumerate(steps)
    ]  # fmt: skip


def _explain_series(
    at: int,
    steps: Sequence[ComparedStep],
    series: dict[str, list[int]],
    newest: Sequence[ComparedStep],
    count: int,
) -> str:
    step = steps[at]
    if any(_says_more(step, one) for one in newest):
        return "its name says more than those of the newest"
    own = max((series.get(name, []) for name in step.content.names), key=len, default=[])
    last = own[-count:]
    if sum(replaces(steps[one].content, step.content, is_stub=not step.is_whole) for one in last) >= TWO:  # fmt: skip
        return ""
    after = [one for one in own if one > at][:TWO]
    numbers = [step.number, *(steps[one].number for one in after)]
    usual = max(_list_gaps([steps[one].number for one in own[-count - 1 :]]), default=0)
    regular = all(0 < gap <= usual for gap in _list_gaps(numbers)) and all(
        step.written <= steps[one].written for one in last
    )
    if regular and all(replaces(steps[one].content, step.content) for one in after):
        return ""  # all were so until then: the newest are cut, or another version writes them
    return "holds what the newest do not hold"


def _list_gaps(numbers: Sequence[int | None]) -> list[int]:
    """How much each number is above the one before it; 0 if a step has none."""
    return [new - old if new is not None and old is not None else 0 for old, new in zip(numbers, numbers[1:])]  # noqa: B905, RUF007  # fmt: skip


def _says_more(step: ComparedStep, newer: ComparedStep) -> bool:
    """Whether a name has all words of a name of the newer step and others, and the newer step has no such
    name: `100_keep` beside `100`, `model_100-merged.pt` beside `model_100.pt`."""
    if step.content.names <= newer.content.names:
        return False
    theirs = {_find_words(name) for name in newer.names}
    mine = {_find_words(name) for name in step.names} - theirs
    return any(words < more for more in mine for words in theirs)


def _find_words(name: str) -> frozenset[str]:
    """The words of a name, and one for each of its numbers."""
    text, numbers = _NUMBER_PATTERN.subn(" ", name.lower())
    return frozenset([*re.findall("[a-z]+", text), *map(str, range(numbers))])


def _find_differences(steps: Sequence[ComparedStep]) -> list[bool]:
    """For each step, the oldest first: whether it may hold only what changed since a larger one before it, or
    need it in another way. It names no base, none of the larger ones before it holds the same files, and
    fewer than two as large ones are newer."""
    largest = dict[frozenset[str], StepContent]()  # of those before, by their forms
    needed = list[float]()
    for step in steps:
        larger = [one for one in largest.values() if one.size * WHOLE_SHARE > step.content.size]
        whole = step.is_based or any(replaces(one, step.content) for one in larger)
        needed.append(0.0 if whole else max((one.size for one in larger), default=0) * WHOLE_SHARE)
        key = frozenset(step.content.forms)
        known = largest.get(key)
        if step.is_whole and (
            known.size < step.content.size if known else len(largest) < MAX_UNLIKE
        ):
            largest[key] = step.content
    found, sizes = list[bool](), list[int]()  # the sizes of the largest newer ones
    for step, least in zip(reversed(steps), reversed(needed), strict=True):
        found.append(bool(least) and (len(sizes) < TWO or sizes[0] < least))
        if step.is_whole:
            (heappushpop if len(sizes) >= TWO else heappush)(sizes, step.content.size)
    return found[::-1]
