"""A watchdog that cannot start says so first, once an hour, and never ends with 0."""

import json
import sqlite3
from pathlib import Path

import pytest

from sentinel.cli import main
from sentinel.store.schema import VERSION

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
    """Through every channel that works, with what to do; a second start within the hour is silent."""
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "sentinel.yaml"
    file.write_text(FILE.format(folder=tmp_path))
    assert main(["tick", "-c", str(file)]) == 0
    with sqlite3.connect(tmp_path / "state" / "sentinel.db") as connection:
        connection.execute("UPDATE schema_version SET version = ?", (VERSION + 1,))
    connection.close()
    assert [main([*command, "-c", str(file)]) for _ in range(2)] == [74, 74]
    (told,) = [json.loads(line) for line in (tmp_path / "book").read_text().splitlines()]
    assert (told["check"], told["subject"], told["severity"]) == ("sentinel", "state", "critical")
    assert "nothing is watched" in told["summary"]
    assert "written by a newer sentinel" in told["summary"]
