"""What sentinel's score of a node predicts, on a public trace of real outages.

Run alone: python -m benchmarks.real_lemons TRACE, where TRACE is a clone of
https://github.com/stepfun-ai/InfiniteHBD-Trace (400 servers, 348 days; fault_trace.json).

The question is asked whenever a node comes back: does its next outage begin within 28 days? Rules
are chosen on days 0 to 174 and reported on the rest. AUC: the chance that of two returns, one with
and one without such an outage, the first has the higher score; 0.5 is chance. Its interval is
that of 400 samples of the nodes.
"""

import json
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import NODE_PREFIX, GpuEvent, LedgerEntry
from sentinel.core.lemon_policy import DAY_S, LemonPolicy
from sentinel.gpu import ledger_update

HALF, AHEAD, SAMPLES = 174.0, 28.0, 400
TEST = "Stress Test Failure"


class Outage(NamedTuple):
    """Of one node, in days of the trace."""

    began: float
    ended: float
    cause: str


class Return(NamedTuple):
    """A node that came back: its outages so far, and whether the next one began within AHEAD."""

    node: str
    at: float
    past: list[Outage]
    again: bool


Score = Callable[[Return], float]


def main() -> None:
    """Both halves, each rule with its AUC, and precision and recall at its limit."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.real_lemons TRACE (a clone of InfiniteHBD-Trace)")
    found = returns(outages(json.loads(Path(sys.argv[1], "fault_trace.json").read_text())))
    early = [r for r in found if r.at + AHEAD <= HALF]
    late = [r for r in found if r.at > HALF]
    for title, part in ((f"days 0 to {HALF:g}", early), ("the rest", late)):
        base = sum(r.again for r in part) / len(part)
        print(f"\n{title}: {len(part)} returns, {base:.2f} with another outage in {AHEAD:g} days")
        print(f"{'':<44}  AUC (95 %)          precision  recall")
        for name, (score, limit) in RULES.items():
            low, high = interval(score, part)
            right, all_of = verdict(score, limit, part)
            area = f"{auc(score, part):.2f} ({low:.2f} to {high:.2f})"
            print(f"{name:<44}  {area:<18}  {right:>9.2f}  {all_of:>6.2f}")


def outages(events: Sequence[dict[str, object]]) -> dict[str, list[Outage]]:
    """By node, oldest first; starts and ends of one fault are paired in their order."""
    begun: dict[str, list[float]] = defaultdict(list)
    found: dict[str, list[Outage]] = defaultdict(list)
    for event in events:
        node, at, fault = (
            str(event["node_id"]),
            float(str(event["event_time"])),
            event["fault_type"],
        )
        key = f"{node} {json.dumps(fault, sort_keys=True)}"
        if event["event_type"] == "fault_start":
            begun[key].append(at)
        elif begun[key]:
            assert isinstance(fault, dict)
            found[node].append(Outage(begun[key].pop(0), at, str(fault["Class"])))
    return {node: sorted(told) for node, told in found.items()}


def returns(found: dict[str, list[Outage]]) -> list[Return]:
    """Those after which the trace goes on long enough to tell, oldest first."""
    last = max(o.ended for told in found.values() for o in told)
    return sorted(
        (
            Return(
                node,
                o.ended,
                told[: i + 1],
                any(0 <= n.began - o.ended <= AHEAD for n in told[i + 1 :]),
            )
            for node, told in found.items()
            for i, o in enumerate(told)
            if o.ended <= last - AHEAD and not any(n.began < o.ended < n.ended for n in told)
        ),
        key=lambda r: r.at,
    )


def sentinel(r: Return) -> float:
    """The product's own: its ledger's entry of the node, counted from the events."""
    entry = LedgerEntry(subject=NODE_PREFIX + r.node, first=_at(0), seen=_at(0))
    events = [e for o in r.past for e in _events(r.node, o)]
    policy = LemonPolicy()
    counted = ledger_update.counted(entry, events, policy)
    return ledger_update.standing(counted, _at(r.at), policy).score


def _events(node: str, outage: Outage) -> list[GpuEvent]:
    told = (("drained", outage.began), ("undrained", outage.ended))
    return [
        GpuEvent(id=f"{what} {at}", subject=NODE_PREFIX + node, what=what, at=_at(at))
        for what, at in told
    ]


def _at(days: float) -> Instant:
    return Instant(wall=int(days * DAY_S * SECOND))


def fading(half_life: float, test: float = 1.0, repeat: float = 1.0) -> Score:
    """A sum that halves every so many days; a stress test counts `test`, an outage that begins
    within three days of the return before it `repeat`."""

    def score(r: Return) -> float:
        total, before = 0.0, None
        for o in r.past:
            weight = test if o.cause == TEST else 1.0
            if before is not None and o.began - before <= 3:
                weight *= repeat
            total += weight * 0.5 ** ((r.at - o.began) / half_life)
            before = o.ended
        return total

    return score


def last_length(r: Return) -> float:
    """A short repair may have repaired nothing."""
    return -(r.past[-1].ended - r.past[-1].began)


RULES: dict[str, tuple[Score, float]] = {
    "sentinel: outages in 28 days (2)": (sentinel, 2),
    "all outages so far (3)": (lambda r: len(r.past), 3),
    "fading, 28 days, all alike (1.25)": (fading(28), 1.25),
    "fading, 14 days, all alike (1.25)": (fading(14), 1.25),
    "fading, 14 days, tests 0.25 (1.25)": (fading(14, 0.25), 1.25),
    "fading, 7 days, tests 0.25, repeats 2 (1.25)": (fading(7, 0.25, 2), 1.25),
    "the last outage was short (6 hours)": (last_length, -0.25),
}
"""Each with the limit from which on it says: this node will fail again."""


def auc(score: Score, part: Sequence[Return]) -> float:
    """Mann and Whitney's U over its largest value; ties count half."""
    return _auc([(score(r), r.again) for r in part])


def _auc(scored: Sequence[tuple[float, bool]]) -> float:
    good = [s for s, again in scored if again]
    bad = [s for s, again in scored if not again]
    wins = sum((g > b) + (g == b) / 2 for g in good for b in bad)
    return wins / (len(good) * len(bad))


def interval(score: Score, part: Sequence[Return]) -> tuple[float, float]:
    """Of the AUC, 95 %, drawing nodes and not returns: those of one node hang together."""
    by_node: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for r in part:
        by_node[r.node].append((score(r), r.again))
    dice, nodes = random.Random(26), sorted(by_node)
    drawn = sorted(
        _auc([one for node in dice.choices(nodes, k=len(nodes)) for one in by_node[node]])
        for _ in range(SAMPLES)
    )
    return drawn[SAMPLES // 40], drawn[-SAMPLES // 40]


def verdict(score: Score, limit: float, part: Sequence[Return]) -> tuple[float, float]:
    """Precision and recall of "will fail again" from that limit on."""
    named = [r.again for r in part if score(r) >= limit]
    right = sum(named)
    return right / max(1, len(named)), right / sum(r.again for r in part)


if __name__ == "__main__":
    main()
