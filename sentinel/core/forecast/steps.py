"""Checkpoints seen from outside: jumps of much the same size at much the same pace."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msgspec import Struct

from sentinel.core.forecast.thin import Point, bucketed

SPAN = 10 * 60.0
"""Seconds within which a checkpoint is written, or looks as if: counters are that coarse."""

ENOUGH = 3
TALL = 0.4
"""Share of the tallest jump that counts as one of the same kind."""
ALIKE = 0.3
"""How far sizes and gaps may lie from their median, by the median of the distances."""


class Steps(Struct, frozen=True, kw_only=True):
    """A size in bytes and the seconds from one to the next."""

    size: float
    every: float


def steps(points: Sequence[Point]) -> Steps | None:
    """What is written again and again in the history of a level that rises; None where nothing
    is. Three are needed, as alike as checkpoints are, and more than half of all growth."""
    jumps = _jumps(bucketed(points, SPAN))
    grown = sum(size for _, size in jumps)
    tall = [j for j in jumps if j[1] >= TALL * max((s for _, s in jumps), default=0.0)]
    if len(tall) < ENOUGH or sum(size for _, size in tall) < 0.5 * grown:
        return None
    gaps = [b[0] - a[0] for a, b in itertools.pairwise(tall)]
    sizes = [size for _, size in tall]
    if not (_alike(sizes) and _alike(gaps)):
        return None
    size, every = median(sizes), median(gaps)
    # One after the other without a pause between is steady growth cut into pieces.
    return Steps(size=size, every=every) if every > 1.9 * SPAN else None


def median(numbers: Sequence[float]) -> float:
    """The middle one; of an even count the upper of the two."""
    return sorted(numbers)[len(numbers) // 2]


def _jumps(points: Sequence[Point]) -> list[Point]:
    """Rises, those of neighbouring spans as one."""
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


def _alike(numbers: Sequence[float]) -> bool:
    middle = median(numbers)
    return median([abs(n - middle) for n in numbers]) <= ALIKE * middle
