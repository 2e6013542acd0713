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
  bad: {kind: exec, command: [/bin/sh, -c, "echo '<b>x</b>'; exit 2"]}
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
    assert f"told with its cause: check {first['check']}" in story
    bad = next(r["incident"] for r in rows if r["alerts"] == 1)
    lines = said(capsys, bad)[1].splitlines()
    at = lines.index(f"    $ sentinel check bad -c {there / 'sentinel.yaml'}")
    assert lines[at - 1].startswith("    # on "), "where and as whom it is run"
    assert said(capsys, "ack", two, "--who", "ann", "--note", "on it")[1].startswith(
        f"{two}: ann has its 2 alerts"
    )
    assert "ann: on it" in said(capsys)[1]


@pytest.mark.parametrize(("columns", "lines"), [("80", 6), ("160", 4)])
def test_a_narrow_history_has_a_line_for_each_summary(
    there: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    columns: str, lines: int,
) -> None:  # fmt: skip
    """As a column of twenty characters nobody reads it."""
    monkeypatch.setenv("COLUMNS", columns)
    capsys.readouterr()
    assert main(["alerts", "history", "-c", "sentinel.yaml"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert any(line.strip().endswith("<b>x</b>") for line in shown)
    assert len(shown) >= lines
    assert max(map(len, shown)) <= int(columns)


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


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    code, out = said(capsys, *words)
    assert code == 0, out
    return out


def pair(capsys: pytest.CaptureFixture[str]) -> str:
    """The incident of two alerts."""
    return str(next(r["incident"] for r in listed(capsys) if r["alerts"] == 2))


def test_what_people_say_is_shown_wherever_the_incident_is(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whose it is, what was written, and when; also in the next message and in `explain`."""
    two = pair(capsys)
    assert told(capsys, "assign", two, "bob").endswith("assigned to bob\n")
    told(capsys, "comment", two, "waits", "for", "a", "disk", "--who", "ann")
    row = next(r for r in listed(capsys) if r["incident"] == two)
    assert (row["assigned_to"], row["comment"]) == ("bob", "ann: waits for a disk")
    assert "(assigned to bob) (ann: waits for a disk)" in " ".join(told(capsys).split())
    assert "ann: comment: waits for a disk" in told(capsys, two)
    main(["explain", two, "-c", "sentinel.yaml"])
    assert "comment by ann: waits for a disk" in capsys.readouterr().out


def test_a_cause_closes_it_for_those_who_know(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What still fires is acknowledged; it ends when its alerts do."""
    two = pair(capsys)
    out = told(capsys, "close", two, "the plugin was removed", "--who", "ann")
    assert "its 2 alerts are acknowledged until they end" in out
    assert "close: the plugin was removed" in told(capsys, two)


def test_an_alert_that_was_split_off_is_told(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the next pass, by itself; the cause of an incident is the incident."""
    two = pair(capsys)
    _, text = said(capsys, two, "--json")
    other = next(m["alert"] for m in json.loads(text)["members"] if m["alert"] != two)
    assert said(capsys, "split", two, two)[0] == 64
    told(capsys, "split", two, other)
    before = len((there / "book").read_text().splitlines())
    main(["tick", "--all", "-c", "sentinel.yaml"])
    lines = (there / "book").read_text().splitlines()[before:]
    assert [json.loads(line)["alert"] for line in lines] == [other]
    assert sorted(r["alerts"] for r in listed(capsys)) == [1, 1, 1]


def test_silencing_covers_what_is_there_now(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several at once; a later alert about the same is told."""
    names = [r["incident"] for r in listed(capsys)]
    assert said(capsys, "silence", *names)[0] == 64
    assert told(capsys, "silence", *names, "--for", "2h").startswith("3 alerts silenced until ")
    main(["alerts", "list", "-c", "sentinel.yaml"])
    assert "3 alerts of then" in capsys.readouterr().out
    plugin = there / "sentinel.yaml"
    bad, before = plugin.read_text(), len((there / "book").read_text().splitlines())
    plugin.write_text(bad.replace("exit 2", "exit 0"))
    main(["tick", "--all", "-c", "sentinel.yaml"])
    plugin.write_text(bad)
    main(["tick", "--all", "-c", "sentinel.yaml"])
    lines = (there / "book").read_text().splitlines()[before:]
    assert [json.loads(line)["reason"] for line in lines] == ["resolved", "firing"]
    bad_one = next(r for r in listed(capsys) if r["severity"] == "critical")
    story = told(capsys, bad_one["incident"])
    assert "again: second time in 14 days" in story
    assert "<b>x</b>; ended by: " in story


def test_a_post_mortem_with_plots_is_one_file(
    there: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Text of others stays text in it."""
    bad = next(r["incident"] for r in listed(capsys) if r["severity"] == "critical")
    page = told(capsys, "export", bad, "--html")
    assert page.startswith("<!doctype html>")
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "<b>" not in page


def test_what_was_measured_is_drawn(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what happened in it."""
    disk = "full: {kind: fs, paths: [/], for: 0s, warn: {used: 1%}, crit: {used: 2%}}"
    head, tail = CONFIG[: CONFIG.index("checks:")], CONFIG[CONFIG.index("channels:") :]
    (there / "sentinel.yaml").write_text(f"{head}checks:\n  {disk}\n{tail}")
    for _ in range(2):
        main(["tick", "--all", "-c", "sentinel.yaml"])
    (row,) = listed(capsys)
    page = told(capsys, "export", row["incident"], "--html")
    assert "<svg" in page
    assert "full /: used percent" in page
    assert 'class="mark m-alert"' in page
