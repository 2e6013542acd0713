"""A watchdog that cannot start says so first, once an hour, and never ends with 0."""

import json
import sqlite3
from pathlib import Path

import pytest

from sentinel.cli import main
from sentinel.clock import SystemClock
from sentinel.core.clock import shift_instant
from sentinel.store.migrations import NEWEST_SCHEMA_VERSION
from sentinel.store.opening import open_store
from sentinel.wiring import cannot_start

FILE = """\
cluster: lab
state: {folder}/state
checks: {{marker: {{kind: exec, command: ["true"]}}}}
channels:
  book: {{kind: file, path: {folder}/book}}
  gone: {{kind: exec, command: ["false"]}}
"""


@pytest.mark.parametrize("command", [("tick",), ("run",)])
def test_a_state_of_a_newer_sentinel_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Through every channel that works, with what to do; a second start within the hour is silent.
    When it starts again, the same channels hear of the end, once."""
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "sentinel.yaml"
    file.write_text(FILE.format(folder=tmp_path))
    assert main(["tick", "-c", str(file)]) == 0
    _set_version(tmp_path, NEWEST_SCHEMA_VERSION + 1)
    assert [main([*command, "-c", str(file)]) for _ in range(2)] == [74, 74]
    (told,) = [json.loads(line) for line in (tmp_path / "book").read_text().splitlines()]
    assert (told["check"], told["subject"], told["severity"]) == ("sentinel", "state", "critical")
    assert "nothing is watched" in told["summary"]
    assert "written by a newer sentinel" in told["summary"]
    _set_version(tmp_path, NEWEST_SCHEMA_VERSION)
    assert [main(["tick", "-c", str(file)]) for _ in range(2)] == [0, 0]
    _, end = [json.loads(line) for line in (tmp_path / "book").read_text().splitlines()]
    assert (end["alert"], end["reason"], end["status"]) == (told["alert"], "resolved", "ok")
    assert end["summary"] == "written"


def _set_version(folder: Path, version: int) -> None:
    with sqlite3.connect(folder / "state" / "sentinel.db") as connection:
        connection.execute("UPDATE schema_version SET version = ?1, oldest = ?1", (version,))
    connection.close()


def test_a_leader_that_stands_still_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the lock and has kept nothing for three intervals: a pass tells it once and ends
    with 74. Beside one that works a pass ends with 0 and tells nothing."""
    monkeypatch.setenv("HOME", str(tmp_path))
    file, book = tmp_path / "sentinel.yaml", tmp_path / "book"
    file.write_text(FILE.format(folder=tmp_path))
    assert main(["tick", "-c", str(file)]) == 0
    leader = open_store(str(tmp_path / "state"), SystemClock().now()).store
    leader.take_lead("a pass that hangs", SystemClock().now())
    assert main(["tick", "-c", str(file)]) == 0
    assert not book.exists()
    later = shift_instant(SystemClock().now(), 2 * cannot_start.MAX_LEADER_SILENCE_S)
    monkeypatch.setattr(SystemClock, "now", lambda _: later)
    assert [main(["tick", "-c", str(file)]) for _ in range(2)] == [74, 74]
    (told,) = [json.loads(line) for line in book.read_text().splitlines()]
    assert told["subject"] == "state"
    assert "another sentinel leads: a pass that hangs since" in told["summary"]
    assert "written nothing for 30m" in told["summary"]
    leader.close()
    assert main(["tick", "-c", str(file)]) == 0
    *_, end = [json.loads(line) for line in book.read_text().splitlines()]
    assert (end["alert"], end["status"]) == (told["alert"], "ok")


def test_a_server_that_is_away_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a service too, which would stand by if another led."""
    monkeypatch.setenv("HOME", str(tmp_path))
    file, url = tmp_path / "sentinel.yaml", f"postgresql://nobody@/none?host={tmp_path}"
    file.write_text(FILE.format(folder=tmp_path).replace(f"{tmp_path}/state", f"'{url}'"))
    assert [main([command, "-c", str(file)]) for command in ("run", "tick")] == [74, 74]
    (told,) = [json.loads(line) for line in (tmp_path / "book").read_text().splitlines()]
    assert "nothing is watched: postgresql://nobody@/none" in told["summary"]
