"""Draws the past and the forecast of file systems."""

from __future__ import annotations

from sentinel.alerting.observations import RunOutcome
from sentinel.checks.filesystems.forecast import history_points
from sentinel.cli.outcome_cells import (
    FORECAST_HISTORY_S,
    CellSource,
    SampleHistory,
    find_forecast,
    make_finding_source,
)
from sentinel.core.clock import Instant
from sentinel.core.errors import SentinelError
from sentinel.core.forecast.picture import ForecastSeries, render_forecast_svg
from sentinel.core.forecast.words import describe_forecast


def draw_disk_plot(outcome: RunOutcome, history: SampleHistory, now: Instant) -> str:
    """An SVG of all file systems that have a used share, the worst first."""
    rows = [
        make_finding_source(f, {}, history, now, wide=True)
        for f in sorted(outcome.findings, key=lambda f: -f.status.rank)
    ]
    series = [_build_plot_series(row) for row in rows if row.get_number("used_percent") is not None]
    if not series:
        raise SentinelError("there is nothing to draw: no share used was measured")
    return render_forecast_svg(series)


def _build_plot_series(row: CellSource) -> ForecastSeries:
    wall = row.now.wall / 1e6
    share = row.get_number("used_percent") or 0.0
    words, forecast = str(row.values["summary"]), find_forecast(row)
    if forecast and "full" not in words:
        words = f"{words}; {describe_forecast(forecast, wall)}"
    before = history_points(row.history(row.subject, "used_percent", FORECAST_HISTORY_S), row.now)
    return ForecastSeries(
        title=row.subject,
        subtitle=words,
        points=(*before, (wall, share)),
        now=wall,
        forecast=forecast,
    )
