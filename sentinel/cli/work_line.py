"""Renders the line about work under way with rich: a bar, counts, rate, time left, and place."""

from __future__ import annotations

import io
import os
import sys

from rich.console import Console
from rich.text import Text

from sentinel.core.text import visible
from sentinel.core.values import age_text, duration_text, size_text
from sentinel.core.work import Work

BAR_COLUMNS = 16
MIN_RATE_S = 0.5
"""Seconds after which a rate is meaningful."""


def render_work(one: Work, now: float) -> str:
    """The line, cut to the width of the terminal."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        columns = 80
    page = io.StringIO()
    Console(
        file=page, force_terminal=True, width=max(20, columns - 1), highlight=False, markup=False
    ).print(compose_work(one, now), no_wrap=True, overflow="ellipsis", end="")
    return page.getvalue()


def compose_work(one: Work, now: float) -> Text:
    """`asking nodes ████░░░░ 37 of 64 nodes, 12/s, 2s left, node-37`."""
    seconds = max(0.0, now - one.began)
    text = Text(f"{visible(one.label)}{' ' if count_work(one) else ', '}")
    if one.total:
        full = round(BAR_COLUMNS * min(1.0, one.done / one.total))
        text.append("█" * full, "green").append("░" * (BAR_COLUMNS - full) + " ", "dim")
    parts = [
        count_work(one),
        size_text(one.bytes) if one.bytes else "",
        *_describe_rate(one, seconds),
        age_text(seconds),
        visible(one.place),
    ]
    return text.append(", ".join(filter(None, parts)))


def count_work(one: Work) -> str:
    """`37 of 64 nodes`; empty if nothing is counted."""
    if one.total:
        return f"{one.done:,} of {one.total:,} {one.unit}"
    return f"{one.done:,} {one.unit}" if one.done else ""


def _describe_rate(one: Work, seconds: float) -> list[str]:
    rate = one.done / seconds if seconds >= MIN_RATE_S else 0.0
    if not rate:
        return []
    left = (one.total - one.done) / rate if one.total > one.done else 0.0
    told = [f"{rate:,.0f}/s"] if rate >= 10 else []
    return told + ([f"about {duration_text(int(left) or 1)} left"] if left else [])
