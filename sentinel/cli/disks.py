"""Draws the past and the forecast of file systems."""

from __future__ import annotations

from math import inf

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
from sentinel.core.text import visible
from sentinel.status.plot import Chart, ChartLine, render_svg_file, split_points
from sentinel.wiring.app import UsageError
from sentinel.zones import get_local_zone


def draw_disk_plot(outcome: RunOutcome, history: SampleHistory, now: Instant) -> str:
    """An SVG of all file systems whose used share was measured more than once, the worst first.
    Raises UsageError if there is none."""
    rows = [
        make_finding_source(f, {}, history, now, wide=True)
        for f in sorted(outcome.findings, key=lambda f: -f.status.rank)
    ]
    lines = [_build_line(row) for row in rows if row.get_number("used_percent") is not None]
    chart = Chart(
        title="Space used",
        first=min((line.parts[0][0][0] for line in lines), default=0.0),
        now=now.wall / 1e6,
        zone=get_local_zone(),
        lines=lines,
    )
    if not lines:
        raise UsageError("--plot: there is nothing to draw: no share used was measured")
    if not chart.drawn:
        raise UsageError(
            "--plot: there is nothing to draw yet: each file system was measured only once. A check of "
            "kind `fs` measures it again in each pass of `sentinel run` or `sentinel tick`"
        )
    return render_svg_file(chart)


def _build_line(row: CellSource) -> ChartLine:
    wall, forecast = row.now.wall / 1e6, find_forecast(row)
    before = history_points(row.history(row.subject, "used_percent", FORECAST_HISTORY_S), row.now)
    times = (forecast.early, forecast.full_in, forecast.late) if forecast else (None,) * 3
    early, middle, late = (inf if seconds is None else wall + seconds for seconds in times)
    return ChartLine(
        name=row.subject,
        title=f"{visible(row.subject)} used",
        unit="percent",
        parts=split_points((*before, (wall, row.get_number("used_percent") or 0.0))),
        ahead=None if early == inf else (early, middle, late),
    )
