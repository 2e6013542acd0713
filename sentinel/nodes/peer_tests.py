"""Runs a test that measures on many nodes in waves, and judges each against its peers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sentinel.core.cluster import Node
from sentinel.nodes.node_tests import Plan
from sentinel.nodes.peer_results import (
    PeerAnswer,
    SpeedLimit,
    choose_better,
    judge_answers,
    read_answers,
)
from sentinel.nodes.test_results import FAULTY, PAIRS, MeasuredVerdict, Verdict, pairs

Group = tuple[str, ...]
"""The nodes of one job."""

ChooseWave = Callable[[Sequence[Group]], tuple[Sequence[Group], Mapping[Group, str]]]
"""Of the groups that wait, those that may run now, and those that may not run at all, and why."""

RunGroups = Callable[[Plan, Sequence[Group]], Sequence[Sequence[Verdict]]]
"""Runs the test on these groups; the answers of each, in their order. See node_tests.run_groups."""


def take_all_groups(waiting: Sequence[Group]) -> tuple[Sequence[Group], Mapping[Group, str]]:
    """All at once: in the user's own job nobody else is disturbed."""
    return waiting, {}


def run_peer_test(
    plan: Plan,
    nodes: Mapping[str, Node],
    chosen: Sequence[str],
    choose_wave: ChooseWave,
    run_groups: RunGroups,
    limits: Sequence[SpeedLimit] = (),
    kept: Mapping[str, Mapping[str, float]] = {},
) -> list[MeasuredVerdict]:
    """One verdict for each chosen node. What seems slow or fails is measured once more, in a pair
    beside a node that was good, and the better answer counts."""
    groups = pairs(chosen) if plan.test in PAIRS else [(name,) for name in chosen]
    answers = _measure_groups(plan, groups, choose_wave, run_groups)
    first = judge_answers(plan.test, answers.values(), nodes, limits, kept)
    if second := _list_second_groups(plan.test, first):
        suspects = {group[0] for group in second}
        for name, answer in _measure_groups(plan, second, choose_wave, run_groups).items():
            if name in suspects:
                answers[name] = choose_better(answers[name], answer)
    return judge_answers(plan.test, answers.values(), nodes, limits, kept)


def _list_second_groups(test: str, first: Sequence[MeasuredVerdict]) -> list[Group]:
    bad = [one.node for one in first if one.word in FAULTY]
    if test not in PAIRS:
        return [(name,) for name in bad]
    good = [one.node for one in first if one.word == "pass"]
    return [(name, good[at % len(good)]) for at, name in enumerate(bad)] if good else []


def _measure_groups(
    plan: Plan, groups: Sequence[Group], choose_wave: ChooseWave, run_groups: RunGroups
) -> dict[str, PeerAnswer]:
    """The answers of all nodes of the groups; of a node in two groups the better one."""
    found, waiting = dict[str, PeerAnswer](), list(groups)
    while waiting:
        wave, refused = choose_wave(waiting)
        answers = [a for said in run_groups(plan, wave) for a in read_answers(plan.test, said)]
        answers += [
            PeerAnswer(node=name, word="untested", text=why)
            for group, why in refused.items()
            for name in group
        ]
        for one in answers:
            found[one.node] = choose_better(found[one.node], one) if one.node in found else one
        waiting = [group for group in waiting if group not in wave and group not in refused]
    return found
