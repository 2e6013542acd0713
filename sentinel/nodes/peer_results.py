"""Verdicts of tests that measure: against the node's peers, then against the operator's limits.
Pure."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from sentinel.core.actions import ActionRecord
from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell, Invalid
from sentinel.nodes.measures import UNITS, WrongResult, read_measures
from sentinel.nodes.peers import MIN_PEERS, Measured, PeerJudgement, judge_peers
from sentinel.nodes.test_results import MeasuredVerdict, Verdict

_LIMIT_PATTERN = re.compile(r"(?:([A-Za-z0-9_.-]+):)?([A-Za-z0-9_.-]+)=(\d{1,9}(?:\.\d{1,6})?)")


class PeerAnswer(Struct, frozen=True, kw_only=True):
    """What is known of one node after its program ended."""

    node: str  # Name of the node.
    word: str  # measured, or why not: fail, missing, inconclusive, untested.
    text: str = ""  # In words, if it was not measured.
    measures: Mapping[str, float] = {}  # What it reached, by the name of the measure.


class SpeedLimit(Struct, frozen=True, kw_only=True):
    """A limit that the operator gives: the least a node of a model has to reach."""

    model: str  # A word of the node's Gres or features; empty for every node.
    measure: str  # The name of a measure, or of the test for all of its measures.
    least: float  # In the unit of the test.


def parse_limit(text: str) -> SpeedLimit:
    """`disk=800`, `h100:all_reduce=400`. Raises Invalid."""
    match = _LIMIT_PATTERN.fullmatch(text.strip())
    if not match:
        raise Invalid(f"{text!r} is no limit; write it like write=800 or h100:all_reduce=400")
    return SpeedLimit(model=match[1] or "", measure=match[2], least=float(match[3]))


def read_kept_measures(entry: ActionRecord) -> Mapping[str, float]:
    """What the node reached then, from the audit log; empty where nothing was measured."""
    words = (word.rpartition("=") for word in entry.params.get("measures", "").split())
    return {name: float(value) for name, _, value in words if name and _is_number(value)}


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"\d{1,12}(\.\d{1,12})?(e[+]\d{1,2})?", text))


def describe_kind(node: Node) -> str:
    """What nodes have in common that are compared: Gres, features and processors."""
    return f"{node.gres} {node.features} {node.cpus}"


def has_model(node: Node, model: str) -> bool:
    """Whether the model stands among the words of the node's Gres or features."""
    return not model or model in re.split(r"[,:()]", f"{node.gres},{node.features}")


def read_answers(test: str, group: Sequence[Verdict]) -> list[PeerAnswer]:
    """The answers of the nodes of one job. In a pair the second one measures for both."""
    found = [_read_answer(test, one) for one in group]
    measured = [one for one in found if one.word == "measured"]
    failed = [one for one in found if one.word not in ("measured", "served")]
    if len(group) == 1:
        return found
    said = failed[0] if failed else measured[0] if measured else None
    if said is None:
        said = PeerAnswer(node="", word="inconclusive", text="neither node of the pair measured")
    return [
        PeerAnswer(node=one.node, word=said.word, text=said.text, measures=said.measures)
        for one in group
    ]


def _read_answer(test: str, said: Verdict) -> PeerAnswer:
    if said.word not in ("measured", "served"):
        return PeerAnswer(node=said.node, word=said.word, text=said.text)
    if said.word == "served":
        return PeerAnswer(node=said.node, word="served")
    try:
        measures = read_measures(test, _decode_text(said.text))
    except WrongResult as error:
        return PeerAnswer(node=said.node, word="wrong", text=str(error))
    except CannotTell as error:
        return PeerAnswer(node=said.node, word="inconclusive", text=str(error))
    return PeerAnswer(node=said.node, word="measured", measures=measures)


def _decode_text(said: str) -> str:
    """What the program printed. Raises CannotTell."""
    try:
        return base64.b64decode(said, validate=True).decode("utf-8", "replace")
    except ValueError:  # binascii.Error is one
        raise CannotTell("the node's answer did not arrive whole") from None


def choose_better(first: PeerAnswer, second: PeerAnswer) -> PeerAnswer:
    """The answer after two attempts: of every measure the better one."""
    if second.word != "measured":
        return first
    if first.word != "measured":
        return second
    names = {**first.measures, **second.measures}
    best = {n: max(first.measures.get(n, 0.0), second.measures.get(n, 0.0)) for n in names}
    return PeerAnswer(node=first.node, word="measured", measures=best)


def judge_answers(
    test: str,
    answers: Iterable[PeerAnswer],
    nodes: Mapping[str, Node],
    limits: Sequence[SpeedLimit] = (),
    kept: Mapping[str, Mapping[str, float]] = {},
) -> list[MeasuredVerdict]:
    """One verdict for each answer. `kept`: what further nodes reached not long ago; they are peers
    and get no verdict."""
    answers = list(answers)
    reached = {**kept, **{a.node: a.measures for a in answers if a.word == "measured"}}
    values = [
        Measured(node=node, kind=describe_kind(nodes[node]), measure=name, value=value)
        for node, measures in reached.items()
        if node in nodes
        for name, value in measures.items()
    ]
    found: dict[str, dict[Measured, PeerJudgement]] = {}
    for one, judgement in judge_peers(values).items():
        found.setdefault(one.node, {})[one] = judgement
    healthy = Counter(describe_kind(nodes[node]) for node in reached if node in nodes)
    return [
        _judge_measured(test, answer, found.get(answer.node, {}), nodes, limits)
        if answer.word == "measured"
        else _judge_failed(answer, healthy[describe_kind(nodes[answer.node])])
        for answer in answers
    ]


def _judge_failed(answer: PeerAnswer, peers: int) -> MeasuredVerdict:
    """A program that fails here, and on enough peers does not, is the node's failure."""
    word, text = answer.word, answer.text
    if word == "wrong":
        word = "fail"
    elif word == "fail" and peers < MIN_PEERS:
        word, text = "inconclusive", f"{text} (only {peers} peers could be measured)"
    return MeasuredVerdict(node=answer.node, word=word, text=text)


def _judge_measured(
    test: str,
    answer: PeerAnswer,
    found: Mapping[Measured, PeerJudgement],
    nodes: Mapping[str, Node],
    limits: Sequence[SpeedLimit],
) -> MeasuredVerdict:
    unit, node = UNITS[test], nodes[answer.node]
    below = [
        f"{name} {_format_value(value, unit)}, below the limit of {_format_value(one.least, unit)}"
        for name, value in answer.measures.items()
        for one in limits
        if one.measure in (name, test) and has_model(node, one.model) and value < one.least
    ]
    by_outcome: dict[str, list[str]] = {}
    for one, judgement in found.items():
        by_outcome.setdefault(judgement.outcome, []).append(_describe(one, judgement, unit))
    if below:
        word, told = "fail", below
    else:
        word = next(w for w in ("slow", "inconclusive", "pass") if w in by_outcome)
        told = by_outcome[word]
    return MeasuredVerdict(
        node=answer.node, word=word, text="; ".join(told), measures=answer.measures
    )


def _describe(one: Measured, judgement: PeerJudgement, unit: str) -> str:
    middle = _format_value(judgement.median, unit)
    if judgement.outcome == "pass":
        return f"{one.measure} like its {judgement.peers} peers, median {middle}"
    if judgement.outcome == "slow":
        share = 100 * (1 - one.value / judgement.median)
        own = _format_value(one.value, unit)
        return f"{one.measure} {own}, {share:.0f}% below the median of {judgement.peers} peers, {middle}"
    if judgement.peers < MIN_PEERS:
        return f"{one.measure}: {judgement.peers} peers, {MIN_PEERS} are needed; median {middle}"
    spread = 100 * judgement.spread
    return f"{one.measure}: its {judgement.peers} peers differ by {spread:.0f}%, median {middle}"


def _format_value(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
