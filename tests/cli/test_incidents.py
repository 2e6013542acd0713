"""`sentinel incidents` as people call it, also wrongly."""

import json
from pathlib import Path
from typing import Any

import pytest

from sentinel.cli import main

CONFIG = """
state: ./state
cluster: lab
checks:
  one: {kind: exec, command: [/no/such/plugin], blind_after: 1}
  two: {kind: exec, command: [/no/such/plugin], blind_after: 1}
  bad: {kind: exec, command: [/bin/sh, -c, "echo '| <b>x</b>'; exit 2"]}
channels: {book: {kind: file, path: ./book}}
"""


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state in which one check is bad, and two cannot see for the same reason."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sentinel.yaml").write_text(CONFIG)
    main(["tick", "-c", "sentinel.yaml"])
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    try:
        code = main(["incidents", *words, "-c", "sentinel.yaml"])
    except SystemExit as error:
        code = int(error.code or 0)
    shown = capsys.readouterr()
    return code, shown.out + shown.err


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    code, out = said(capsys, "--json")
    assert code == 0
    rows: list[dict[str, Any]] = json.loads(out[out.index("[") :])
    return rows


def test_a_story_and_who_has_it(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two alerts of one cause are one incident and one message; ack takes both."""
    rows = listed(capsys)
    assert sorted((r["severity"], r["alerts"]) for r in rows) == [("critical", 1), ("unknown", 2)]
    told = [json.loads(line) for line in (there / "book").read_text().splitlines()]
    first = next(t for t in told if t["check"] != "bad")  # whichever of the two ended first
    assert sorted(t["check"] for t in told) == sorted(["bad", first["check"]])
    two = next(r["incident"] for r in rows if r["alerts"] == 2)
    assert first["incident"] == two
    code, story = said(capsys, two[:6])
    assert code == 0
    assert f"told with its cause: {first['check']}" in story
    assert said(capsys, "ack", two, "--who", "ann", "--note", "on it")[1].startswith(
        f"{two}: ann has its 2 alerts"
    )
    assert "ann: on it" in said(capsys)[1]


def test_a_post_mortem_is_a_page_of_markdown(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a plugin printed stays text in it."""
    rows = listed(capsys)
    bad = next(r["incident"] for r in rows if r["severity"] == "critical")
    page = said(capsys, "export", bad)[1]
    assert "## What happened" in page
    assert "<b>" not in page


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["nope"], 64, "no incident has the id 'nope'; see: sentinel incidents"),
        (["ack"], 64, "name one incident"),
        (["a", "b"], 64, "name one incident"),
    ],
)
def test_wrong_words(
    there: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, text: str
) -> None:
    """Named, with what to do."""
    found, out = said(capsys, *words)
    assert (found, text in out) == (code, True), out
