"""File systems on a terminal: bars, the last week, the time that is left; and as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table
from rich.text import Text

from sentinel.alerting.observations import RunOutcome
from sentinel.checks.filesystems.forecast import history_points
from sentinel.cli.tables import STATUS_COLOURS, make_console, render_share_bar
from sentinel.core.clock import Instant
from sentinel.core.errors import SentinelError
from sentinel.core.forecast.forecast import Forecast, make_forecast
from sentinel.core.forecast.picture import ForecastSeries, render_forecast_svg, render_sparkline
from sentinel.core.forecast.thin import Point
from sentinel.core.forecast.words import describe_forecast
from sentinel.core.model import Finding, Status
from sentinel.core.text import visible, visible_lines
from sentinel.core.values import duration_text, size_text

WEEK_S = 7 * 86_400
FORECAST_HISTORY_S = 14 * 86_400

SampleHistory = Callable[[str, str, float], Sequence[tuple[Instant, float]]]
"""Of a subject, a number's name and seconds back."""


class DiskRow:
    """A finding with its past and its future."""

    def __init__(self, finding: Finding, history: SampleHistory, now: Instant) -> None:
        self.finding, wall = finding, now.wall / 1e6
        self.points = history_points(
            history(finding.subject, "used_percent", FORECAST_HISTORY_S), now
        )
        self.forecast = _read_check_forecast(finding) or _compute_forecast(finding, history, now)
        self.week = render_sparkline(self.points, wall, WEEK_S)


def build_disk_rows(outcome: RunOutcome, history: SampleHistory, now: Instant) -> list[DiskRow]:
    """The worst first."""
    return [
        DiskRow(f, history, now) for f in sorted(outcome.findings, key=lambda f: -f.status.rank)
    ]


def print_disk_table(found: Sequence[DiskRow]) -> None:
    """The table; what is wrong is said in words below it, with its details."""
    out = make_console()
    out.print(_build_disk_table(found, wide=out.width >= 90))
    for row in found:
        finding = row.finding
        if finding.status is not Status.OK:
            text = Text(f"{finding.status.value} ", style=STATUS_COLOURS[finding.status])
            out.print(
                text.append(visible(f"{finding.subject}: {finding.summary}"), style="default")
            )
        if finding.details:
            out.print(Text(visible_lines(finding.details), style="dim"))


def draw_disk_plot(found: Sequence[DiskRow], now: Instant) -> str:
    """An SVG of all that have a share used."""
    wall = now.wall / 1e6
    series = [
        _build_plot_series(row, wall)
        for row in found
        if _get_number(row.finding, "used_percent") is not None
    ]
    if not series:
        raise SentinelError("there is nothing to draw: no share used was measured")
    return render_forecast_svg(series)


def _build_plot_series(row: DiskRow, wall: float) -> ForecastSeries:
    share = _get_number(row.finding, "used_percent") or 0.0
    words = row.finding.summary
    if row.forecast and "full" not in words:
        words = f"{words}; {describe_forecast(row.forecast, wall)}"
    return ForecastSeries(
        title=row.finding.subject,
        subtitle=words,
        points=(*row.points, (wall, share)),
        now=wall,
        forecast=row.forecast,
    )


def _build_disk_table(found: Sequence[DiskRow], *, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    past = any(row.week.strip() for row in found)
    table.add_column("file system", overflow="fold", ratio=1)
    table.add_column("space", no_wrap=True)
    table.add_column("free", justify="right", no_wrap=True)
    table.add_column("inodes", no_wrap=True)
    if past:
        table.add_column("last week", no_wrap=True)
        table.add_column("full in", justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for row in found:
        table.add_row(*_build_disk_cells(row, past=past, wide=wide))
    return table


def _build_disk_cells(row: DiskRow, *, past: bool, wide: bool) -> list[Text]:
    finding = row.finding
    free = _get_number(finding, "free_bytes")
    history = [Text(row.week, style="cyan"), _render_time_to_full(row.forecast)] if past else []
    return [
        Text(visible(finding.subject)),
        _render_usage_bar(finding, "used_percent", 12 if wide else 8),
        Text("–" if free is None else size_text(free)),
        _render_usage_bar(finding, "inodes_used_percent", 8 if wide else 4),
        *history,
        Text(finding.status.value, style=STATUS_COLOURS[finding.status]),
    ]


def _render_usage_bar(finding: Finding, name: str, width: int) -> Text:
    share = _get_number(finding, name)
    if share is None:
        return Text("–", style="dim")
    return render_share_bar(share, finding.status, width).append(
        f" {int(share):3d}%", style="default"
    )


def _render_time_to_full(found: Forecast | None) -> Text:
    if found is None:
        return Text("–", style="dim")
    if found.full_in is None:
        return Text("> 60d", style="dim")
    return Text(duration_text(found.full_in))


def _get_number(finding: Finding, name: str) -> float | None:
    value = finding.values.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _read_check_forecast(finding: Finding) -> Forecast | None:
    """What the check itself has foreseen."""
    if "full_in_s" not in finding.values:
        return None
    names = ("full_in_s", "full_in_early_s", "full_in_late_s")
    full, early, late = (_get_number(finding, name) for name in names)
    return Forecast(full_in=full, early=early, late=late, rate=0.0)


def _compute_forecast(finding: Finding, history: SampleHistory, now: Instant) -> Forecast | None:
    free = _get_number(finding, "free_bytes")
    if free is None:
        return None
    before = history_points(history(finding.subject, "free_bytes", FORECAST_HISTORY_S), now)
    wall = now.wall / 1e6
    levels: list[Point] = [(at, -value) for at, value in before]
    return make_forecast([*levels, (wall, -free)], free, wall) if levels else None
