"""Tables in a pipe are those of a terminal, without what renders them."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from sentinel.cli import plain_rows
from sentinel.cli.tables import UNBOUNDED_COLUMNS, make_plain_table

HEADER = ("alert", "", "check", "summary")
ROWS = [
    ("ba80c560dd", "critical", "disks /scratch", "92 % full, in 3 h at this rate"),
    ("1", "pending", "größe", "日本語 and e\u0301"),
    ("22", "", "[bold]x[/bold]", ""),
]


def test_rows_are_as_a_terminal_would_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    """To the byte: columns as wide as their widest cell, in columns of a terminal."""
    table = make_plain_table(*HEADER)
    for row in ROWS:
        table.add_row(*(Text(cell) for cell in row))
    out = io.StringIO()
    Console(file=out, width=UNBOUNDED_COLUMNS).print(table)
    plain_rows.print_rows(HEADER, ROWS)
    assert capsys.readouterr().out == out.getvalue()


def test_who_asked_for_a_width_gets_a_terminals_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """$COLUMNS wraps what is piped, too."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert plain_rows.is_piped()
    monkeypatch.setenv("COLUMNS", "60")
    assert not plain_rows.is_piped()
