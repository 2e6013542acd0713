"""When a level reaches its limit: an interval from what it did before, clean-ups included.

A block bootstrap (Künsch, Annals of Statistics 17(3), 1989): futures are put together from pieces
of the past, so that checkpoints, pauses, nightly purges and their order within a piece are in
them without being modelled. Half of the futures are made of the last day and a half ("it goes on
like this"), half of the last two weeks ("as usual"). The same history gives the same answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msgspec import Struct

from sentinel.core.forecast.thin import Point, interpolate_hourly, keep_last_per_bucket

HISTORY_HOURS = 14 * 24
RECENT_HOURS = 36
BLOCK_HOURS = 12
"""Hours: of history, of it that counts double, of one piece."""

FUTURE_COUNT = 64
HORIZON_HOURS = 60 * 24
"""Hours looked ahead."""

GREAT_DROP_SHARE = 0.15
"""Share of all the ups and downs of two weeks from which a drop within an hour is a clean-up."""

LOW, HIGH = 0.1, 0.9
MIN_HISTORY_HOURS = 3
"""Hours of history below which nothing is said."""


class Forecast(Struct, frozen=True, kw_only=True):
    """Seconds until it is full: in the middle, early and late (one future in ten is beyond
    either). None: not within two months. `rate`: bytes a second of late."""

    full_in: float | None
    early: float | None
    late: float | None
    rate: float
    steps: GrowthSteps | None = None

    def shift_by(self, seconds: float) -> Forecast:
        """The same forecast, told so much later."""
        moved = [None if t is None else max(0.0, t - seconds) for t in self._get_times()]
        return Forecast(
            full_in=moved[0], early=moved[1], late=moved[2], rate=self.rate, steps=self.steps
        )

    def _get_times(self) -> tuple[float | None, float | None, float | None]:
        return self.full_in, self.early, self.late


def make_forecast(points: Sequence[Point], room: float, now: float) -> Forecast | None:
    """Of a level (any unit) with so much room left above it; None while the history is too
    short to say anything."""
    levels = interpolate_hourly(points, now, HISTORY_HOURS)
    if len(levels) <= MIN_HISTORY_HOURS:
        return None
    changes = [after - before for before, after in itertools.pairwise(levels)]
    dice, least = RandomSequence(len(changes)), min(levels) - levels[-1]
    pasts = [_drop_single_clean_up(changes[-RECENT_HOURS:], max(levels) - min(levels)), changes] * (
        FUTURE_COUNT // 2
    )
    ends = sorted(_simulate_until_full(past, room, least, dice) for past in pasts)
    day = changes[-24:]
    return Forecast(
        full_in=_pick_quantile(ends, 0.5),
        early=_pick_quantile(ends, LOW),
        late=_pick_quantile(ends, HIGH),
        rate=sum(day) / len(day) / 3600,
        steps=find_growth_steps([p for p in points if p[0] > now - 3 * 86_400]),
    )


class RandomSequence:
    """A fixed sequence of numbers: the minimal standard generator (Park and Miller, 1988)."""

    def __init__(self, seed: int) -> None:
        self._state = seed * 7919 % 2147483647 or 1

    def draw_below(self, limit: int) -> int:
        """From 0 up to, not including, the limit."""
        self._state = self._state * 48271 % 2147483647
        return self._state % limit


def _drop_single_clean_up(changes: Sequence[float], spread: float) -> Sequence[float]:
    """The last hours as they may go on: a single great clean-up among them is no habit."""
    great = [number for number, change in enumerate(changes) if change < -GREAT_DROP_SHARE * spread]
    if len(great) != 1:
        return changes
    return [0.0 if number in great else change for number, change in enumerate(changes)]


def _simulate_until_full(
    changes: Sequence[float], room: float, least: float, dice: RandomSequence
) -> float:
    """Hours until one future is full; infinite where it is not within the horizon. Nobody cleans
    up more than was cleaned up before: the level stays above `least`."""
    block = min(BLOCK_HOURS, len(changes))
    starts, level, hour = len(changes) - block + 1, 0.0, 0
    while hour < HORIZON_HOURS:
        start = dice.draw_below(starts)
        for change in changes[start : start + block]:
            if level + change >= room:
                return hour + (room - level) / change if change > 0 else float(hour)
            level = max(level + change, least)
            hour += 1
    return float("inf")


def _pick_quantile(hours: Sequence[float], share: float) -> float | None:
    found = hours[min(len(hours) - 1, int(share * len(hours)))]
    return None if found == float("inf") else found * 3600


# Checkpoints seen from outside: jumps of much the same size at much the same pace.


STEP_SPAN_S = 10 * 60.0
"""Seconds within which a checkpoint is written, or looks as if: counters are that coarse."""

MIN_STEPS = 3
TALL_JUMP_SHARE = 0.4
"""Share of the tallest jump that counts as one of the same kind."""
MAX_DEVIATION_SHARE = 0.3
"""How far sizes and gaps may lie from their median, by the median of the distances."""


class GrowthSteps(Struct, frozen=True, kw_only=True):
    """A size in bytes and the seconds from one to the next."""

    size: float
    every: float


def find_growth_steps(points: Sequence[Point]) -> GrowthSteps | None:
    """What is written again and again in the history of a level that rises; None where nothing
    is. Three are needed, as alike as checkpoints are, and more than half of all growth."""
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
    # One after the other without a pause between is steady growth cut into pieces.
    return GrowthSteps(size=size, every=every) if every > 1.9 * STEP_SPAN_S else None


def upper_median(numbers: Sequence[float]) -> float:
    """The middle one; of an even count the upper of the two."""
    return sorted(numbers)[len(numbers) // 2]


def _find_jumps(points: Sequence[Point]) -> list[Point]:
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


def _are_alike(numbers: Sequence[float]) -> bool:
    middle = upper_median(numbers)
    return upper_median([abs(n - middle) for n in numbers]) <= MAX_DEVIATION_SHARE * middle
