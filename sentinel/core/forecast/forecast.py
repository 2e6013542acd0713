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

from sentinel.core.forecast.steps import Steps, steps
from sentinel.core.forecast.thin import Point, hourly

HOURS = 14 * 24
RECENT = 36
BLOCK = 12
"""Hours: of history, of it that counts double, of one piece."""

PATHS = 64
HORIZON = 60 * 24
"""Hours looked ahead."""

GREAT = 0.15
"""Share of all the ups and downs of two weeks from which a drop within an hour is a clean-up."""

LOW, HIGH = 0.1, 0.9
LEAST = 3
"""Hours of history below which nothing is said."""


class Forecast(Struct, frozen=True, kw_only=True):
    """Seconds until it is full: in the middle, early and late (one future in ten is beyond
    either). None: not within two months. `rate`: bytes a second of late."""

    full_in: float | None
    early: float | None
    late: float | None
    rate: float
    steps: Steps | None = None

    def later(self, seconds: float) -> Forecast:
        """The same forecast, told so much later."""
        moved = [None if t is None else max(0.0, t - seconds) for t in self._times()]
        return Forecast(
            full_in=moved[0], early=moved[1], late=moved[2], rate=self.rate, steps=self.steps
        )

    def _times(self) -> tuple[float | None, float | None, float | None]:
        return self.full_in, self.early, self.late


def forecast(points: Sequence[Point], room: float, now: float) -> Forecast | None:
    """Of a level (any unit) with so much room left above it; None while the history is too
    short to say anything."""
    levels = hourly(points, now, HOURS)
    if len(levels) <= LEAST:
        return None
    changes = [after - before for before, after in itertools.pairwise(levels)]
    dice, least = Dice(len(changes)), min(levels) - levels[-1]
    pasts = [_lately(changes[-RECENT:], max(levels) - min(levels)), changes] * (PATHS // 2)
    ends = sorted(_full_after(past, room, least, dice) for past in pasts)
    day = changes[-24:]
    return Forecast(
        full_in=_quantile(ends, 0.5),
        early=_quantile(ends, LOW),
        late=_quantile(ends, HIGH),
        rate=sum(day) / len(day) / 3600,
        steps=steps([p for p in points if p[0] > now - 3 * 86_400]),
    )


class Dice:
    """A fixed sequence of numbers: the minimal standard generator (Park and Miller, 1988)."""

    def __init__(self, seed: int) -> None:
        self._state = seed * 7919 % 2147483647 or 1

    def below(self, limit: int) -> int:
        """From 0 up to, not including, the limit."""
        self._state = self._state * 48271 % 2147483647
        return self._state % limit


def _lately(changes: Sequence[float], spread: float) -> Sequence[float]:
    """The last hours as they may go on: a single great clean-up among them is no habit."""
    great = [number for number, change in enumerate(changes) if change < -GREAT * spread]
    if len(great) != 1:
        return changes
    return [0.0 if number in great else change for number, change in enumerate(changes)]


def _full_after(changes: Sequence[float], room: float, least: float, dice: Dice) -> float:
    """Hours until one future is full; infinite where it is not within the horizon. Nobody cleans
    up more than was cleaned up before: the level stays above `least`."""
    block = min(BLOCK, len(changes))
    starts, level, hour = len(changes) - block + 1, 0.0, 0
    while hour < HORIZON:
        start = dice.below(starts)
        for change in changes[start : start + block]:
            if level + change >= room:
                return hour + (room - level) / change if change > 0 else float(hour)
            level = max(level + change, least)
            hour += 1
    return float("inf")


def _quantile(hours: Sequence[float], share: float) -> float | None:
    found = hours[min(len(hours) - 1, int(share * len(hours)))]
    return None if found == float("inf") else found * 3600
