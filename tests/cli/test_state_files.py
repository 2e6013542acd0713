"""`sentinel state` as a person types it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.test_state import said

FILE = """\
state: {folder}/state
checks: {{marker: {{kind: exec, command: ["{command}"]}}}}
channels: {{book: {{kind: file, path: {folder}/book}}}}
"""


def configured(folder: Path, command: str = "false") -> str:
    file = folder / "sentinel.yaml"
    file.write_text(FILE.format(folder=folder, command=command))
    return str(file)


def book(folder: Path) -> list[dict[str, str]]:
    path = folder / "book"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_copy_and_its_way_back(tmp_path: Path) -> None:
    """An open alert that was told is not told again; that the state was put back is told once."""
    file = configured(tmp_path)
    assert said(tmp_path, "state", "check", "-c", file).stdout.endswith("no state yet\n")
    assert said(tmp_path, "tick", "-c", file).returncode == 0
    (first,) = book(tmp_path)
    copy = tmp_path / "copy.db"
    assert said(tmp_path, "state", "backup", str(copy), "-c", file).returncode == 0
    again = said(tmp_path, "state", "backup", str(copy), "-c", file)
    assert (again.returncode, "is there already" in again.stderr) == (73, True)
    done = said(tmp_path, "state", "restore", str(copy), "-c", file)
    assert done.returncode == 0
    assert "actions rest for an hour" in done.stderr
    assert "could have changed" not in done.stderr
    for _ in range(2):
        assert said(tmp_path, "tick", "--all", "-c", file).returncode == 0
    told = [row for row in book(tmp_path) if row["check"] == "sentinel"]
    assert [(row["subject"], row["reason"]) for row in told] == [
        ("state", "firing"),
        ("state", "resolved"),
    ]
    assert "restored from a copy" in told[0]["summary"]
    assert [row["alert"] for row in book(tmp_path) if row["check"] == "marker"] == [first["alert"]]


def test_a_copy_that_others_may_write_is_named_when_it_is_put_back(tmp_path: Path) -> None:
    """It may hold silences and messages of somebody else; whoever needs it now gets it."""
    file = configured(tmp_path)
    assert said(tmp_path, "tick", "-c", file).returncode == 0
    copy = tmp_path / "copy.db"
    assert said(tmp_path, "state", "backup", str(copy), "-c", file).returncode == 0
    copy.chmod(0o666)
    done = said(tmp_path, "state", "restore", str(copy), "-c", file)
    assert done.returncode == 0
    assert f"others could have changed this copy: {copy} may be written by everybody" in done.stderr


def test_the_exit_codes(tmp_path: Path) -> None:
    """0 what this version reads; 74 what it does not, with the remedy; 66 where there is nothing."""
    file = configured(tmp_path)
    assert said(tmp_path, "state", "backup", "x", "-c", file).returncode == 66
    assert said(tmp_path, "state", "migrate", "-c", file).returncode == 66
    assert said(tmp_path, "state", "restore", "nothing", "-c", file).returncode == 66
    assert said(tmp_path, "tick", "-c", file).returncode == 0
    done = said(tmp_path, "state", "check", "-c", file)
    assert (done.returncode, "rows in use" in done.stdout) == (0, True)
    assert said(tmp_path, "state", "migrate", "-c", file).returncode == 0
    with closing(sqlite3.connect(tmp_path / "state" / "sentinel.db")) as connection:
        connection.execute("UPDATE schema_version SET version = 99, oldest = 99")
        connection.commit()
    done = said(tmp_path, "state", "check", "-c", file)
    assert done.returncode == 74
    assert "written by a newer sentinel: schema 99" in done.stderr
    url = tmp_path / "url.yaml"
    url.write_text("state: postgresql://me:secret@db/sentinel\nchecks: {}\n")
    done = said(tmp_path, "state", "backup", "x", "-c", str(url))
    assert (done.returncode, "pg_dump" in done.stderr, "secret" in done.stderr) == (66, True, False)


def test_an_audit_row_that_cannot_be_read_is_named_with_its_remedy(tmp_path: Path) -> None:
    """`check` counts it, `repair` sets it aside; then it is as before, and actions rest."""
    file = configured(tmp_path)
    assert said(tmp_path, "state", "repair", "-c", file).returncode == 66
    assert said(tmp_path, "tick", "-c", file).returncode == 0
    assert "nothing was changed" in said(tmp_path, "state", "repair", "-c", file).stdout
    with closing(sqlite3.connect(tmp_path / "state/sentinel.db")) as db:
        db.execute("INSERT INTO actions (id, target, tried, unresolved, at, body) "
                   "VALUES ('a', 'b', 1, 0, 1, '[1')")  # fmt: skip
        db.commit()
    words = "1 actions cannot be read, so no action is done: sentinel state repair"
    assert words in said(tmp_path, "state", "check", "-c", file).stdout
    done = said(tmp_path, "nodes", "maintenance", "status", "-c", file)
    assert "sentinel state repair" in done.stderr
    done = said(tmp_path, "state", "repair", "-c", file)
    assert (done.returncode, "1 actions could not be read" in done.stdout) == (0, True)
    assert "actions rest for an hour" in done.stderr
    assert words not in said(tmp_path, "state", "check", "-c", file).stdout
    done = said(tmp_path, "nodes", "maintenance", "status", "-c", file)
    assert "were set aside" in done.stdout
