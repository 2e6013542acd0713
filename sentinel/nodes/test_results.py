"""Results of node tests: their types, how they are read, and which nodes to leave out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from sentinel.core.actions import ActionOutcome, ActionRecord, NodeReading
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.cluster import Node
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.nodes.history import is_out

PAIRS = frozenset({"barrier", "network", "ib"})
"""Tests of two nodes together."""

MEASURED = frozenset({"disk", "memory", "nccl", "ib"})
"""Tests that run a program which measures, and judge nodes against others of their kind."""

TESTS: Mapping[str, str] = {
    "cuda": "every GPU is visible and computes",
    "gpu-memory": "90% of each GPU's free memory can be had and keeps what is written",
    "barrier": "NCCL (gloo without GPUs) all_reduce and barrier over pairs of nodes",
    "network": "16 MiB over TCP between pairs of nodes",
    "fs": "16 MiB written to --path and read back",
    "command": "a command of yours ends with exit code 0",
    "disk": "fio on a local disk is as fast as on the other nodes of its kind",
    "memory": "STREAM is as fast as on the other nodes of its kind",
    "nccl": "all_reduce_perf over the node's GPUs is as fast as on the other nodes of its kind",
    "ib": "ib_write_bw between pairs of nodes is as fast as between others of their kind",
}

FAULTY = ("slow", "fail")
"""Verdicts that blame the node."""

ACTION = "test"
"""Name of a test in the audit log; `params` say which test it was."""

_OUTCOMES = {
    "pass": ActionOutcome.DONE,
    "fail": ActionOutcome.ERROR,
    "slow": ActionOutcome.ERROR,
}


class Verdict(Struct, frozen=True, kw_only=True):
    """The result of a test for one node, and why: pass, fail, missing (the node lacks what the test
    needs) or untested; of tests that measure also slow and inconclusive."""

    node: str
    word: str
    text: str


class MeasuredVerdict(Verdict, frozen=True, kw_only=True):
    """A verdict of a test that measures."""

    measures: Mapping[str, float] = {}  # What the node reached, by the name of the measure.


def verdicts(out: str, mark: str, nodes: Sequence[str], trouble: str) -> list[Verdict]:
    """One verdict for each node, from srun's output. `trouble` is the error of srun itself."""
    found: dict[str, Verdict] = {}
    for line in out.splitlines():
        words = line.split(" ", 3)
        if len(words) == 4 and words[0] == mark and words[1] in nodes:
            found[words[1]] = Verdict(node=words[1], word=words[2], text=visible(words[3]))
    why = visible(trouble or "the test did not come to its end")
    return [found.get(n) or Verdict(node=n, word="untested", text=why) for n in nodes]


def pairs(nodes: Sequence[str]) -> list[tuple[str, ...]]:
    """Neighbours as pairs; if their number is odd, the last is paired with the first."""
    couples: list[tuple[str, ...]] = [tuple(nodes[i : i + 2]) for i in range(0, len(nodes), 2)]
    if couples and len(couples[-1]) == 1 and len(nodes) > 1:
        couples[-1] = (nodes[-1], nodes[0])
    return couples


def again(first: Sequence[Verdict]) -> list[tuple[str, ...]]:
    """Pairs for a second test: each node that failed, beside one that passed."""
    good = [v.node for v in first if v.word == "pass"]
    bad = [v.node for v in first if v.word in ("fail", "untested")]
    return [(node, good[i % len(good)]) for i, node in enumerate(bad)] if good else []


def record(verdict: Verdict, test: str, by: str, number: str, now: Instant) -> ActionRecord:
    """The verdict as an entry of the audit log, where `nodes exclude` and people find it."""
    measures = verdict.measures if isinstance(verdict, MeasuredVerdict) else {}
    numbers = {"measures": " ".join(f"{n}={v:.6g}" for n, v in measures.items())}
    return ActionRecord(
        id=number,
        action=ACTION,
        target=verdict.node,
        reason=test,
        by=by,
        at=now,
        outcome=_OUTCOMES.get(verdict.word, ActionOutcome.NO_EFFECT),
        params={"test": test} | (numbers if measures else {}),
        detail=f"{verdict.word}: {verdict.text}",
        ended=now,
    )


def failed_tests(records: Iterable[ActionRecord], now: Instant, within: float) -> list[str]:
    """The text of the last test of each name, if it failed. `records`: the newest first."""
    last: dict[str, ActionRecord] = {}
    for entry in records:
        known = entry.outcome in (ActionOutcome.DONE, ActionOutcome.ERROR)
        if entry.action == ACTION and known and get_elapsed_s(entry.at, now) < within:
            last.setdefault(entry.params.get("test", ""), entry)
    bad = [entry for entry in last.values() if entry.outcome is ActionOutcome.ERROR]
    return [f"test {entry.params.get('test', '')}: {entry.detail}" for entry in bad]


def find_last_test(records: Iterable[ActionRecord], test: str) -> ActionRecord | None:
    """The last entry of this test. `records`: the newest first."""
    found = (r for r in records if r.action == ACTION and r.params.get("test") == test)
    return next(found, None)


def absences(readings: Iterable[NodeReading], now: Instant, within: float, most: int) -> str:
    """Why the node is not trusted, if it left service at least `most` times within `within`
    seconds; else empty."""
    times = sum(1 for r in readings if r.left is not None and get_elapsed_s(r.left, now) < within)
    return f"left service {times} times within {duration_text(within)}" if times >= most else ""


def unusable(node: Node) -> str:
    """Why Slurm does not give the node to jobs; empty if it does."""
    return f"{node.state}: {node.reason or 'no reason given'}" if is_out(node) else ""
