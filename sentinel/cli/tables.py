"""What people look at on a terminal: rich tables, inert text."""

import os
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sentinel.alerting.observations import Outcome
from sentinel.core.model import Finding, Status
from sentinel.core.text import visible, visible_lines

COLOURS = {
    Status.OK: "green",
    Status.WARNING: "yellow",
    Status.CRITICAL: "bold red",
    Status.UNKNOWN: "magenta",
}


UNBOUNDED = 100_000
"""Columns: no row is longer."""


class _Glass(Console):
    """rich ends the process with 1 when nobody reads any more: that is an answer of checks."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """To stdout; rich honours NO_COLOR and the terminal's width, but prints nothing for COLUMNS=0,
    which some terminals of containers and schedulers say. What is piped is not wrapped: grep and
    awk want whole rows; $COLUMNS says otherwise."""
    columns = os.environ.get("COLUMNS", "")
    width = 80 if columns.isdigit() and not int(columns) else None
    if not columns and not sys.stdout.isatty():
        width = UNBOUNDED
    return _Glass(highlight=False, emoji=False, markup=False, width=width)


def status_cell(status: Status) -> Text:
    """The status word in its colour."""
    return Text(status.value, style=COLOURS[status])


def about(check: str, subject: str, elsewhere: str = "") -> Text:
    """`disks /scratch`; once where both are the same; with the cluster where it is another one."""
    words = check if subject in ("", check) else f"{check} {subject}"
    return Text(f"{words} on {elsewhere}" if elsewhere else words)


def show_check(outcome: Outcome) -> None:
    """Status, subject and summary of each finding, with its details below."""
    out = console()
    out.print(_findings(outcome.findings))
    for finding in outcome.findings:
        if finding.details:
            out.print(Text(visible_lines(finding.details), style="dim"))


def bar(percent: float, status: Status, width: int = 12) -> Text:
    """A share as a bar."""
    full = round(max(0.0, min(100.0, percent)) / 100 * width)
    text = Text("█" * full, style=COLOURS[status])
    return text.append("░" * (width - full), style="dim")


def _findings(findings: tuple[Finding, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("status")
    table.add_column("subject", overflow="fold", max_width=40)
    table.add_column("summary", overflow="fold")
    for f in findings:
        table.add_row(status_cell(f.status), Text(visible(f.subject)), Text(visible(f.summary)))
    return table


def plain_table(*columns: str) -> Table:
    """A table without lines whose cells fold rather than being cut."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
