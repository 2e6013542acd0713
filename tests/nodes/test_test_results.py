"""Verdicts of node tests, pairs of nodes, and which nodes to leave out."""

import socket
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, Popen, run
from typing import Any

import pytest

from sentinel.core.actions import ActionOutcome, ActionRecord, NodeReading
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Node
from sentinel.nodes.node_tests import _START, _program
from sentinel.nodes.test_results import (
    Verdict,
    absences,
    again,
    failed_tests,
    pairs,
    record,
    unusable,
    verdicts,
)
from sentinel.slurm.gres import count_gres_gpus
from sentinel.testing import START
from tests.lab.paths import ROOT
from tests.lab.waiting import wait_until

PROGRAM = ROOT / "sentinel/nodes/node_test.py"

DAY = 86_400.0


def verdict(node: str, word: str = "pass") -> Verdict:
    return Verdict(node=node, word=word, text="x")


def test_only_lines_with_the_mark_are_believed() -> None:
    """What else srun and login files print is no verdict; a silent node was not tested."""
    out = "Welcome!\nm n1 pass 8 GPUs\nm n9 pass forged\nother n2 pass forged\nm n2 fail \x1b[1m\n"
    assert verdicts(out, "m", ["n1", "n2", "n3"], "srun: error: denied") == [
        Verdict(node="n1", word="pass", text="8 GPUs"),
        Verdict(node="n2", word="fail", text="\\x1b[1m"),
        Verdict(node="n3", word="untested", text="srun: error: denied"),
    ]
    assert verdicts("", "m", ["n1"], "")[0].text == "the test did not come to its end"


@pytest.mark.parametrize(
    ("nodes", "couples"),
    [
        ("", []),
        ("a", [("a",)]),
        ("ab", [("a", "b")]),
        ("abc", [("a", "b"), ("c", "a")]),
        ("abcd", [("a", "b"), ("c", "d")]),
    ],
)
def test_pairs(nodes: str, couples: list[tuple[str, ...]]) -> None:
    """Every node is in one; the odd one out borrows the first."""
    assert pairs(tuple(nodes)) == couples


def test_who_fails_is_tried_again_beside_a_good_one() -> None:
    """Of a pair that fails one may be well; where none is good, nobody can tell."""
    first = [verdict("a", "fail"), verdict("b", "fail"), verdict("c"), verdict("d", "missing")]
    assert again(first) == [("a", "c"), ("b", "c")]
    assert again([verdict("a", "fail"), verdict("b", "untested")]) == []


def entry(word: str, test: str = "cuda", ago: float = 60.0) -> ActionRecord:
    told = Verdict(node="n1", word=word, text="why")
    return record(told, test, "alice by hand", f"{word}{ago}", shift_instant(START, -ago))


def test_a_record_of_a_test_is_over_at_once() -> None:
    """An open one would stop everything else on that node."""
    words = {
        "pass": ActionOutcome.DONE,
        "fail": ActionOutcome.ERROR,
        "missing": ActionOutcome.NO_EFFECT,
    }
    for word, outcome in words.items():
        made = entry(word)
        assert (made.outcome, made.outcome.is_open, made.ended is None) == (outcome, False, False)


@pytest.mark.parametrize(
    ("records", "bad"),
    [
        ([], []),
        ([entry("fail")], ["test cuda: fail: why"]),
        ([entry("pass"), entry("fail", ago=90)], []),
        ([entry("fail"), entry("pass", ago=90)], ["test cuda: fail: why"]),
        ([entry("missing"), entry("fail", ago=90)], ["test cuda: fail: why"]),
        ([entry("pass", "fs"), entry("fail", ago=90)], ["test cuda: fail: why"]),
        ([entry("fail", ago=DAY)], []),
        ([entry("fail", ago=DAY - 1)], ["test cuda: fail: why"]),
    ],
)
def test_the_last_word_of_each_test_counts(records: list[ActionRecord], bad: list[str]) -> None:
    """Newest first; what could not be tested says nothing, and what is old is forgotten."""
    assert failed_tests(records, START, DAY) == bad


def left(ago: float, **more: Any) -> NodeReading:
    told = {"node": "n1", "state": "DOWN", "reason": "", "user": "", "reason_time": None}
    at = shift_instant(START, -ago)
    return NodeReading(**{**told, "out": True, "seen": at, "left": at, **more})


def test_a_node_that_left_service_too_often() -> None:
    """Within the time; lines of the ledger that are no leaving do not count."""
    times = [left(60), left(DAY - 1), left(DAY), left(120, left=None)]
    assert absences(times, START, DAY, 2) == "left service 2 times within 1d"
    assert absences(times, START, DAY, 3) == ""


def test_a_node_that_slurm_does_not_give() -> None:
    """In the state's and the reason's words."""
    assert unusable(Node(name="n1", state="IDLE")) == ""
    down = Node(name="n1", state="DOWN", reason="bad dimm")
    assert unusable(down) == "DOWN: bad dimm"


def test_gpus_of_a_node() -> None:
    """By its Gres; slices of MIG hide the number."""
    assert (
        count_gres_gpus("gpu:h100:8(S:0-1)"),
        count_gres_gpus(""),
        count_gres_gpus("gpu:1g.5gb:7"),
    ) == (8, 0, None)


def test_a_test_of_a_file_system_writes_into_nothing_that_is_there(tmp_path: Path) -> None:
    """Where others may write, links could wait under each name that can be foreseen."""
    precious, place = tmp_path / "precious", tmp_path / "shared"
    precious.write_text("keys")
    place.mkdir()
    argv = [sys.executable, "-", "mark", "fs", "n1", "-", "0", "0", str(place)]
    with Popen(argv, stdin=PIPE, stdout=PIPE) as test:  # its number is known before it begins
        link = place / f".sentinel-test-{socket.gethostname()}-{test.pid}"
        link.symlink_to(precious)
        out, _ = test.communicate(PROGRAM.read_bytes(), 60)
    assert b"read back" in out
    assert (precious.read_text(), [p.name for p in place.iterdir()]) == ("keys", [link.name])


def test_a_stranger_does_not_speak_for_the_second_node() -> None:
    """Everybody who reaches a node can connect to the port of its test, and the port is among the
    arguments of srun. Silent and lying strangers come first, and the second node after them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    argv = [
        sys.executable,
        "-I",
        "-c",
        _START,
        "mark",
        "network",
        "n1",
        "127.0.0.1",
        port,
        "0",
        ".",
    ]
    env = {"PATH": "/usr/bin:/bin", "SLURM_NTASKS": "2"}
    program = _program()
    with Popen(argv, stdin=PIPE, stdout=PIPE, env={**env, "SLURMD_NODENAME": "n1"}) as first:
        assert first.stdin
        first.stdin.write(program)
        first.stdin.close()
        first.stdin = None
        said = [b"", b"else", b"same" * 20, b"\0" * 32]
        strangers = [wait_until(lambda: connected(port), "the port", 30)]
        strangers += [socket.create_connection(("127.0.0.1", int(port))) for _ in said[1:]]
        for stranger, words in zip(strangers, said, strict=True):
            stranger.sendall(words)
        env["SLURMD_NODENAME"] = "n2"
        second = run(argv, input=program, stdout=PIPE, env=env, timeout=60, check=True)
        out, _ = first.communicate(timeout=60)
        for stranger in strangers:
            stranger.close()
    lines = (out + second.stdout).decode().splitlines()
    assert [line.split()[:3] for line in lines] == [["mark", "n1", "pass"], ["mark", "n2", "pass"]]


def connected(port: str) -> socket.socket | None:
    with suppress(OSError):
        return socket.create_connection(("127.0.0.1", int(port)))
    return None
