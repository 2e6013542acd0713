"""`sentinel config check --since`: its tables, its JSON, and what it says where there is no past."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sentinel.cli import main
from sentinel.core.clock import shift_instant
from sentinel.core.model import Finding
from sentinel.wiring import app
from tests.replayed.weeks import FILE, PASS_S, START, bad, live_through, write_file

END = shift_instant(START, 10 * PASS_S)


def one_bad_day(number: int) -> Mapping[str, Sequence[Finding]]:
    return {"nodes": [bad("node-1")] if 2 <= number < 8 else []}


@pytest.fixture
def lived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a state of ten passes, whose file is the one in use."""
    (tmp_path / "state").mkdir()
    path = write_file(tmp_path)
    live_through(app.load_settings_from(str(path)), one_bad_day, 10)
    monkeypatch.setenv("SENTINEL_CONFIG", str(path))
    monkeypatch.setattr("sentinel.clock.SystemClock.now", lambda _: END)
    return tmp_path


def ask(path: Path, *more: str) -> int:
    return main(["config", "check", "-c", str(path), "--since", "30d", *more])


def test_tables_and_what_is_unknown(
    lived: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = FILE.replace("job: llm", "job: llm, stale_after: 1h")
    assert ask(write_file(lived, text, "wanted.yaml")) == 0
    out = capsys.readouterr().out
    assert "nothing is sent" in out
    assert "nothing is kept from before that" in out
    rows = [line.split("\t") for line in out.splitlines() if "\t" in line]
    assert ["checks.trainings", "0", "cannot be known from history (stale_after)"] in rows
    assert ["checks.nodes", "4", "4"] in rows
    assert ["oncall", "2", "2", "at least 2"] in rows


def test_a_terminal_of_80_columns(
    lived: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = FILE.replace("job: llm", "job: llm, stale_after: 1h").replace("for: 2h", "for: 1h")
    assert ask(write_file(lived, text, "wanted.yaml")) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines() if ".yaml" not in line), out


def test_json(lived: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(lived / "sentinel.yaml", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {"channel": "oncall", "user": "", "sent": 2, "now": 2, "with_this_file": 2,
            "at_least": False} in found["recipients"]  # fmt: skip
    assert found["notes"] == []


def test_it_changes_nothing(lived: Path) -> None:
    database = lived / "state" / "sentinel.db"
    before = database.read_bytes()
    assert ask(lived / "sentinel.yaml") == 0
    assert database.read_bytes() == before
    assert not (lived / "state" / "book.jsonl").exists()


def test_no_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(write_file(tmp_path)) == 66
    assert "there is no state yet, so nothing can be played" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_an_empty_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "state").mkdir()
    path = write_file(tmp_path)
    live_through(app.load_settings_from(str(path)), lambda _: {}, 1)
    assert ask(path) == 0
    assert "the state keeps no alert and no number yet" in capsys.readouterr().out


def test_a_newer_state(lived: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(lived / "state" / "sentinel.db") as database:
        database.execute("UPDATE schema_version SET version = 99, oldest = 99")
    database.close()
    assert ask(lived / "sentinel.yaml") == 74
    assert "written by a newer sentinel" in capsys.readouterr().err


def test_json_is_for_the_past_alone(lived: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", "-c", str(lived / "sentinel.yaml"), "--json"]) == 64
    assert main(["config", "check", "-c", str(lived / "sentinel.yaml"), "--since", "x"]) == 64
