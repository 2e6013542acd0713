"""Describes a verdict about a hang in words."""

from __future__ import annotations

from sentinel.core.hostlist import fold_for_people
from sentinel.core.text import format_ranges, shortened
from sentinel.stacks.parse.verdict import RULE, SHOWN, TOLD, HangVerdict, WitnessFact


def describe_verdict(verdict: HangVerdict, since: str = "") -> str:
    """`hung since 03:12 at step 79500: rank 17 on node-3 is not in the all_reduce in which 255
    others wait`. `since` is the text after the state."""
    head = f"{verdict.kind.value}{since}"
    if verdict.ranks:
        return (
            f"{head}: {_describe_culprits(verdict)}"
            + _node_advice(verdict)
            + _describe_doubts(verdict)
        )
    first = next((f.words for f in verdict.evidence if RULE[f.sign].says is verdict.kind), "")
    return (
        (f"{head}: {first}" if first else head) + _node_advice(verdict) + _describe_doubts(verdict)
    )


def _node_advice(verdict: HangVerdict) -> str:
    """The facts from GPUs and kernels about the same ranks or nodes. If the verdict names no node,
    all of them."""
    said = [
        f"{fold_for_people(f.nodes)}: {f.words}"
        for f in verdict.evidence
        if RULE[f.sign].witness in ("GPU", "kernel")
        and (not verdict.nodes or _concerns_same(f, verdict))
    ]
    return "".join(f"; {words}" for words in dict.fromkeys(said[:TOLD]))


def _concerns_same(fact: WitnessFact, verdict: HangVerdict) -> bool:
    return bool({*fact.ranks} & {*verdict.ranks} or {*fact.nodes} & {*verdict.nodes})


def _describe_culprits(verdict: HangVerdict) -> str:
    several = len(verdict.ranks) > 1
    who = shortened(f"rank{'s' if several else ''} {format_ranges(verdict.ranks)}", SHOWN)
    where = f" on {shortened(fold_for_people(verdict.nodes), SHOWN)}" if verdict.nodes else ""
    own = next((f for f in verdict.evidence if {*f.ranks} & {*verdict.ranks}), None)
    why = f" ({own.words})" if own and own.words else ""
    if not verdict.collective:
        return f"{who}{where}{why}"
    others = f"{verdict.waiting} other{'s' if verdict.waiting != 1 else ''}"
    wait = "wait" if verdict.waiting != 1 else "waits"
    is_not = "are not" if several else "is not"
    return f"{who}{where} {is_not} in the {verdict.collective} in which {others} {wait}{why}"


def _describe_doubts(verdict: HangVerdict) -> str:
    return f"; {verdict.disagreement}" if verdict.disagreement else ""
