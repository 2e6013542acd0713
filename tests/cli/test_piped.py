"""Tables in a pipe are those of a terminal, without what renders them."""

import io
import re

import pytest
from rich.console import Console, Group
from rich.text import Text

from sentinel.cli import plain_rows
from sentinel.cli.tables import UNBOUNDED_COLUMNS, FittedTable, make_plain_table

HEADER = ("alert", "", "check", "summary")
ROWS = [
    ("ba80c560dd", "critical", "disks /scratch", "92 % full, in 3 h at this rate"),
    ("1", "pending", "größe", "日本語 and e\u0301"),
    ("22", "", "[bold]x[/bold]", "z"),
]


def test_rows_are_as_a_terminal_would_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    """To the byte: a line a row, tabs between the cells, nothing padded."""
    table = make_plain_table(*HEADER)
    for row in ROWS:
        table.add_row(*(Text(cell) for cell in row))
    out = io.StringIO()
    Console(file=out, width=UNBOUNDED_COLUMNS).print(table)
    plain_rows.print_rows(HEADER, ROWS)
    said = capsys.readouterr().out
    assert said == out.getvalue()
    assert (
        said.splitlines()[1]
        == "ba80c560dd\tcritical\tdisks /scratch\t92 % full, in 3 h at this rate"
    )
    assert "  " not in said


def test_a_cell_is_one_line_of_whole_words(capsys: pytest.CaptureFixture[str]) -> None:
    """A tab or an end of line within it would be another column or row."""
    plain_rows.print_rows(("a", "b"), [("x\ty", "one\n  two ")])
    assert capsys.readouterr().out == "a\tb\nx y\tone   two\n"


def test_tables_within_tables_are_piped_in_the_same_way() -> None:
    """One that leaves out columns on a narrow terminal, and one of a group, have all."""
    table = make_plain_table("host", "note")
    table.add_row("n1", Text("well"))
    for shown in (FittedTable(table, "note"), Group(table)):
        out = io.StringIO()
        Console(file=out, width=UNBOUNDED_COLUMNS).print(shown)
        assert out.getvalue() == "host\tnote\nn1\twell\n"


def test_who_asked_for_a_width_gets_a_terminals_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """$COLUMNS wraps what is piped, too."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert plain_rows.is_piped()
    monkeypatch.setenv("COLUMNS", "60")
    assert not plain_rows.is_piped()


def test_no_line_of_a_terminal_ends_in_blanks() -> None:
    """They would be copied, and wrap on a narrower terminal. A row that is marked stays filled."""
    table = make_plain_table("host", "note")
    table.add_row("n1", Text("a longer note"))
    table.add_row("n2", Text("short"))
    table.add_row("n3", Text("x"), style="reverse")
    out = io.StringIO()
    Console(file=out, width=80, force_terminal=True, color_system="standard").print(table)
    said = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()).splitlines()
    assert said[:3] == ["host  note", "n1    a longer note", "n2    short"]
    assert said[3].startswith("n3    x   ")
