"""`sentinel alerts ack|silence|unsilence` as people call it, also wrongly."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel.cli import main

Say = Callable[..., tuple[int, str]]

CONFIG = """
state: ./state
cluster: lab
checks:
  ok: {kind: exec, command: [/bin/sh, -c, "exit 0"]}
  bad: {kind: exec, command: [/bin/sh, -c, "exit 2"]}
channels: {book: {kind: file, path: ./book}}
"""


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """A state with one alert; what a command says, and its exit code."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sentinel.yaml").write_text(CONFIG)

    def call(*words: str) -> tuple[int, str]:
        try:
            code = main(["alerts", *words])
        except SystemExit as error:
            code = int(error.code or 0)
        shown = capsys.readouterr()
        return code, (shown.out + shown.err).strip()

    main(["tick"])
    capsys.readouterr()
    return call


WRONG = [
    (["silence", "check=bad"], "a silence always ends: give --for 2h or --until 2026-12-24T18:00"),
    (["silence", "check=bad", "--for", "0s"], "the end of the silence lies in the past"),
    (["silence", "check=bad", "--until", "2020-01-01T00:00"], "the end of the silence lies in the past"),
    (["silence", "check=bad", "--until", "soon"], "'soon' is no moment; write it like 2026-12-24T18:00"),
    (["silence", "check=bad", "--for", "2x"], "'2x' is no duration; write it like 90s, 15m, 2h or 3d"),
    (["silence", "check=bad", "--for", "1h", "--until", "2099-01-01"], "a silence always ends: give --for 2h or --until 2026-12-24T18:00"),
    (["silence", "check=", "--for", "1h"], "'check=' is neither an alert's id nor KEY=VALUE such as check=scratch"),
    (["silence", "bad", "--for", "1h"], "no alert has the id 'bad'; see: sentinel alerts list, sentinel alerts history"),
    (["ack", "bad"], "no alert has the id 'bad'; see: sentinel alerts list, sentinel alerts history"),
    (["unsilence", "x"], "no silence 'x' is in force; there are: none"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[" ".join(w) for w, _ in WRONG])
def test_what_makes_no_sense_is_told_in_one_line(say: Say, words: list[str], message: str) -> None:
    """And nothing is written."""
    assert say(*words) == (64, f"sentinel: {message}")
    assert "silence" not in say("list")[1]


def test_an_alert_is_acknowledged_and_silenced_by_its_id(say: Say) -> None:
    """The beginning of it is enough; the list shows what holds it back."""
    alert = say("list")[1].splitlines()[1].split()[0]
    assert say("ack", alert[:4], "--who", "ann")[1].startswith(f"{alert}: acknowledged by ann")
    code, said = say("silence", alert, "--for", "2h", "--reason", "disk swap", "--who", "ann")
    assert (code, said[:15]) == (0, "silenced until ")
    name = said.split()[-1]
    assert "by ann: check=bad cluster=lab subject=bad disk swap" in say("list")[1]
    assert say("unsilence", name) == (0, f"{name}: ended; what still fires is told")
