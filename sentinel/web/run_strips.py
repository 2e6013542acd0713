"""Draws what trainings did as strips in SVG: a line of their steps above a bar. Pure.

Places are percentages of the width, so that patterns keep their size on every screen."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from markupsafe import Markup

from sentinel.core.run_ledger import StripClass
from sentinel.report.strip import STRIP_LABELS
from sentinel.status.types import RunFact, StripFact

STEPS_PX, BAR_PX = 22, 14
"""Height of the line of steps, and of the bar below it."""

MIN_WIDTH_PERCENT = 0.3
"""A shorter span is drawn as wide as this: a hang of a minute is seen in a week."""

SPAN_WORDS = {86_400: "24 hours", 7 * 86_400: "7 days"}

# One pattern for each class, so that colours are not needed to tell them apart.
_PATTERNS = {
    "slow": '<path d="M2 0V6M5 0V6"/>',
    "lost": '<path d="M0 0L6 6M6 0L0 6"/>',
    "hung": '<path d="M-1 1L1 -1M0 6L6 0M5 7L7 5"/>',
    "queued": '<circle cx="3" cy="3" r="1"/>',
    "blind": '<path d="M0 3H6"/>',
}


def build_strip_context(runs: Sequence[RunFact], now: float) -> dict[str, Any]:
    """What templates need to show strips: of each run its pictures by their words, the legend and
    the patterns."""
    return {
        "strips": [
            (run, [_draw_labelled(run, span_s, now) for span_s in SPAN_WORDS]) for run in runs
        ],
        "strip_labels": STRIP_LABELS,
        "strip_patterns": Markup(draw_patterns()),  # noqa: S704 - drawn here
    }


def _draw_labelled(run: RunFact, span_s: int, now: float) -> tuple[str, Markup]:
    return SPAN_WORDS[span_s], Markup(draw_run_strip(run, span_s, now))  # noqa: S704 - escaped


def draw_patterns() -> str:
    """The patterns, once for a page. The style sheet gives them their colours."""
    drawn = "".join(
        f'<pattern id="p-{name}" class="s-{name}" width="6" height="6" '
        f'patternUnits="userSpaceOnUse"><rect width="6" height="6"/>{shape}</pattern>'
        for name, shape in _PATTERNS.items()
    )
    return f'<svg class="defs" width="0" height="0" aria-hidden="true"><defs>{drawn}</defs></svg>'


def draw_run_strip(run: RunFact, span_s: int, now: float) -> str:
    """The last `span_s` seconds of a run."""
    since = now - span_s
    spans = [one for one in run.strip if one.ended > since]
    words = f"{run.run}, last {SPAN_WORDS[span_s]}: {describe_shares(spans, since, now)}"
    return (
        f'<svg class="run" width="100%" height="{STEPS_PX + BAR_PX}" role="img" '
        f'aria-label="{escape(words)}">{_draw_steps(run, since, now)}'
        f'<rect class="s-none" y="{STEPS_PX}" width="100%" height="{BAR_PX}"/>'
        f"{''.join(_draw_span(one, since, now) for one in spans)}</svg>"
    )


def describe_shares(spans: Sequence[StripFact], since: float, now: float) -> str:
    """The share of each class, the largest first, for those who do not see the picture."""
    times = dict[StripClass, float]()
    for one in spans:
        times[one.kind] = times.get(one.kind, 0.0) + one.ended - max(one.began, since)
    shares = sorted(times.items(), key=lambda pair: -pair[1])
    told = [f"{STRIP_LABELS[kind]} {100 * time / (now - since):.0f}%" for kind, time in shares]
    return ", ".join(told) or "nothing is known"


def _draw_span(one: StripFact, since: float, now: float) -> str:
    left = _place(max(one.began, since), since, now)
    width = max(_place(one.ended, since, now) - left, MIN_WIDTH_PERCENT)
    return (
        f'<rect class="s-{one.kind}" x="{left:.2f}%" y="{STEPS_PX}" width="{width:.2f}%" '
        f'height="{BAR_PX}"/>'
    )


def _draw_steps(run: RunFact, since: float, now: float) -> str:
    """The steps as lines, the lowest at the bottom."""
    lines = [one for one in run.steps if one.ended > since]
    if not lines:
        return ""
    low = min(min(one.first, one.last) for one in lines)
    high = max(max(one.first, one.last) for one in lines)

    def y(step: float) -> float:
        return STEPS_PX - 3 - (STEPS_PX - 5) * (step - low) / ((high - low) or 1)

    return "".join(
        f'<line class="steps" x1="{_place(max(one.began, since), since, now):.2f}%" '
        f'x2="{_place(one.ended, since, now):.2f}%" y1="{y(one.first):.1f}" y2="{y(one.last):.1f}"/>'
        for one in lines
    )


def _place(at: float, since: float, now: float) -> float:
    return 100 * (at - since) / (now - since)
