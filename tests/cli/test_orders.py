"""`sentinel alerts ack|silence|unsilence` as people call it, also wrongly."""

import json
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
            code = main(["alerts", *words, "-c", "sentinel.yaml"])
        except SystemExit as error:
            code = int(error.code or 0)
        shown = capsys.readouterr()
        return code, (shown.out + shown.err).strip()

    main(["tick", "-c", "sentinel.yaml"])
    capsys.readouterr()
    return call


@pytest.fixture
def nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], say: Say
) -> Say:
    """The same, and the alert is about the node gpu-07."""
    labelled = CONFIG.replace('exit 2"]', 'exit 2"], labels: {node: gpu-07}')
    (tmp_path / "sentinel.yaml").write_text(labelled)
    main(["tick", "--all", "-c", "sentinel.yaml"])
    capsys.readouterr()
    return say


WRONG = [
    (["silence", "check=bad"], "a silence always ends: give --for 2h or --until 2026-12-24T18:00"),
    (["silence", "check=bad", "--for", "0s"], "the end of the silence lies in the past"),
    (["silence", "check=bad", "--until", "2020-01-01T00:00"], "the end of the silence lies in the past"),
    (["silence", "check=bad", "--until", "soon"], "'soon' is no moment; write it like 2026-12-24T18:00"),
    (["silence", "check=bad", "--for", "2x"], "'2x' is no duration; write it like 90s, 15m, 2h or 3d"),
    (["silence", "check=bad", "--for", "1h", "--until", "2099-01-01"], "a silence always ends: give --for 2h or --until 2026-12-24T18:00"),
    (["silence", "check=", "--for", "1h"], "'check=' is neither an alert's id or name nor KEY=VALUE such as check=scratch"),
    (["silence", "node=gpu-[16-01]", "--for", "1h"], "'gpu-[16-01]' is no list of nodes: the range 16-01 runs backwards; for a pattern write node=~REGEX"),
    (["silence", "subject=gpu-[01-16]", "--for", "1h"], "'gpu-[01-16]': brackets stand for one character here, not for numbers; write node=gpu-[01-16] for nodes, or subject=~ and a regular expression"),
    (["silence", "node=~gpu-(", "--for", "1h"], "'gpu-(' is no regular expression: missing ), unterminated subpattern at position 4"),
    (["silence", "bad", "nonsense[01-03]", "--for", "1h"], "'nonsense[01-03]': brackets stand for one character here, not for numbers; write node=nonsense[01-03] for nodes, or subject=~ and a regular expression"),
    (["silence", "check=bad", "nonsense", "--for", "1h"], "'nonsense' is neither an alert's id or name nor KEY=VALUE such as check=scratch"),
    (["silence", "gone", "--for", "1h"], "no alert has the id or name 'gone'; see: sentinel alerts list -c FILE, sentinel alerts history -c FILE"),
    (["ack", "gone"], "no alert has the id or name 'gone'; see: sentinel alerts list -c FILE, sentinel alerts history -c FILE"),
    (["silence", "check=bad", "--for", "59s"], "a silence is from 1m to 90d; longer ones belong into the file: silences"),
    (["silence", "check=bad", "--for", "91d"], "a silence is from 1m to 90d; longer ones belong into the file: silences"),
    (["unsilence", "x"], "no silence 'x' is in force; there are: none"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[" ".join(w) for w, _ in WRONG])
def test_what_makes_no_sense_is_told_in_one_line(say: Say, words: list[str], message: str) -> None:
    """And nothing is written."""
    code, said = say(*words)
    assert (code, said.replace(str(Path("sentinel.yaml").resolve()), "FILE")) == (
        64,
        f"sentinel: {message}",
    )
    assert "silence" not in say("list")[1]


def find_silence_id(said: str) -> str:
    """The id in the command that ends it."""
    return said.partition("unsilence ")[2].split()[0]


def test_an_alert_is_acknowledged_and_silenced_by_its_id(say: Say) -> None:
    """The beginning of it is enough; the list shows what holds it back."""
    alert = say("list")[1].splitlines()[1].split()[0]
    assert say("ack", alert[:4], "--who", "ann")[1].startswith(f"{alert}: acknowledged by ann")
    code, said = say("silence", alert, "--for", "2h", "--reason", "disk swap", "--who", "ann")
    assert (code, said[:15]) == (0, "silenced until ")
    name = find_silence_id(said)
    assert "by ann: check=bad cluster=lab subject=bad disk swap" in say("list")[1]
    assert say("unsilence", name) == (0, f"{name}: ended; alerts that still fire are sent again")


def test_an_order_of_the_command_line_is_logged_by_who_leads_and_its_note_shown(
    say: Say, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, by the next tick, as if it had been given on the page; not again by the one after."""
    alert = say("list")[1].splitlines()[1].split()[0]
    say("ack", alert, "--who", "ann", "--note", "disk \x1b[1mswap" + "x" * 500)
    name = find_silence_id(
        say("silence", alert, "--for", "2h", "--reason", "RMA", "--who", "ann")[1]
    )
    for words in (("show", alert), ("list",)):
        told = say(*words)[1]
        assert "ann" in told
        assert "disk" in told
        assert "x" * 400 not in told
    main(["tick", "--all", "-c", "sentinel.yaml"])
    lines = capsys.readouterr().err.splitlines()
    found = [e for e in map(json.loads, lines) if "how" in e]
    assert [(e["event"], e["who"], e["how"]) for e in found] == [
        ("ack", "ann", "cli"), ("silence", "ann", "cli"),
    ]  # fmt: skip
    assert (found[0]["alert"], found[0]["check"], found[1]["silence"]) == (alert, "bad", name)
    main(["status", "-c", "sentinel.yaml"])
    assert "disk" in capsys.readouterr().out
    main(["tick", "--all", "-c", "sentinel.yaml"])
    assert '"how"' not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "fits"),
    [
        (["node=gpu-[01-16]"], True),
        (["node=gpu-[08-16]"], False),
        (["node=gpu-1,gpu-[07-09]"], True),
        (["node!=gpu-07"], False),
        (["node!=gpu-[08-16]"], True),
        (["node=~gpu-0."], True),
        (["node=~gpu-0"], False),
        (["node!~gpu-.*"], False),
        (['node="gpu-07"', 'check="bad"'], True),
        (["{check=bad,node!=gpu-07}"], False),
        (["node=gpu-01", "node=gpu-07"], True),
        (["node=~gpu-.*", "node=~.*-08"], False),
    ],
)
def test_a_silence_is_of_the_nodes_that_it_says(nodes: Say, words: list[str], fits: bool) -> None:
    """The alert is about gpu-07; what was silenced is listed as it was typed."""
    code, said = nodes("silence", *words, "--for", "2h")
    assert code == 0
    assert ("no current alert matches it" not in said) == fits
    assert words[0].strip("{").split(",")[0] in nodes("list")[1]


def test_a_silence_that_fits_what_has_no_such_label_says_so(nodes: Say) -> None:
    """All but one node: that is every training's alert as well."""
    said = "it also matches alerts that do not have this label"
    assert said in nodes("silence", "node!=gpu-01", "--for", "2h")[1]
    assert said not in nodes("silence", "node!=gpu-01", 'node!=""', "--for", "2h")[1]


INHIBIT = """
state: ./state
cluster: lab
checks:
  down: {kind: exec, command: [/bin/sh, -c, "exit 2"], labels: {node: n1}}
  gpu-a: {kind: exec, command: [/bin/sh, -c, "exit $(cat gpus)"], labels: {node: n1}}
  gpu-b: {kind: exec, command: [/bin/sh, -c, "exit $(cat gpus)"], labels: {node: n10}}
  gpu-c: {kind: exec, command: [/bin/sh, -c, "exit $(cat gpus)"]}
channels: {book: {kind: file, path: ./book}, rack: {kind: file, path: ./rack}}
routes:
  - {match: {node: "n[9-10]"}, to: [rack], continue: true}
  - {to: [book]}
inhibit: [{when: {check: down}, mute: {matchers: ["check=~gpu-.*"]}, same: [node]}]
"""


def test_a_node_that_is_down_mutes_that_node_and_a_route_takes_a_host_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the file to the message: n1's alert is explained, n10's and that of no node are told."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sentinel.yaml").write_text(INHIBIT)
    for code in (0, 2):  # what mutes is there before: of one pass, either may end first
        (tmp_path / "gpus").write_text(f"{code}\n")
        main(["tick", "--all", "-c", "sentinel.yaml"])

    def told(name: str) -> list[str]:
        lines = (tmp_path / name).read_text().splitlines()
        return sorted(json.loads(line)["check"] for line in lines)

    assert (told("book"), told("rack")) == (["down", "gpu-b", "gpu-c"], ["gpu-b"])


def test_alerts_are_called_by_name(say: Say, capsys: pytest.CaptureFixture[str]) -> None:
    """By their check or subject, as people call them; of a check that is fine, why it is silent."""
    assert "acknowledged by" in say("ack", "bad")[1]
    code, said = say("silence", "ok", "--for", "1h")
    assert (code, "silenced until" in said) == (0, True)
    for word in ("ok", "bad"):
        assert main(["explain", word, "-c", "sentinel.yaml"]) == 0
    said = capsys.readouterr().out
    assert "ok (exec) is ok: last run" in said
    assert 'command: [/bin/sh, "-c", "exit 0"]' in said
    assert "no alert: nothing is wrong" in said
    assert "told when something is wrong: book" in said
    assert "silence " in said
    assert "firing critical: bad" in said
    assert say("ack", "nothing")[0] == 64


def test_a_check_and_a_subject_name_an_alert_or_one_to_come(
    say: Say, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one would say it, without quotes: `silence drained node-2`, also before there is an alert, and
    by the kind of the check. A list of nodes has a key of its own."""
    config = CONFIG.replace("  bad:", "  disks: {kind: fs, paths: [/no/a, /no/b]}\n  bad:")
    (tmp_path / "sentinel.yaml").write_text(config)
    main(["tick", "--all", "-c", "sentinel.yaml"])
    capsys.readouterr()
    assert say("ack", "disks", "/no/a")[0] == 0
    for words, fits in ((("disks", "/no/a"), True), (("fs", "/no/c"), False), (("fs",), True)):
        code, said = say("silence", *words, "--for", "1h")
        assert (code, "no current alert matches it" not in said) == (0, fits)
    assert "check=disks cluster=lab subject=/no/a" in say("list")[1]
    assert "kind=fs subject=/no/c" in say("list")[1]
    assert say("unsilence", "disks", "/no/a")[1].endswith(
        ": ended; alerts that still fire are sent again"
    )
    assert main(["explain", "disks", "/no/b", "-c", "sentinel.yaml"]) == 0
    assert capsys.readouterr().out.startswith("firing critical: disks /no/b for ")
    code, said = say("silence", "fs", "n[01-03]", "--for", "1h")
    assert (code, "write node=n[01-03] for nodes" in said) == (64, True)
    assert say("ack", "nobody", "knows", "it")[0] == 64


def test_a_name_with_several_alerts_asks_for_one(
    say: Say, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the ids to choose from; `explain` shows all of the check."""
    config = CONFIG.replace("  bad:", "  many: {kind: fs, paths: [/no/a, /no/b]}\n  bad:")
    (tmp_path / "sentinel.yaml").write_text(config)
    main(["tick", "--all", "-c", "sentinel.yaml"])
    capsys.readouterr()
    code, said = say("ack", "many")
    assert (code, "'many' has 2 alerts; name one" in said) == (64, True)
    assert say("ack", "many /no/a")[0] == 0
    assert main(["explain", "many", "-c", "sentinel.yaml"]) == 0
    assert capsys.readouterr().out.count("fires: /no/") == 2
