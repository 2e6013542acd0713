"""What people look at on a terminal: rich tables, inert text."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sentinel.core.model import Finding, Status
from sentinel.core.outcome import Outcome
from sentinel.core.text import visible, visible_lines
from sentinel.core.values import size_text

COLOURS = {
    Status.OK: "green",
    Status.WARNING: "yellow",
    Status.CRITICAL: "bold red",
    Status.UNKNOWN: "magenta",
}


class _Glass(Console):
    """rich ends the process with 1 when nobody reads any more: that is an answer of checks."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """To stdout; rich honours NO_COLOR and the terminal's width."""
    return _Glass(highlight=False, emoji=False, markup=False)


def status_cell(status: Status) -> Text:
    """The status word in its colour."""
    return Text(status.value, style=COLOURS[status])


def about(check: str, subject: str) -> Text:
    """`disks /scratch`; once where both are the same."""
    return Text(check if subject in ("", check) else f"{check} {subject}")


def show_check(outcome: Outcome) -> None:
    """A table of file systems with bars where they were measured, else a plain one."""
    disks = [f for f in outcome.findings if "used_percent" in f.values]
    out = console()
    out.print(_disks(outcome.findings) if disks else _findings(outcome.findings))
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


def _disks(findings: tuple[Finding, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("file system", overflow="fold", ratio=3)
    table.add_column("space", no_wrap=True)
    table.add_column("free", justify="right", no_wrap=True)
    table.add_column("inodes", justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("", overflow="fold", ratio=3)
    for f in sorted(findings, key=lambda f: -f.status.rank):
        table.add_row(*_disk_row(f))
    return table


def _disk_row(f: Finding) -> list[Text]:
    used, free, inodes = (
        f.values.get(k) for k in ("used_percent", "free_bytes", "inodes_used_percent")
    )
    space = Text("?", style="dim")
    if isinstance(used, (int, float)):
        space = bar(used, f.status).append(f" {used:3.0f}%", style="default")
    return [
        Text(visible(f.subject)),
        space,
        Text(size_text(free) if isinstance(free, (int, float)) else "?"),
        Text(f"{inodes:.0f}%" if isinstance(inodes, (int, float)) else "–"),
        status_cell(f.status),
        Text(visible(f.summary) if f.status is not Status.OK else "", style="dim"),
    ]


def plain_table(*columns: str) -> Table:
    """A table without lines whose cells fold rather than being cut."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
