"""Forecasts when a level reaches its limit: an interval from its history, clean-ups included.

A block bootstrap (Künsch, Annals of Statistics 17(3), 1989): futures are put together from pieces
of the past, so that checkpoints, pauses, nightly purges and their order within a piece are in them
without being modelled. Half of the futures are made of the last day and a half ("it goes on like
this"), half of the last two weeks ("as usual"). The same history gives the same answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msgspec import Struct

from sentinel.core.forecast.growth_steps import GrowthSteps, find_growth_steps
from sentinel.core.forecast.thin import Point, interpolate_hourly

HISTORY_HOURS = 14 * 24
RECENT_HOURS = 36
BLOCK_HOURS = 12
"""Hours of all history, of the recent history (half of the futures are made of it), and of one
piece."""

FUTURE_COUNT = 64
HORIZON_HOURS = 60 * 24
"""How many hours of the future are simulated."""

GREAT_DROP_SHARE = 0.15
"""A drop within an hour counts as a clean-up if it is more than this share of the range of the
level in two weeks."""

LOW, HIGH = 0.1, 0.9
MIN_HISTORY_HOURS = 3
"""With only this many hours of history, there is no forecast."""


class Forecast(Struct, frozen=True, kw_only=True):
    """Seconds until it is full: in the middle, early and late. One future in ten is earlier, and
    one in ten is later. None: not within two months. `rate`: bytes per second in the last day."""

    full_in: float | None  # It is full by then in half of the simulations.
    early: float | None  # One simulation in ten is full earlier.
    late: float | None  # One simulation in ten is full later.
    rate: float
    steps: GrowthSteps | None = None  # The steps in which usage grows, if it grows in steps.

    def shift_by(self, seconds: float) -> Forecast:
        """The same forecast as seen `seconds` later."""
        moved = [None if t is None else max(0.0, t - seconds) for t in self._get_times()]
        return Forecast(
            full_in=moved[0], early=moved[1], late=moved[2], rate=self.rate, steps=self.steps
        )

    def _get_times(self) -> tuple[float | None, float | None, float | None]:
        return self.full_in, self.early, self.late


def make_forecast(points: Sequence[Point], room: float, now: float) -> Forecast | None:
    """Forecast when a level (in any unit) rises by `room` more; None if the history is too
    short."""
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
        """The next number, from 0 up to but not including `limit`."""
        self._state = self._state * 48271 % 2147483647
        return self._state % limit


def _drop_single_clean_up(changes: Sequence[float], spread: float) -> Sequence[float]:
    """The changes, with a single great clean-up among them set to 0: one clean-up is no habit."""
    great = [number for number, change in enumerate(changes) if change < -GREAT_DROP_SHARE * spread]
    if len(great) != 1:
        return changes
    return [0.0 if number in great else change for number, change in enumerate(changes)]


def _simulate_until_full(
    changes: Sequence[float], room: float, least: float, dice: RandomSequence
) -> float:
    """Hours until one simulated future is full; infinite if it is not full within the horizon.

    The level never falls below `least`: nobody cleans up more than was cleaned up before."""
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
