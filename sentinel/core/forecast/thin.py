"""Thins out a series: fewer points with the same shape."""

from __future__ import annotations

from collections.abc import Sequence

Point = tuple[float, float]
"""Seconds and a value, the oldest first."""


def keep_last_per_bucket(points: Sequence[Point], seconds: float) -> list[Point]:
    """The last point of every span of `seconds` seconds."""
    kept: dict[int, Point] = {}
    for point in points:
        kept[int(point[0] // seconds)] = point
    return list(kept.values())


def interpolate_hourly(points: Sequence[Point], now: float, hours: int) -> list[float]:
    """The value at the end of each of the last `hours` hours, the oldest first.

    Values between two points are interpolated. If the history is shorter, so is the list."""
    if not points:
        return []
    first = max(0, int((now - points[0][0]) // 3600))
    wanted = [now - 3600 * back for back in range(min(hours, first), -1, -1)]
    values, at = list[float](), 0
    for moment in wanted:
        while at + 1 < len(points) and points[at + 1][0] <= moment:
            at += 1
        values.append(_interpolate_point(points, at, moment))
    return values


def _interpolate_point(points: Sequence[Point], at: int, moment: float) -> float:
    before = points[at]
    if moment <= before[0] or at + 1 == len(points):
        return before[1]
    after = points[at + 1]
    share = (moment - before[0]) / (after[0] - before[0])
    return before[1] + share * (after[1] - before[1])
