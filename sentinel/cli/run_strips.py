"""Strips of trainings as characters: each class has a character and a colour of its own."""

from collections.abc import Sequence

from rich.text import Text

from sentinel.core.run_ledger import StripClass
from sentinel.core.text import shortened
from sentinel.report.strip import StripSpan, cut_cells
from sentinel.status.types import RunFact

DAY_CELLS, WEEK_CELLS = 24, 28
"""A cell is an hour of the day, and six hours of the week."""

NAME_COLUMNS = 14

STRIP_MARKS: dict[StripClass, tuple[str, str]] = {
    "steps": ("█", "green"),
    "slow": ("▓", "yellow"),
    "lost": ("▒", "cyan"),
    "hung": ("!", "bold red"),
    "down": ("x", "red"),
    "queued": (".", "dim"),
    "blind": ("?", "magenta"),
}
"""The character and the style of each class."""

SHORT_LABELS: dict[StripClass, str] = {"queued": "queue, start", "blind": "unknown"}
"""What people read in place of the name of a class. All seven fit into 80 columns."""


def render_run_strips(runs: Sequence[RunFact], now: float) -> list[Text]:
    """A line for each run: its last day and its last week. Then what the characters in them mean."""
    lines = [_render_run(run, now) for run in runs]
    drawn = {mark for line in lines for mark in line.plain[NAME_COLUMNS:]}
    words = [
        f"{mark} {SHORT_LABELS.get(kind, kind)}"
        for kind, (mark, _) in STRIP_MARKS.items()
        if mark in drawn
    ]
    legend = [Text(f"{'  '.join(words)}  (each 1h, 6h)", style="dim")] if words else []
    return [*lines, *legend]


def _render_run(run: RunFact, now: float) -> Text:
    line = Text(f"{shortened(run.run, NAME_COLUMNS):<{NAME_COLUMNS}} ")
    for words, span_s, count in (("24h ", 86_400, DAY_CELLS), (" 7d ", 7 * 86_400, WEEK_CELLS)):
        line.append(words, "dim")
        spans = [StripSpan(int(s.began), int(s.ended), s.kind) for s in run.strip]
        for kind in cut_cells(spans, int(now - span_s), int(now), count):
            line.append(*STRIP_MARKS[kind] if kind else (" ", ""))
    return line
