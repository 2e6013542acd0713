"""What people look at on a terminal: rich tables, inert text."""

import os
import sys

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from sentinel.alerting.observations import RunOutcome
from sentinel.core.model import Finding, Status
from sentinel.core.text import visible, visible_lines

STATUS_COLOURS = {
    Status.OK: "green",
    Status.WARNING: "yellow",
    Status.CRITICAL: "bold red",
    Status.UNKNOWN: "magenta",
}


UNBOUNDED_COLUMNS = 100_000
"""Columns: no row is longer."""

MIN_SUMMARY_COLUMNS = 18
"""Columns for the words at the end of a row."""


class _PipeSafeConsole(Console):
    """rich ends the process with 1 when nobody reads any more: that is an answer of checks."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def make_console() -> Console:
    """To stdout; rich honours NO_COLOR and the terminal's width, but prints nothing for COLUMNS=0,
    which some terminals of containers and schedulers say. What is piped is not wrapped: grep and
    awk want whole rows; $COLUMNS says otherwise."""
    columns = os.environ.get("COLUMNS", "")
    width = 80 if columns.isdigit() and not int(columns) else None
    if not columns and not sys.stdout.isatty():
        width = UNBOUNDED_COLUMNS
    return _PipeSafeConsole(highlight=False, emoji=False, markup=False, width=width)


def render_status(status: Status) -> Text:
    """The status word in its colour."""
    return Text(status.value, style=STATUS_COLOURS[status])


def render_check_subject(check: str, subject: str, elsewhere: str = "") -> Text:
    """`disks /scratch`; once where both are the same; with the cluster where it is another one."""
    words = check if subject in ("", check) else f"{check} {subject}"
    return Text(f"{words} on {elsewhere}" if elsewhere else words)


def print_check_outcome(outcome: RunOutcome) -> None:
    """Status, subject and summary of each finding, with its details below."""
    out = make_console()
    out.print(_build_finding_table(outcome.findings))
    for finding in outcome.findings:
        if finding.details:
            out.print(Text(visible_lines(finding.details), style="dim"))


def render_share_bar(percent: float, status: Status, width: int = 12) -> Text:
    """A share as a bar."""
    full = round(max(0.0, min(100.0, percent)) / 100 * width)
    text = Text("█" * full, style=STATUS_COLOURS[status])
    return text.append("░" * (width - full), style="dim")


def _build_finding_table(findings: tuple[Finding, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("status")
    table.add_column("subject", overflow="fold", max_width=40)
    table.add_column("summary", overflow="fold")
    for f in findings:
        table.add_row(render_status(f.status), Text(visible(f.subject)), Text(visible(f.summary)))
    return table


class FittedTable:
    """A table that leaves out columns, in this order, rather than break words in two: the last column
    keeps room for a few words."""

    def __init__(self, table: Table, *least: str) -> None:
        self._table, self._least = table, least

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = self._table
        for name in self._least:
            if _measure_min_width(table, console, options) <= options.max_width:
                break
            table = _drop_column(table, name)
        yield table


def _drop_column(table: Table, name: str) -> Table:
    """The same rows without the column of that heading."""
    kept = [column for column in table.columns if column.header != name]
    fewer = make_plain_table(*(str(column.header) for column in kept))
    for old, new in zip(kept, fewer.columns, strict=True):
        new.no_wrap, new.overflow = old.no_wrap, old.overflow
        new.min_width, new.max_width = old.min_width, old.max_width
    for row, cells in zip(table.rows, zip(*(c.cells for c in kept), strict=True), strict=True):
        fewer.add_row(*cells, style=row.style)
    return fewer


def _measure_min_width(table: Table, console: Console, options: ConsoleOptions) -> int:
    """Characters that it takes without a broken word."""
    wide, widths = options.update(max_width=UNBOUNDED_COLUMNS), list[int]()
    for column in table.columns[:-1]:
        cells = [Measurement.get(console, wide, c) for c in (column.header, *column.cells)]
        widths.append(max(m.maximum if column.no_wrap else m.minimum for m in cells))
        widths[-1] = min(widths[-1], column.max_width or widths[-1])
    said = max(Measurement.get(console, wide, c).maximum for c in table.columns[-1].cells)
    return sum(widths) + min(said, MIN_SUMMARY_COLUMNS) + 2 * len(widths)


def make_plain_table(*columns: str) -> Table:
    """A table without lines whose cells fold rather than being cut."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
