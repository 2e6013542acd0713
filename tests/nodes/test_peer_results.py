"""From what nodes answered to verdicts: peers, limits, failures, pairs, second attempts."""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from sentinel.core.actions import ActionOutcome
from sentinel.core.cluster import Node
from sentinel.core.errors import Invalid
from sentinel.nodes.node_tests import Plan, command
from sentinel.nodes.peer_results import (
    PeerAnswer,
    SpeedLimit,
    has_model,
    judge_answers,
    parse_limit,
    read_answers,
)
from sentinel.nodes.peer_tests import Group, run_peer_test, take_all_groups
from sentinel.nodes.test_results import Verdict, record
from sentinel.testing import START
from tests.nodes.test_measures import IB, NCCL, STREAM

NAMES = [f"n{at}" for at in range(16)]
NODES = {n: Node(name=n, state="IDLE", gres="gpu:h100:8", features="ib,hbm3") for n in NAMES}


def _say(node: str, text: str, word: str = "measured") -> Verdict:
    return Verdict(node=node, word=word, text=base64.b64encode(text.encode()).decode())


def _answer(values: Mapping[str, float]) -> list[PeerAnswer]:
    return [PeerAnswer(node=n, word="measured", measures={"triad": v}) for n, v in values.items()]


def test_the_slow_node_is_named_with_its_number_and_the_others() -> None:
    """The others share one text, so they are one line for people."""
    found = judge_answers("memory", _answer(dict.fromkeys(NAMES, 1000.0) | {"n3": 480.0}), NODES)
    told = {one.node: (one.word, one.text) for one in found}
    assert told.pop("n3") == (
        "slow",
        "triad 480 MB/s, 52% below the median of 15 peers, 1,000 MB/s",
    )
    assert set(told.values()) == {("pass", "triad like its 15 peers, median 1,000 MB/s")}
    kept = record(next(v for v in found if v.node == "n3"), "memory", "root", "1", START)
    assert (kept.outcome, kept.params["measures"]) == (ActionOutcome.ERROR, "triad=480")


def test_too_few_peers_are_inconclusive_and_kept_ones_count() -> None:
    """Nodes that were measured not long ago are peers and get no verdict."""
    few = _answer({"n0": 400.0, "n1": 1000.0})
    assert {one.word for one in judge_answers("memory", few, NODES)} == {"inconclusive"}
    kept = {n: {"triad": 1000.0} for n in NAMES[2:]}
    found = judge_answers("memory", few, NODES, kept=kept)
    assert {one.node: one.word for one in found} == {"n0": "slow", "n1": "pass"}


@pytest.mark.parametrize(
    ("text", "nodes", "word"),
    [
        ("triad=900", 2, "fail"),
        ("h100:memory=900", 2, "fail"),
        ("hbm3:triad=900", 16, "fail"),
        ("a100:triad=900", 16, "pass"),
        ("triad=700", 16, "pass"),
        ("write=900", 16, "pass"),
    ],
)
def test_a_limit_of_the_operator(text: str, nodes: int, word: str) -> None:
    """Per model, by its Gres or a feature; it needs no peers."""
    answers = _answer(dict.fromkeys(NAMES[:nodes], 800.0))
    found = judge_answers("memory", answers, NODES, [parse_limit(text)])
    assert {one.word for one in found} == {word}


def test_limits_as_they_are_written() -> None:
    """Anything else is refused."""
    assert parse_limit("h100:all_reduce=400.5") == SpeedLimit(
        model="h100", measure="all_reduce", least=400.5
    )
    for text in ("", "write", "write=", "write=fast", "a:b:c=1", "write=-1", "write=1e9"):
        with pytest.raises(Invalid):
            parse_limit(text)
    assert has_model(NODES["n0"], "gpu")
    assert not has_model(NODES["n0"], "h10")


@pytest.mark.parametrize(("healthy", "word"), [(8, "fail"), (7, "inconclusive")])
def test_a_program_that_fails_everywhere_blames_no_node(healthy: int, word: str) -> None:
    """Only where eight peers could be measured is it the node."""
    answers = _answer(dict.fromkeys(NAMES[:healthy], 1000.0))
    failed = [PeerAnswer(node=n, word="fail", text="fio ended with 1") for n in NAMES[healthy:]]
    found = judge_answers("memory", [*answers, *failed], NODES)
    assert {one.word for one in found if one.node in NAMES[healthy:]} == {word}


def test_what_is_read_from_one_node_and_from_a_pair() -> None:
    """The second node measures for both; what one of them lacks concerns both."""
    assert read_answers("nccl", [_say("n0", NCCL)])[0].measures == {"all_reduce": 466.47}
    assert read_answers("memory", [_say("n0", NCCL)])[0].word == "inconclusive"
    for cut in ("!", "e", "ewog… 9,000 more characters"):
        (broken,) = read_answers("memory", [Verdict(node="n0", word="measured", text=cut)])
        assert (broken.word, broken.text) == (
            "inconclusive",
            "the node's answer did not arrive whole",
        )
    wrong = STREAM.replace("Solution Validates", "Failed Validation")
    assert read_answers("memory", [_say("n0", wrong)])[0].word == "wrong"
    pair = read_answers("ib", [_say("n0", IB, "served"), _say("n1", IB)])
    assert [(one.node, one.measures) for one in pair] == [
        ("n0", {"mlx5_0": 98.02}),
        ("n1", {"mlx5_0": 98.02}),
    ]
    missing = Verdict(node="n1", word="missing", text="no ib_write_bw")
    lacking = read_answers("ib", [_say("n0", IB, "served"), missing])
    assert {(one.word, one.text) for one in lacking} == {("missing", "no ib_write_bw")}
    assert {a.word for a in read_answers("ib", [_say("n0", IB, "served")] * 2)} == {"inconclusive"}


class Cluster:
    """Nodes that reach these rates, all others 98; a pair is as fast as its slower node.
    `disturbed` reach nothing the first time."""

    def __init__(self, rates: Mapping[str, float] = {}, disturbed: Sequence[str] = ()) -> None:
        self.rates, self.disturbed = rates, disturbed
        self.asked: list[Group] = []

    def run_groups(self, plan: Plan, groups: Sequence[Group]) -> list[Sequence[Verdict]]:
        return [self._run_group(plan, group) for group in groups]

    def _run_group(self, plan: Plan, group: Group) -> Sequence[Verdict]:
        first = {name for name in group if not any(name in before for before in self.asked)}
        self.asked.append(group)
        rates = {name: self.rates.get(name, 98.0) for name in group}
        rates |= dict.fromkeys(first.intersection(self.disturbed), 1.0)
        if plan.test == "memory":
            return [
                _say(name, STREAM.replace("72859.9", f"{rate}")) for name, rate in rates.items()
            ]
        serves, measures = group
        text = IB.replace("98.02", f"{min(rates.values())}")
        return [_say(serves, IB, "served"), _say(measures, text)]


def test_in_pairs_only_the_bad_one_is_blamed() -> None:
    """Its partner is measured again beside a good node."""
    cluster = Cluster({"n5": 49.0})
    found = run_peer_test(Plan(test="ib"), NODES, NAMES, take_all_groups, cluster.run_groups)
    assert {one.node for one in found if one.word != "pass"} == {"n5"}
    assert len(cluster.asked) == 8 + 2


def test_one_bad_measurement_is_repeated() -> None:
    """Somebody may have disturbed it; the better of both counts."""
    cluster = Cluster(disturbed=["n2"])
    found = run_peer_test(Plan(test="memory"), NODES, NAMES, take_all_groups, cluster.run_groups)
    assert {one.word for one in found} == {"pass"}
    assert Counter(cluster.asked) == Counter((name,) for name in [*NAMES, "n2"])


def test_a_node_that_may_not_be_used_any_more_is_untested() -> None:
    """The wave says so between two jobs."""

    def one_by_one(waiting: Sequence[Group]) -> tuple[Sequence[Group], Mapping[Group, str]]:
        return waiting[:1], {g: "a pending job could use it" for g in waiting if g == ("n7",)}

    cluster = Cluster()
    found = run_peer_test(Plan(test="memory"), NODES, NAMES, one_by_one, cluster.run_groups)
    assert {o.node: o.text for o in found if o.word == "untested"} == {
        "n7": "a pending job could use it"
    }
    assert len(found) == 16
    assert ("n7",) not in cluster.asked


def test_how_srun_is_asked() -> None:
    """The program ends before Slurm ends its job; in the user's own job it runs beside the rest."""
    words = command(Plan(test="disk", path="/scratch", minutes=5), ("n1",), "0a" * 16)
    assert words[-2:] == ["/scratch", "270"]
    assert "--exclusive" in words
    own = command(Plan(test="disk", path="", job="77"), ("n1",), "0a" * 16)
    assert {"--jobid=77", "--overlap"} <= set(own)
    assert "--exclusive" not in own
