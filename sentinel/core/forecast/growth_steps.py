"""Recognizes checkpoints by the growth of a level: jumps of similar size at a similar pace."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msgspec import Struct

from sentinel.core.forecast.thin import Point, keep_last_per_bucket

STEP_SPAN_S = 10 * 60.0
"""A rise within this many seconds is one jump: a checkpoint takes time, and counters are coarse."""

MIN_STEPS = 3
TALL_JUMP_SHARE = 0.4
"""A jump of at least this share of the tallest one counts as a checkpoint too."""
MAX_DEVIATION_SHARE = 0.3
"""Sizes (or gaps) are alike if the median distance from their median is at most this share of
it."""


class GrowthSteps(Struct, frozen=True, kw_only=True):
    """The size of a step in bytes, and the seconds from one step to the next."""

    size: float  # Bytes of one step.
    every: float  # Seconds from one step to the next.


def find_growth_steps(points: Sequence[Point]) -> GrowthSteps | None:
    """The steps in which a level rises again and again; None if there are none.

    At least three jumps are needed, alike in size and in the time between them, and together at
    least half of all growth."""
    jumps = _find_jumps(keep_last_per_bucket(points, STEP_SPAN_S))
    grown = sum(size for _, size in jumps)
    tall = [j for j in jumps if j[1] >= TALL_JUMP_SHARE * max((s for _, s in jumps), default=0.0)]
    if len(tall) < MIN_STEPS or sum(size for _, size in tall) < 0.5 * grown:
        return None
    gaps = [b[0] - a[0] for a, b in itertools.pairwise(tall)]
    sizes = [size for _, size in tall]
    if not (_are_alike(sizes) and _are_alike(gaps)):
        return None
    size, every = upper_median(sizes), upper_median(gaps)
    # Jumps without a pause between them are steady growth. It only looks like steps because of the
    # buckets.
    return GrowthSteps(size=size, every=every) if every > 1.9 * STEP_SPAN_S else None


def upper_median(numbers: Sequence[float]) -> float:
    """The number in the middle. If the count is even, the upper of the two."""
    return sorted(numbers)[len(numbers) // 2]


def _find_jumps(points: Sequence[Point]) -> list[Point]:
    """Time and size of each rise. Rises in neighbouring buckets are joined to one."""
    found = list[Point]()
    rising = False
    for before, after in itertools.pairwise(points):
        rise = after[1] - before[1]
        if rise > 0 and rising:
            found[-1] = (found[-1][0], found[-1][1] + rise)
        elif rise > 0:
            found.append((after[0], rise))
        rising = rise > 0
    return found


def _are_alike(numbers: Sequence[float]) -> bool:
    middle = upper_median(numbers)
    return upper_median([abs(n - middle) for n in numbers]) <= MAX_DEVIATION_SHARE * middle
