"""Tests of nodes: their nouns, what came back, and which nodes to leave out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from sentinel.core.actions import ActionOutcome, ActionRecord, NodeReading
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.cluster import Node
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.nodes.history import is_out

PAIRS = frozenset({"barrier", "network"})
"""Tests of two nodes together."""

TESTS: Mapping[str, str] = {
    "cuda": "every GPU is visible and computes",
    "gpu-memory": "90% of each GPU's free memory can be had and keeps what is written",
    "barrier": "NCCL (gloo without GPUs) all_reduce and barrier over pairs of nodes",
    "network": "16 MiB over TCP between pairs of nodes",
    "fs": "16 MiB written to --path and read back",
    "command": "a command of yours ends with exit code 0",
}

ACTION = "test"
"""Name of a test in the audit log; `params` hold which."""

_OUTCOMES = {"pass": ActionOutcome.DONE, "fail": ActionOutcome.ERROR}


class Verdict(Struct, frozen=True, kw_only=True):
    """What a test says of one node: pass, fail, missing (what it needs) or untested, and why."""

    node: str
    word: str
    text: str


def verdicts(out: str, mark: str, nodes: Sequence[str], trouble: str) -> list[Verdict]:
    """One for each node from what srun printed; `trouble`: what srun itself complained of."""
    found: dict[str, Verdict] = {}
    for line in out.splitlines():
        words = line.split(" ", 3)
        if len(words) == 4 and words[0] == mark and words[1] in nodes:
            found[words[1]] = Verdict(node=words[1], word=words[2], text=visible(words[3]))
    why = visible(trouble or "the test did not come to its end")
    return [found.get(n) or Verdict(node=n, word="untested", text=why) for n in nodes]


def pairs(nodes: Sequence[str]) -> list[tuple[str, ...]]:
    """Neighbours; of an odd number the last is paired with the first."""
    couples: list[tuple[str, ...]] = [tuple(nodes[i : i + 2]) for i in range(0, len(nodes), 2)]
    if couples and len(couples[-1]) == 1 and len(nodes) > 1:
        couples[-1] = (nodes[-1], nodes[0])
    return couples


def again(first: Sequence[Verdict]) -> list[tuple[str, ...]]:
    """Each node of a pair that failed, beside one that is known to be good."""
    good = [v.node for v in first if v.word == "pass"]
    bad = [v.node for v in first if v.word in ("fail", "untested")]
    return [(node, good[i % len(good)]) for i, node in enumerate(bad)] if good else []


def record(verdict: Verdict, test: str, by: str, number: str, now: Instant) -> ActionRecord:
    """The verdict as an entry of the audit log, where `nodes exclude` and people find it."""
    return ActionRecord(
        id=number,
        action=ACTION,
        target=verdict.node,
        reason=test,
        by=by,
        at=now,
        outcome=_OUTCOMES.get(verdict.word, ActionOutcome.NO_EFFECT),
        params={"test": test},
        detail=f"{verdict.word}: {verdict.text}",
        ended=now,
    )


def failed_tests(records: Iterable[ActionRecord], now: Instant, within: float) -> list[str]:
    """What the last test of each name said where it was bad; `records` newest first."""
    last: dict[str, ActionRecord] = {}
    for entry in records:
        known = entry.outcome in (ActionOutcome.DONE, ActionOutcome.ERROR)
        if entry.action == ACTION and known and get_elapsed_s(entry.at, now) < within:
            last.setdefault(entry.params.get("test", ""), entry)
    bad = [entry for entry in last.values() if entry.outcome is ActionOutcome.ERROR]
    return [f"test {entry.params.get('test', '')}: {entry.detail}" for entry in bad]


def absences(readings: Iterable[NodeReading], now: Instant, within: float, most: int) -> str:
    """Whether the node left service so often that it is not to be trusted."""
    times = sum(1 for r in readings if r.left is not None and get_elapsed_s(r.left, now) < within)
    return f"left service {times} times within {duration_text(within)}" if times >= most else ""


def unusable(node: Node) -> str:
    """Why Slurm does not give the node anyway."""
    return f"{node.state}: {node.reason or 'no reason given'}" if is_out(node) else ""
