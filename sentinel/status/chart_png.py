"""The picture of the page as a PNG, for a mail: how a training or a file system went.

Drawn by resvg (https://github.com/linebender/resvg), an extra: `pip install 'sentinel[pictures]'`.
"""

from __future__ import annotations

from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path

from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Notification
from sentinel.status.chart_history import (
    MARK_KIND_BY_ENDING,
    ChartRequest,
    clip_marks,
    read_file_system_history,
    read_training_history,
)
from sentinel.status.plot import Chart, render_svg_file

LEAD_IN_S = 6 * 3600.0
"""Seconds before the alert began that are drawn, so that one sees how it went while it was well."""

MAX_PANELS = 4
"""Lines of numbers below each other: a mail is read on a phone."""

SECONDARY_LINES = frozenset({"running", "queued"})
"""Lines that, alone, show nothing more than the alert."""

FONT_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts")
FONT_FAMILIES = {
    "DejaVuSans.ttf": "DejaVu Sans",
    "LiberationSans-Regular.ttf": "Liberation Sans",
    "NotoSans-Regular.ttf": "Noto Sans",
}
"""One of these has to lie on the machine: without a font a picture has no numbers."""


def render_png(made: Chart) -> bytes:
    """The picture; empty where there is nothing to draw, no font, or no resvg. ValueError for what
    resvg cannot draw."""
    if not {line.name for line in made.drawn} - SECONDARY_LINES or (font := _find_font()) is None:
        return b""
    try:
        import resvg_py
    except ModuleNotFoundError:
        return b""
    drawn = resvg_py.svg_to_bytes(
        svg_string=render_svg_file(made, FONT_FAMILIES[font.name]),
        zoom=1.5,
        skip_system_fonts=True,
        font_files=[str(font)],
    )
    return bytes(drawn)


def build_alert_chart(store: Store, n: Notification, now: Instant) -> Chart:
    """How the training, or else the file system, that the alert is about went: some hours before it and
    since. Raises StoreError."""
    at, since = now.wall / SECOND, datetime.fromisoformat(n.since)
    subject = next(
        (n.subject.removesuffix(s) for s in MARK_KIND_BY_ENDING if n.subject.endswith(s)), n.subject
    )
    first = min(at, since.timestamp()) - LEAD_IN_S
    asked = ChartRequest(check=n.check, subject=subject, kind=n.kind, first=first, last=at)
    past = read_training_history(store, None, asked, now)
    if not any(len(line.all_points) > 1 for line in past.lines):
        past = read_file_system_history(store, asked, now)
    lines = [
        line for line in past.lines if line.name not in SECONDARY_LINES and len(line.all_points) > 1
    ]
    begun = min((line.all_points[0][0] for line in lines), default=first)
    return Chart(
        title=subject,
        first=begun,
        now=at,
        zone=since.tzinfo or timezone.utc,
        lines=lines[:MAX_PANELS],
        marks=clip_marks((mark for mark in past.marks if (mark.until or mark.at) >= begun), at),
    )


@lru_cache(maxsize=1)
def _find_font() -> Path | None:
    found = (
        path
        for folder in FONT_FOLDERS
        for name in FONT_FAMILIES
        for path in Path(folder).rglob(name)
    )
    return next(found, None)
