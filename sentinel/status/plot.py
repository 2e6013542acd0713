"""Numbers over one shared time axis as SVG: lines below each other, and what happened. Pure.

The page is complete with it; where a browser runs scripts, static/course.js draws the same
(`export_chart`) with values under pointer and keyboard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from html import escape
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from typing import Any, Literal

from msgspec import Struct

from sentinel.core.values import duration_text, format_percent, size_text

Point = tuple[float, float]
Unit = Literal["number", "bytes", "percent", "seconds"]
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 920, 84, 20, 22, 24
HIGH, APART = 132, 30
"""Pixels of one line's panel, and between two of them."""

MAX_LINE_POINTS = 400
"""Points of a line: more than there are pixels between them nobody sees."""

MAX_MARKS = 300
"""How many of the newest events are marked. Checkpoints are counted separately."""

MAX_DRAWN_VALUE = 1e300
"""Beyond it an axis has no round numbers."""

MIN_AXIS_SHARE = 0.02
"""The share of a number that the height of a plot spans at least: noise is not drawn as a cliff."""

MIN_GAP_S = 600.0
"""Seconds without a number, and three times as long as beside it: the line is parted there, for
nobody knows how it went."""


FILE_STYLE_SHEET = """
.axis{stroke:#c9d0d8;stroke-width:1}text{fill:#5b6670;font-size:18px}.head{font-weight:600;fill:#1b1f24}
.line{stroke:#175cd3;stroke-width:2;fill:none}.dot{fill:#175cd3}.band{fill:#d1e0ff;opacity:.5}
.mid{stroke:#175cd3;stroke-width:2;stroke-dasharray:6 5;fill:none}
.mark{stroke:#b25e02;stroke-width:1.5;fill:none}.span{fill:#b25e02;opacity:.14}
.mark.m-hang,.mark.m-loss{stroke:#b42318}.span.m-hang,.span.m-loss{fill:#b42318}
.mark.m-restart{stroke:#6941c6}.mark.m-checkpoint{stroke:#067647}.mark.m-ack,.mark.m-action{stroke:#175cd3}
.now{stroke:#5b6670;stroke-dasharray:4 4;fill:none}path.limit{stroke:#b25e02;stroke-dasharray:6 5;fill:none}
"""
"""The page's colours by daylight, for files: mails and viewers of pictures know no variables."""


class ChartLine(Struct, frozen=True, kw_only=True):
    """`parts`: what is drawn, in seconds UTC (see `split_points`); `limits` are levels with their names; `ahead` are the moments at
    which the level `goal` is expected to be reached: early, middle, late (infinite: perhaps never)."""

    name: str
    title: str
    unit: Unit = "number"
    parts: Sequence[Sequence[Point]] = ()
    limits: Sequence[tuple[str, float]] = ()
    ahead: tuple[float, float, float] | None = None
    goal: float = 100.0

    @property
    def all_points(self) -> list[Point]:
        """All that is drawn."""
        return [point for part in self.parts for point in part]


class ChartMark(Struct, frozen=True, kw_only=True):
    """What happened at a moment, or `until` another; `kind` is a word, and names its colour."""

    at: float
    kind: str
    text: str
    until: float | None = None
    href: str = ""


class Chart(Struct, frozen=True, kw_only=True):
    """The history of a subject, from `first` to `now`. `at` is the requested moment."""

    title: str
    first: float
    now: float
    zone: tzinfo
    lines: Sequence[ChartLine] = ()
    marks: Sequence[ChartMark] = ()
    at: float | None = None

    @property
    def last(self) -> float:
        """Where the axis ends: later than now where a forecast is drawn, at most as far as back."""
        ends = [line.ahead[2] for line in self.lines if line.ahead]
        span = max(self.now - self.first, 43_200.0)
        return max(min(max(ends, default=self.now), self.now + span), self.first + 1)

    @property
    def drawn(self) -> list[ChartLine]:
        """The lines of which there is enough to draw."""
        return [line for line in self.lines if len(line.all_points) > 1]


def render_svg_file(course: Chart, font: str = "sans-serif") -> str:
    """The picture as a file of its own, with its colours; `course.drawn` must not be empty."""
    start, rest = render_svg(course).split(">", 1)
    white = '<rect width="100%" height="100%" fill="#ffffff"/>'
    space = f' xmlns="http://www.w3.org/2000/svg" font-family="{font}"'
    return f"{start}{space}><style>{FILE_STYLE_SHEET}</style>{white}{rest}\n"


def render_svg(course: Chart) -> str:
    """The picture; a sentence where there is too little to draw."""
    lines = course.drawn
    if not lines:
        return "<p>Too little history to draw yet.</p>"
    height = TOP + len(lines) * (HIGH + APART) + BOTTOM
    panels = [_render_panel(course, line, n) for n, line in enumerate(lines)]
    told = "; ".join(_describe_line(line) for line in lines)
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(course.title)}: {escape(told)}">'
        f"{_render_marks(course, height)}{''.join(panels)}{_render_clock_labels(course, height)}</svg>"
    )


def export_chart(course: Chart) -> dict[str, Any]:
    """The chart as plain data, with times in seconds UTC. None separates parts of a line."""
    return {
        "title": course.title,
        "first": course.first,
        "last": course.last,
        "now": course.now,
        "at": course.at,
        "zone": str(course.zone),
        "lines": [_export_line(line) for line in course.drawn],
        "marks": [_export_mark(mark) for mark in course.marks],
    }


def format_value(unit: Unit, value: float) -> str:
    """A number as people read it."""
    if unit == "bytes":
        return size_text(value)
    if unit == "seconds":
        return duration_text(value)
    if unit == "percent":
        return format_percent(value)
    whole = abs(value) >= 1000 or (value == int(value) and abs(value) < 1e15)
    return f"{value:,.0f}" if whole and abs(value) < 1e15 else f"{value:.4g}"


def choose_ticks(low: float, high: float) -> list[float]:
    """Two to seven round numbers, the first not above the smallest and the last not below the
    largest; a constant lies between two of them, and what was never below zero stays above it."""
    least = max(max(abs(low), abs(high)) * MIN_AXIS_SHARE, 1e-300) if low or high else 1.0
    if high - low < least:
        middle, positive = (low + high) / 2, low >= 0
        low, high = middle - least / 2, middle + least / 2
        low = max(low, 0.0) if positive else low
    rough = (high - low) / 4
    power = 10.0 ** floor(log10(rough))
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [n * step for n in range(first, last + 1)]


def split_points(points: Sequence[Point]) -> list[list[Point]]:
    """The points of a history that are drawn: only finite numbers. Lines have a gap if there was no
    observation."""
    fit = [p for p in points if isfinite(p[1]) and abs(p[1]) < MAX_DRAWN_VALUE]
    parts = _split_at_gaps(fit)
    return [thin_points(part, MAX_LINE_POINTS * len(part) // len(fit)) for part in parts if part]


def thin_points(points: Sequence[Point], most: int = MAX_LINE_POINTS) -> list[Point]:
    """At most about this many points. The smallest and the largest of each section are kept, and
    the first and the last."""
    step = len(points) // max(1, most // 2)
    if step <= 1:
        return list(points)
    kept = {points[0], points[-1]}
    for start in range(0, len(points), step):
        stretch = points[start : start + step]
        kept |= {min(stretch, key=lambda p: p[1]), max(stretch, key=lambda p: p[1])}
    return sorted(kept)


def _split_at_gaps(points: Sequence[Point]) -> list[Sequence[Point]]:
    gaps = [b[0] - a[0] for a, b in pairwise(points)]
    ends = [
        n + 1
        for n, gap in enumerate(gaps)
        if gap
        > max(MIN_GAP_S, 3 * max([*gaps[max(0, n - 1) : n], *gaps[n + 1 : n + 2]], default=gap))
    ]
    return [points[a:b] for a, b in pairwise([0, *ends[-MAX_LINE_POINTS // 8 :], len(points)])]


def get_x(course: Chart, at: float) -> float:
    """The horizontal position of a moment."""
    share = (at - course.first) / (course.last - course.first)
    return LEFT + max(0.0, min(1.0, share)) * (WIDTH - LEFT - RIGHT)


def _make_scale(line: ChartLine) -> tuple[list[float], Callable[[float], float]]:
    """The numbers of the axis, and how far down from the panel's top a value stands."""
    values = [value for _, value in line.all_points] + [level for _, level in line.limits]
    values += [line.goal] if line.ahead else []
    if line.unit == "percent" and min(values) >= 0:
        values = [min(v, 100.0) for v in values]
    numbers = choose_ticks(min(values), max(values))
    low, high = numbers[0], numbers[-1]

    def value_to_y(value: float) -> float:
        return HIGH * (1 - max(0.0, min(1.0, (value - low) / (high - low))))

    return numbers, value_to_y


def _render_panel(course: Chart, line: ChartLine, place: int) -> str:
    numbers, y = _make_scale(line)
    top, end = TOP + place * (HIGH + APART) + APART - 8, WIDTH - RIGHT
    drawn = f'<text class="head" x="{LEFT}" y="-8">{escape(line.title)}</text>'
    drawn += f'<path class="axis" d="M{LEFT} 0V{HIGH}H{end}" fill="none"/>'
    for value in numbers if len(numbers) < 6 else numbers[::2]:
        text = escape(format_value(line.unit, value))
        drawn += f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{text}</text>'
    for name, level in line.limits:
        drawn += (
            f'<path class="limit" d="M{LEFT} {y(level):.1f}H{end}"/>'
            f'<text class="limit" x="{LEFT + 4}" y="{y(level) - 3:.1f}">{escape(name)}</text>'
        )
    drawn += _render_forecast(course, line, y)
    for piece in line.parts:
        if len(piece) == 1:
            at, value = piece[0]
            drawn += f'<circle class="dot" cx="{get_x(course, at):.1f}" cy="{y(value):.1f}" r="2"/>'
            continue
        points = " ".join(f"{get_x(course, t):.1f},{y(v):.1f}" for t, v in piece)
        drawn += f'<polyline class="line" points="{points}"/>'
    return f'<g transform="translate(0 {top})">{drawn}</g>'


def _describe_line(line: ChartLine) -> str:
    first, last = line.all_points[0][1], line.all_points[-1][1]
    return f"{line.title} from {format_value(line.unit, first)} to {format_value(line.unit, last)}"


def _render_marks(course: Chart, height: int) -> str:
    """Marks behind the lines, across all panels. Marks of checkpoints are short, because there are
    many."""
    low, drawn = height - BOTTOM, ""
    for mark in course.marks:
        x, kind = get_x(course, mark.at), escape(mark.kind)
        title = f"<title>{escape(mark.text)}</title>"
        if mark.until is not None:
            wide = max(1.5, get_x(course, mark.until) - x)
            drawn += (
                f'<rect class="span m-{kind}" x="{x:.1f}" y="{TOP}" width="{wide:.1f}" '
                f'height="{low - TOP}">{title}</rect>'
            )
        top = low - 8 if mark.kind == "checkpoint" else TOP - 8
        drawn += f'<path class="mark m-{kind}" d="M{x:.1f} {top}V{low}">{title}</path>'
    for name, at in (("now", course.now), ("asked for", course.at)):
        if at is not None and (name != "now" or course.last > course.now + 1):
            x = get_x(course, at)
            drawn += (
                f'<path class="now" d="M{x:.1f} {TOP - 6}V{low}"/>'
                f'<text x="{x:.1f}" y="{TOP - 10}" text-anchor="middle">{name}</text>'
            )
    return drawn


def _render_clock_labels(course: Chart, height: int) -> str:
    span, texts = course.last - course.first, ""
    form = "%H:%M:%S" if span < 600 else "%H:%M" if span < 86_400 else "%d %b %H:%M"
    for share, anchor in (
        (0.0, "start"),
        (0.25, "middle"),
        (0.5, "middle"),
        (0.75, "middle"),
        (1.0, "end"),
    ):
        at = course.first + share * span
        text = datetime.fromtimestamp(at, course.zone).strftime(form)
        texts += f'<text x="{get_x(course, at):.1f}" y="{height - 8}" text-anchor="{anchor}">{text}</text>'
    return texts


def _render_forecast(course: Chart, line: ChartLine, y: Callable[[float], float]) -> str:
    """A wedge from now to when it may be full, its middle, and the day of it, also beyond the
    picture."""
    if line.ahead is None:
        return ""
    value, goal = line.all_points[-1][1], line.goal
    x, end = get_x(course, course.now), get_x(course, course.last)

    def get_reach_point(moment: float) -> str:
        """The point where the straight line to that level leaves the picture."""
        if moment <= course.last or moment <= course.now:
            return f"{get_x(course, moment):.1f},{y(goal):.1f}"
        share = (course.last - course.now) / (moment - course.now)
        return f"{end:.1f},{y(value + share * (goal - value)):.1f}"

    early, middle, late = map(get_reach_point, line.ahead)
    drawn = (
        f'<polygon class="band" points="{x:.1f},{y(value):.1f} {early} {end:.1f},{y(goal):.1f} {late}"/>'
        f'<polyline class="mid" points="{x:.1f},{y(value):.1f} {middle}"/>'
    )
    if isfinite(line.ahead[1]):
        at = get_x(course, line.ahead[1])
        day = datetime.fromtimestamp(line.ahead[1], course.zone).strftime("full %d %b %H:%M")
        anchor = "end" if at > WIDTH * 0.8 else "middle"
        drawn += f'<text x="{at:.1f}" y="-8" text-anchor="{anchor}">{day}</text>'
        if line.ahead[1] <= course.last:
            drawn += f'<path class="now" d="M{at:.1f} 0V{HIGH}"/>'
    return drawn


def _export_line(line: ChartLine) -> dict[str, Any]:
    x: list[float] = []
    y: list[float | None] = []
    for piece in line.parts:
        if x:
            x.append((x[-1] + piece[0][0]) / 2)
            y.append(None)
        x += [at for at, _ in piece]
        y += [value for _, value in piece]
    plain: dict[str, Any] = {
        "name": line.name, "title": line.title, "unit": line.unit, "x": x, "y": y,
        "limits": [[name, level] for name, level in line.limits],
        "ahead": line.ahead, "goal": line.goal,
    }  # fmt: skip
    return plain


def _export_mark(mark: ChartMark) -> Mapping[str, Any]:
    return {
        "at": mark.at,
        "until": mark.until,
        "kind": mark.kind,
        "text": mark.text,
        "href": mark.href,
    }
