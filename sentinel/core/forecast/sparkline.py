"""Draws the history of a share on one line of a terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.core.forecast.thin import Point

_BAR_CHARS = "▁▂▃▄▅▆▇█"


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
