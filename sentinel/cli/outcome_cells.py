"""The cells of the tables that `sentinel check` prints: a value in the form that its kind declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from msgspec import Struct
from rich.text import Text

from sentinel.checks.filesystems.forecast import history_points
from sentinel.cli.tables import render_share_bar, render_status
from sentinel.core.clock import Instant
from sentinel.core.forecast.forecast import Forecast, make_forecast
from sentinel.core.forecast.sparkline import render_sparkline
from sentinel.core.forecast.thin import Point
from sentinel.core.model import Finding, Status
from sentinel.core.shown import PCI_DOMAIN, Cell, Column
from sentinel.core.text import visible
from sentinel.core.values import duration_text, format_percent, size_text
from sentinel.status.metrics import compute_pace

DAY_S, WEEK_S = 86_400, 7 * 86_400
FORECAST_HISTORY_S = 14 * 86_400
STRIP_CHARS = 24
"""Characters of a day in a strip: one for each hour."""

CURVE_CHARS = 16
WIDE_COLUMNS = 90
"""Terminals with at least this number of columns get long bars."""

SampleHistory = Callable[[str, str, float], Sequence[tuple[Instant, float]]]
"""Reads past samples, given subject, name and seconds back."""

_LEVELS = "▁▂▃▄▅▆▇█"


class CellSource(Struct, frozen=True, kw_only=True):
    """What the cells of one row are made from."""

    values: Mapping[str, Any]  # Values by name.
    status: Status
    subject: str
    history: SampleHistory
    now: Instant
    wide: bool  # Whether bars are long.
    measured: frozenset[str] = frozenset()  # Values that this run has measured.

    def get_number(self, name: str) -> float | None:
        """The value of that name, if it is a number."""
        value = self.values.get(name)
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if fits and value is not None else None


def make_finding_source(
    finding: Finding,
    cells: Mapping[str, Cell],
    history: SampleHistory,
    now: Instant,
    *,
    wide: bool,
) -> CellSource:
    """The source for the row of a finding."""
    own = {"subject": finding.subject, "summary": finding.summary, "status": finding.status}
    return CellSource(
        values={**finding.labels, **finding.values, **cells, **own},
        status=finding.status,
        subject=finding.subject,
        history=history,
        now=now,
        wide=wide,
        measured=frozenset(k for k, v in {**finding.values, **cells}.items() if v is not None),
    )


def render_cell(column: Column, row: CellSource) -> Text | None:
    """The cell of a column; None if there is no such value."""
    drawer = _DRAWERS.get(column.form)
    if drawer is not None:
        return drawer(column, row)
    value = row.values.get(column.value)
    if value is None or value == "":
        return None
    if isinstance(value, Status):
        return render_status(value)
    if isinstance(value, tuple):
        return Text(_draw_curve(value), style="cyan")
    number = row.get_number(column.value)
    text = visible(str(value)) if number is None else _NUMBERS.get(column.form, _count)(number)
    return Text(text)


def _count(number: float) -> str:
    return f"{number:,.0f}"


_NUMBERS: Mapping[str, Callable[[float], str]] = {
    "count": _count,
    "number": lambda number: f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}",
    "size": size_text,
    "percent": format_percent,
    "celsius": lambda number: f"{number:.0f} °C",
    "time": duration_text,
}


def _draw_bar(width: int, short: int) -> Callable[[Column, CellSource], Text | None]:
    def draw(column: Column, row: CellSource) -> Text | None:
        share = row.get_number(column.value)
        if share is None:
            return None
        bar = render_share_bar(share, row.status, width if row.wide else short)
        return bar.append(f" {int(share):3d}%", style="default")

    return draw


def _draw_change(column: Column, row: CellSource) -> Text | None:
    """The difference in bytes to the last run that the state remembers."""
    value, before = row.get_number(column.value), _read(row, column.value, WEEK_S)
    if value is None or not before:
        return None
    change = value - before[-1][1]
    sign = "+" if change > 0 else "-" if change < 0 else "±"
    since = duration_text(max(0.0, row.now.wall / 1e6 - before[-1][0].wall / 1e6))
    return Text(f"{sign}{size_text(abs(change))} in {since}")


def _draw_rate(column: Column, row: CellSource) -> Text | None:
    """The rate per minute, by what the state remembers; else by what the kind itself has
    measured."""
    pace = compute_pace(_read(row, column.value, DAY_S))
    rate = row.get_number(f"{column.value}_rate") if pace is None else pace * 60
    return None if rate is None else Text(_NUMBERS["number"](rate))


def _draw_week(column: Column, row: CellSource) -> Text | None:
    points = history_points(_read(row, column.value, FORECAST_HISTORY_S), row.now)
    week = render_sparkline(points, row.now.wall / 1e6, WEEK_S)
    return Text(week, style="cyan") if week.strip() else None


def _draw_day(column: Column, row: CellSource) -> Text | None:
    """A strip of one day with a character for each hour: on all the time, on for a part of it, or
    off; a blank if it is not known."""
    hours: list[list[bool]] = [[] for _ in range(STRIP_CHARS)]
    for at, value in _read(row, column.value, DAY_S):
        hour = int((at.wall - row.now.wall) / 1e6 + DAY_S) // (DAY_S // STRIP_CHARS)
        hours[max(0, min(STRIP_CHARS - 1, hour))].append(value > 0)
    if not any(hours):
        return None
    strip = Text()
    for seen in hours:
        char, style = (" ", "")
        if seen:
            char, style = ("█", "green") if all(seen) else ("▄", "yellow")
            char, style = (char, style) if any(seen) else ("·", "bold red")
        strip.append(char, style=style)
    return strip


def _draw_full(column: Column, row: CellSource) -> Text | None:
    found = find_forecast(row)
    if found is None:
        return None
    if found.full_in is None:
        return Text("> 60d", style="dim")
    return Text(duration_text(found.full_in))


def _draw_slot(column: Column, row: CellSource) -> Text | None:
    slot = row.values.get(column.value)
    return Text(visible(str(slot)).removeprefix(PCI_DOMAIN)) if slot else None


_DRAWERS: Mapping[str, Callable[[Column, CellSource], Text | None]] = {
    "slot": _draw_slot,
    "bar": _draw_bar(12, 8),
    "share": _draw_bar(8, 4),
    "change": _draw_change,
    "rate": _draw_rate,
    "week": _draw_week,
    "day": _draw_day,
    "full": _draw_full,
}


def find_forecast(row: CellSource) -> Forecast | None:
    """The forecast of the check itself, else one from the history of its free bytes."""
    if "full_in_s" in row.values:
        names = ("full_in_s", "full_in_early_s", "full_in_late_s")
        full, early, late = (row.get_number(name) for name in names)
        return Forecast(full_in=full, early=early, late=late, rate=0.0)
    free = row.get_number("free_bytes")
    if free is None:
        return None
    before = history_points(_read(row, "free_bytes", FORECAST_HISTORY_S), row.now)
    wall = row.now.wall / 1e6
    levels: list[Point] = [(at, -value) for at, value in before]
    return make_forecast([*levels, (wall, -free)], free, wall) if levels else None


def _read(row: CellSource, name: str, seconds: float) -> Sequence[tuple[Instant, float]]:
    return row.history(row.subject, name, seconds)


def _draw_curve(values: Sequence[float]) -> str:
    """A sparkline that is scaled to its own smallest and largest value, with the last value behind
    it."""
    size = max(1, -(-len(values) // CURVE_CHARS))
    means = [fmean(values[at : at + size]) for at in range(0, len(values), size)]
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    chars = "".join(_LEVELS[round((one - low) / span * (len(_LEVELS) - 1))] for one in means)
    return f"{chars} {values[-1]:.4g}"
