"""`sentinel check` on a terminal: the table that the kind declares, and the problems in words below
it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from sentinel.alerting.observations import RunOutcome
from sentinel.cli.outcome_cells import (
    WIDE_COLUMNS,
    CellSource,
    SampleHistory,
    make_finding_source,
    render_cell,
)
from sentinel.cli.outcome_formats import list_commands
from sentinel.cli.tables import STATUS_COLOURS, FittedTable, make_console, make_plain_table
from sentinel.core.clock import Instant
from sentinel.core.model import Finding, Status
from sentinel.core.shown import FILESYSTEM_COLUMNS, Cell, Column, SubjectCells
from sentinel.core.text import visible, visible_lines

MAX_ROWS = 50
"""Rows of one table at most; problems come first."""

MAX_SUBJECT_COLUMNS = 40
OWN_VALUES = ("subject", "status", "summary")
"""Values that every finding has: a row with only these shows nothing in the kind's own table."""

DEFAULT_COLUMNS = (
    Column("status", "status", "status"),
    Column("subject", "subject"),
    Column("summary", "summary"),
)
"""Columns of a kind that declares none."""

MAX_LINE_CHARS = 1000
"""Characters of a line that is cut to the screen."""

RIGHT_ALIGNED = ("count", "number", "size", "percent", "celsius", "time", "change", "rate", "full")


def print_check_table(
    outcome: RunOutcome, plugin: Any, history: SampleHistory, now: Instant
) -> None:
    """Print the findings of one run, the worst first."""
    out = make_console()
    columns = choose_columns(plugin)
    shown: Mapping[str, SubjectCells] = outcome.report.shown if outcome.report else {}
    findings = sorted(outcome.findings, key=lambda f: -f.status.rank)
    rows = [
        make_finding_source(
            f,
            shown.get(f.subject, SubjectCells()).cells,
            history,
            now,
            wide=out.width >= WIDE_COLUMNS,
        )
        for f in findings
    ]
    told = [has_own_values(columns, row) for row in rows]
    _print_table(out, columns, [row for row, fits in zip(rows, told, strict=True) if fits])
    for finding, row, fits in zip(findings, rows, told, strict=True):
        parts = shown.get(finding.subject, SubjectCells())
        in_table = fits and (finding.status is Status.OK or "summary" in _list_values(columns))
        if not in_table:
            out.print(_render_words(finding))
        _print_details(out, columns, row, parts.notes if parts.rows else finding.details)
        _print_rows(out, plugin.ROW_COLUMNS, parts.rows, row)
        for line in finding.guidance.list_lines():
            out.print(Text(visible(line)))
        # They are pasted, so no line of them is wrapped.
        for command in list_commands(finding):
            out.print(Text(command), soft_wrap=True)


def choose_columns(plugin: Any) -> Sequence[Column]:
    """The columns that the kind declares. Without any, those of its panel."""
    drawn = FILESYSTEM_COLUMNS if plugin.PANEL == "disks" else DEFAULT_COLUMNS
    return plugin.COLUMNS or drawn


def _print_table(out: Console, columns: Sequence[Column], rows: Sequence[CellSource]) -> None:
    if not rows:
        return
    out.print(build_table(columns, rows[:MAX_ROWS]))
    if rest := rows[MAX_ROWS:]:
        bad = sum(row.status is not Status.OK for row in rest)
        out.print(Text(f"and {len(rest)} more{f', {bad} not ok' if bad else ', all ok'}", "dim"))


def _print_details(out: Console, columns: Sequence[Column], row: CellSource, details: str) -> None:
    """Further lines. Where the kind shows lines of a log, each is cut to the screen; the last one
    stands alone where there are no others."""
    logged = [column for column in columns if column.form == "line"]
    if details and not logged:
        out.print(Text(visible_lines(details), style="dim"))
        return
    lines = visible_lines(details).splitlines()
    if not lines:
        lines = [f"{c.title}: {text}" for c in logged if (text := row.values.get(c.value))]
    for line in lines:
        text = Text(visible(line[:MAX_LINE_CHARS]), "dim")
        out.print(text, no_wrap=True, overflow="ellipsis")


def _print_rows(
    out: Console, columns: Sequence[Column], rows: Sequence[Mapping[str, Cell]], about: CellSource
) -> None:
    """Print what one subject consists of."""
    if not (rows and columns):
        return
    sources = [
        CellSource(
            values=row,
            status=Status.OK,
            subject=about.subject,
            history=about.history,
            now=about.now,
            wide=about.wide,
        )
        for row in rows[:MAX_ROWS]
    ]
    out.print(Text(""))
    out.print(build_table(columns, sources))
    if len(rows) > MAX_ROWS:
        out.print(Text(f"and {len(rows) - MAX_ROWS} more", "dim"))


def has_own_values(columns: Sequence[Column], row: CellSource) -> bool:
    """Whether any of the kind's own columns has a value for the row."""
    own = [column for column in columns if column.value not in OWN_VALUES]
    return not own or any(column.value in row.measured for column in own)


def build_table(columns: Sequence[Column], rows: Sequence[CellSource]) -> FittedTable:
    """The table without columns that are empty in all rows."""
    columns = [column for column in columns if column.form != "line"]
    cells = [[render_cell(column, row) for row in rows] for column in columns]
    kept = [(c, found) for c, found in zip(columns, cells, strict=True) if any(found)]
    table = make_plain_table(*(column.title for column, _ in kept))
    for place, (column, _) in zip(table.columns, kept, strict=True):
        place.no_wrap = column.form != "text"
        place.justify = "right" if column.form in RIGHT_ALIGNED else "left"
        place.max_width = MAX_SUBJECT_COLUMNS if column.value == "subject" else None
    for row in zip(*(found for _, found in kept), strict=True):
        table.add_row(*(Text("–", style="dim") if cell is None else cell for cell in row))
    return FittedTable(table, *_list_optional_titles([column for column, _ in kept]))


def _list_optional_titles(columns: Sequence[Column]) -> Iterator[str]:
    yield from (column.title for column in reversed(columns) if column.optional)


def _list_values(columns: Sequence[Column]) -> set[str]:
    return {column.value for column in columns}


def _render_words(finding: Finding) -> Text:
    text = Text(f"{finding.status.value} ", style=STATUS_COLOURS[finding.status])
    words = f"{finding.subject}: {finding.summary}" if finding.subject else finding.summary
    return text.append(visible(words), style="default")
