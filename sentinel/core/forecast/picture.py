"""Draws history and forecast: a sparkline for terminals, an SVG for everything else. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from msgspec import Struct

from sentinel.core.forecast.forecast import Forecast
from sentinel.core.forecast.thin import Point, keep_last_per_bucket
from sentinel.core.forecast.words import format_moment
from sentinel.core.text import visible

_BAR_CHARS = "▁▂▃▄▅▆▇█"
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 240, 52, 42, 20, 28


class ForecastSeries(Struct, frozen=True, kw_only=True):
    """A share used (percent) over time, and its forecast. `now` is in seconds UTC."""

    title: str  # Heading of the picture.
    subtitle: str  # Line below the heading.
    points: tuple[Point, ...]  # Time (s UTC) and percent used.
    now: float
    forecast: Forecast | None = None  # The forecast. None: there is none.


def render_sparkline(points: Sequence[Point], now: float, span: float, width: int = 10) -> str:
    """A line of small bars for shares from 0 to 100 percent over the last `span` seconds. Unknown
    times are blank.

    The scale always goes from 0 to 100. So a value that hardly changes looks constant.
    """
    cells: list[float | None] = [None] * width
    for at, share in points:
        cell = int((at - (now - span)) // (span / width))
        if 0 <= cell <= width:
            cells[min(cell, width - 1)] = share
    return "".join(" " if share is None else _get_bar_char(share) for share in cells)


def _get_bar_char(share: float) -> str:
    return _BAR_CHARS[max(0, min(len(_BAR_CHARS) - 1, int(share / 100 * len(_BAR_CHARS))))]


def render_forecast_svg(series: Sequence[ForecastSeries]) -> str:
    """A picture with one panel for each series, one below the other. The past is a line, and the
    future is a band between early and late. Text is escaped. No link, script or font from elsewhere
    is in it."""
    height = HEIGHT * max(1, len(series))
    parts = [_render_panel(one, HEIGHT * number) for number, one in enumerate(series)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n{"".join(parts)}</svg>\n'
    )


class _Scale:
    """Converts a moment and a share to coordinates in a panel."""

    def __init__(self, one: ForecastSeries, top: float) -> None:
        self.begin = min((at for at, _ in one.points), default=one.now - 86_400)
        ahead = _get_shown_future_s(one) or 0.35 * (one.now - self.begin)
        self.end = one.now + max(3600.0, ahead)
        self.top = top

    def time_to_x(self, at: float) -> float:
        share = (at - self.begin) / (self.end - self.begin)
        return LEFT + max(0.0, min(1.0, share)) * (WIDTH - LEFT - RIGHT)

    def share_to_y(self, share: float) -> float:
        inside = HEIGHT - TOP - BOTTOM
        return self.top + TOP + (1 - max(0.0, min(100.0, share)) / 100) * inside


def _get_shown_future_s(one: ForecastSeries) -> float:
    """Seconds of the future to show: few enough that the past does not shrink to a corner."""
    if one.forecast is None:
        return 0.0
    past = one.now - min((at for at, _ in one.points), default=one.now)
    wanted = one.forecast.late or one.forecast.full_in or one.forecast.early or 0.0
    return min(1.15 * wanted, max(past, 86_400.0) * 1.5)


def _render_panel(one: ForecastSeries, top: float) -> str:
    scale = _Scale(one, top)
    parts = [_render_text(LEFT, top + 16, visible(one.title), "#1f2328", "600")]
    parts += [_render_text(LEFT, top + 29, visible(one.subtitle), "#57606a")]
    parts += [_render_grid_line(scale, share) for share in (0, 25, 50, 75, 100)]
    parts += [
        _render_band(one, scale),
        _render_history(one, scale),
        _render_now_line(one, scale),
        _render_dates(one, scale),
    ]
    return "".join(parts)


def _render_grid_line(scale: _Scale, share: int) -> str:
    y = scale.share_to_y(share)
    colour = "#cf222e" if share == 100 else "#d0d7de"
    line = f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"/>\n'
    return line + _render_text(LEFT - 6, y + 4, f"{share}%", "#57606a", anchor="end")


def _render_history(one: ForecastSeries, scale: _Scale) -> str:
    points = keep_last_per_bucket(one.points, max(1.0, (scale.end - scale.begin) / WIDTH))
    path = " ".join(
        f"{scale.time_to_x(at):.1f},{scale.share_to_y(share):.1f}" for at, share in points
    )
    return f'<polyline points="{path}" fill="none" stroke="#0969da" stroke-width="1.8"/>\n'


def _render_band(one: ForecastSeries, scale: _Scale) -> str:
    """SVG of the band from now to full, between early and late, with a dashed line in the
    middle."""
    found, level = one.forecast, one.points[-1][1] if one.points else 0.0
    if found is None or found.early is None:
        return ""
    x, y, full = scale.time_to_x(one.now), scale.share_to_y(level), scale.share_to_y(100)
    early = scale.time_to_x(one.now + found.early)
    if found.late is None:  # it may never be full, so the band has no right end
        far = (
            f"{scale.time_to_x(scale.end):.1f},{full:.1f} {scale.time_to_x(scale.end):.1f},{y:.1f}"
        )
    else:
        far = f"{scale.time_to_x(one.now + found.late):.1f},{full:.1f}"
    band = f"{x:.1f},{y:.1f} {early:.1f},{full:.1f} {far}"
    shape = f'<polygon points="{band}" fill="#fb8500" fill-opacity="0.25"/>\n'
    if found.full_in is None:
        return shape
    end = scale.time_to_x(one.now + found.full_in)
    return shape + (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{end:.1f}" y2="{full:.1f}" '
        'stroke="#bc4c00" stroke-width="1.6" stroke-dasharray="5 3"/>\n'
    )


def _render_now_line(one: ForecastSeries, scale: _Scale) -> str:
    x, low, high = scale.time_to_x(one.now), scale.share_to_y(0), scale.share_to_y(100)
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{high:.1f}" y2="{low:.1f}" stroke="#8c959f"/>\n'


def _render_dates(one: ForecastSeries, scale: _Scale) -> str:
    y, span = scale.share_to_y(0) + 16, scale.end - scale.begin
    ticks = [scale.begin, one.now, scale.end]
    words = [_format_date(at, one.now, span) for at in ticks]
    anchors = ("start", "middle", "end")
    parts = [
        _render_text(
            scale.time_to_x(at), y, "now" if at == one.now else word, "#57606a", anchor=anchor
        )
        for at, word, anchor in zip(ticks, words, anchors, strict=True)
    ]
    return "".join(parts)


def _format_date(at: float, now: float, span: float) -> str:
    """Weekday and hour for a week, else the date."""
    return format_moment(at, at if span < 6 * 86_400 else at - 7 * 86_400)


def _render_text(
    x: float, y: float, text: str, colour: str, weight: str = "400", anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(text)}</text>\n'
    )
