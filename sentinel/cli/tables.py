"""Tables and text for terminals, made with rich; text of others is never interpreted."""

import os
import sys
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text as Text  # whoever prints a table needs both

from sentinel.cli import plain_rows
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.model import Status

STATUS_COLOURS = {
    Status.OK: "green",
    Status.WARNING: "yellow",
    Status.CRITICAL: "bold red",
    Status.UNKNOWN: "magenta",
}


_BAR_PATTERN = lazy_pattern("[█░]+ *")
"""A bar beside its number: programs read only the number."""

UNBOUNDED_COLUMNS = 100_000
"""Columns that are enough for any row."""

MIN_SUMMARY_COLUMNS = 18
"""Columns that are kept for the text at the end of a row."""


class _PipeSafeConsole(Console):
    """A console that does not end the process with 1 if the reader is gone, as rich does: 1 is an
    answer of checks."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def make_console() -> Console:
    """A console for stdout.

    rich honours NO_COLOR and the terminal's width, but prints nothing for COLUMNS=0, which some
    terminals of containers and schedulers set. Output to a pipe is not wrapped, since grep and awk
    need whole rows, unless $COLUMNS is set."""
    columns = os.environ.get("COLUMNS", "")
    width = 80 if columns.isdigit() and not int(columns) else None
    if not columns and not sys.stdout.isatty():
        width = UNBOUNDED_COLUMNS
    return _PipeSafeConsole(highlight=False, emoji=False, markup=False, width=width)


def render_status(status: Status) -> Text:
    """The status word in its colour."""
    return Text(status.value, style=STATUS_COLOURS[status])


def render_check_subject(check: str, subject: str, elsewhere: str = "") -> Text:
    """`disks /scratch`; only one word if both are the same; with the cluster if it is another
    one."""
    words = check if subject in ("", check) else f"{check} {subject}"
    return Text(f"{words} on {elsewhere}" if elsewhere else words)


def render_share_bar(percent: float, status: Status, width: int = 12) -> Text:
    """A share as a bar."""
    full = round(max(0.0, min(100.0, percent)) / 100 * width)
    text = Text("█" * full, style=STATUS_COLOURS[status])
    return text.append("░" * (width - full), style="dim")


class FittedTable:
    """A table that drops columns, in the given order, instead of breaking words; the last column
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
        new.justify = old.justify
    for row, cells in zip(table.rows, zip(*(c.cells for c in kept), strict=True), strict=True):
        fewer.add_row(*cells, style=row.style)
    return fewer


def _measure_min_width(table: Table, console: Console, options: ConsoleOptions) -> int:
    """The width at which no word is broken."""
    wide, widths = options.update(max_width=UNBOUNDED_COLUMNS), list[int]()
    for column in table.columns[:-1]:
        cells = [Measurement.get(console, wide, c) for c in (column.header, *column.cells)]
        widths.append(max(m.maximum if column.no_wrap else m.minimum for m in cells))
        widths[-1] = min(widths[-1], column.max_width or widths[-1])
    said = max(Measurement.get(console, wide, c).maximum for c in table.columns[-1].cells)
    return sum(widths) + min(said, MIN_SUMMARY_COLUMNS) + 2 * len(widths)


def _strip_line_ends(rendered: RenderResult) -> Iterator[Segment]:
    """The segments without the blanks that pad the last column, unless they have a colour."""
    for line in Segment.split_lines(part for part in rendered if isinstance(part, Segment)):
        while line and not line[-1].text.strip() and not _is_filled(line[-1]):
            line.pop()
        if line and not _is_filled(line[-1]):
            line[-1] = line[-1]._replace(text=line[-1].text.rstrip())
        yield from line
        yield Segment.line()


def _is_filled(part: Segment) -> bool:
    return bool(part.style and (part.style.reverse or part.style.bgcolor))


class _PipeableTable(Table):
    """A table that prints a row as its cells with tabs between them, for cut(1) and awk(1), if the
    output is no terminal."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width < UNBOUNDED_COLUMNS:
            yield from _strip_line_ends(super().__rich_console__(console, options))
            return
        rows = list(zip(*(column.cells for column in self.columns), strict=True))
        heading = [column.header for column in self.columns]
        for row in [heading, *rows] if self.show_header else rows:
            cells = (_plain_cell(cell, console) for cell in row)
            yield Segment(plain_rows.join_cells(cells))
            yield Segment.line()


def _plain_cell(cell: RenderableType, console: Console) -> str:
    if isinstance(cell, Text):
        return _BAR_PATTERN.sub("", cell.plain)
    if isinstance(cell, str):
        return cell
    return "".join(segment.text for segment in console.render(cell))


def make_plain_table(*columns: str) -> Table:
    """A table without lines; long cells are wrapped and not cut."""
    table = _PipeableTable(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
