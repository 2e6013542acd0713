"""A number over time as SVG, with what is expected of it. Pure; drawn in the page's own colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from html import escape
from math import ceil, floor, isfinite, log10

from msgspec import Struct
from msgspec.structs import replace

Point = tuple[float, float]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 220, 74, 14, 12, 26
MOST = 400
"""Points of a line: more than there are pixels between them nobody sees."""

LEAST = 0.02
"""The share of a number that the height of a plot spans at least: noise is not drawn as a cliff."""


class Plot(Struct, frozen=True, kw_only=True):
    """`points` in seconds UTC; `limit` is a level to be seen; `ahead` are moments at which the
    level is expected to be reached: early, middle, late."""

    title: str
    points: Sequence[Point]
    now: float
    words: Callable[[float], str]
    zone: tzinfo
    limit: float | None = None
    ahead: tuple[float, float, float] | None = None
    floor: float | None = None


class _Scale:
    """Where a moment and a value stand."""

    def __init__(self, plot: Plot) -> None:
        first = min((p[0] for p in plot.points), default=plot.now - 1)
        span = plot.now - first
        last = (
            plot.now if plot.ahead is None else min(plot.ahead[2], plot.now + max(span, 43_200.0))
        )
        values = [p[1] for p in plot.points]
        values += [v for v in (plot.limit, plot.floor) if v is not None]
        self.ticks = ticks(min(values, default=0.0), max(values, default=1.0))
        self.low, self.high = self.ticks[0], self.ticks[-1]
        self.first, self.last = first, max(last, first + 1)

    def x(self, at: float) -> float:
        share = (at - self.first) / (self.last - self.first)
        return LEFT + max(0.0, min(1.0, share)) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - max(0.0, min(1.0, share)) * (HEIGHT - TOP - BOTTOM)


def svg(plot: Plot) -> str:
    """The picture; a sentence where there is too little to draw."""
    plot = replace(plot, points=[p for p in plot.points if isfinite(p[1])])
    if len(plot.points) < 2:
        return "<p>Too little history to draw yet.</p>"
    scale = _Scale(plot)
    points = thinned(plot.points)
    line = " ".join(f"{scale.x(t):.1f},{scale.y(v):.1f}" for t, v in points)
    first, last = plot.points[0][1], plot.points[-1][1]
    told = escape(f"{plot.title}: from {plot.words(first)} to {plot.words(last)}", quote=True)
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{told}">'
        f'{_axes(plot, scale)}{_future(plot, scale)}<polyline class="line" points="{line}"/></svg>'
    )


def ticks(low: float, high: float) -> list[float]:
    """Two to seven round numbers, the first not above the smallest and the last not below the
    largest; a constant lies between two of them, and what was never below zero stays above it."""
    least = max(max(abs(low), abs(high)) * LEAST, 1e-300) if low or high else 1.0
    if high - low < least:
        middle, positive = (low + high) / 2, low >= 0
        low, high = middle - least / 2, middle + least / 2
        low = max(low, 0.0) if positive else low
    rough = (high - low) / 4
    power = 10.0 ** floor(log10(rough))
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [n * step for n in range(first, last + 1)]


def thinned(points: Sequence[Point]) -> list[Point]:
    """At most about MOST points; the smallest and the largest of each piece stay, and the last."""
    step = len(points) // (MOST // 2)
    if step <= 1:
        return list(points)
    kept: list[Point] = []
    for start in range(0, len(points), step):
        piece = points[start : start + step]
        ends = {min(piece, key=lambda p: p[1]), max(piece, key=lambda p: p[1])}
        kept += sorted(ends)
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]


def _axes(plot: Plot, scale: _Scale) -> str:
    low, high = HEIGHT - BOTTOM, TOP
    lines = f'<path class="axis" d="M{LEFT} {high}V{low}H{WIDTH - RIGHT}" fill="none"/>'
    for value in scale.ticks:
        text = escape(plot.words(value))
        lines += (
            f'<text x="{LEFT - 6}" y="{scale.y(value) + 4:.1f}" text-anchor="end">{text}</text>'
        )
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        at = scale.first + share * (scale.last - scale.first)
        lines += (
            f'<text x="{scale.x(at):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">'
            f"{_clock(at, plot, scale)}</text>"
        )
    return lines


def _future(plot: Plot, scale: _Scale) -> str:
    """A wedge from now to when it may be full, and its middle."""
    if plot.ahead is None or plot.limit is None:
        return ""
    x, y, goal = scale.x(plot.now), scale.y(plot.points[-1][1]), plot.limit
    early, middle, late = (_reached(plot, scale, moment, goal) for moment in plot.ahead)
    end = f"{scale.x(scale.last):.1f}"
    band = f"{x:.1f},{y:.1f} {early} {end},{scale.y(goal):.1f} {late}"
    return (
        f'<polygon class="band" points="{band}"/>'
        f'<polyline class="mid" points="{x:.1f},{y:.1f} {middle}"/>'
    )


def _reached(plot: Plot, scale: _Scale, moment: float, goal: float) -> str:
    """Where the straight way to that level leaves the picture."""
    value = plot.points[-1][1]
    if moment <= scale.last or moment <= plot.now:
        return f"{scale.x(moment):.1f},{scale.y(goal):.1f}"
    share = (scale.last - plot.now) / (moment - plot.now)
    return f"{scale.x(scale.last):.1f},{scale.y(value + share * (goal - value)):.1f}"


def _clock(at: float, plot: Plot, scale: _Scale) -> str:
    form = "%H:%M" if scale.last - scale.first < 86_400 else "%d %b %H:%M"
    return datetime.fromtimestamp(at, plot.zone).strftime(form)
