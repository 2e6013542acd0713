"""How a score comes about."""

import pytest

from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Invalid
from sentinel.core.gpu_ledger import NODE_PREFIX, GpuEvent, LedgerEntry
from sentinel.core.lemon_policy import DAY_S, LemonPolicy
from sentinel.core.values import Duration, Rate
from sentinel.gpu import ledger_update
from sentinel.gpu.lemon_score import decayed, outages, sum_of, weight

POLICY = LemonPolicy()


def at(days: float) -> Instant:
    return Instant(wall=int((20_000 + days) * DAY_S * SECOND))


def test_a_score_halves_and_never_grows() -> None:
    """After 28 days; a clock that went back makes nothing heavier."""
    assert decayed(8, 0, 28 * DAY_S * SECOND, POLICY) == pytest.approx(4)
    assert decayed(8, 28 * DAY_S * SECOND, 0, POLICY) == 8


def test_each_term_says_why() -> None:
    """The heaviest of a day counts; what weighs nothing is listed all the same."""
    events = [
        ("1", "xid 63", at(0.1)),
        ("2", "xid 48", at(0.2)),
        ("3", "xid 13", at(0.3)),
        ("4", "xid 48", at(0.4)),
        ("5", "xid 48", at(1.1)),
    ]
    terms = sum_of(events, at(1.1).wall, POLICY)
    assert [(t.id, round(t.left, 1), t.why) for t in terms] == [
        ("1", 0, "xid 48 counts for that day"),
        ("2", 2.9, ""),
        ("3", 0, "weighs nothing"),
        ("4", 0, "xid 48 counts for that day"),
        ("5", 3.0, ""),
    ]


NODE_EVENTS = [
    ("drained", 0.0),
    ("node fail", 0.5),  # the same outage: the job that it cost
    ("excluded", 2.0),  # a user avoids it: no outage
    ("drained", 3.0),
    ("undrained", 3.1),
    ("drained", 3.2),  # it had come back in between
    ("xid 13", 5.0),  # a program's own
]


def node(events: list[tuple[str, float]], policy: LemonPolicy = POLICY) -> LedgerEntry:
    """The entry of a node to which that happened."""
    told = [
        GpuEvent(id=f"{n}", subject=f"{NODE_PREFIX}n1", what=what, at=at(days))
        for n, (what, days) in enumerate(events)
    ]
    entry = LedgerEntry(subject=f"{NODE_PREFIX}n1", first=at(0), seen=at(0))
    return ledger_update.counted(entry, told, policy)


def test_outages_of_a_node() -> None:
    """A day long one, unless it came back; a user who avoids the node takes nothing out."""
    told = [(str(n), what, at(days)) for n, (what, days) in enumerate(NODE_EVENTS)]
    assert outages(told, POLICY) == [at(0.0), at(3.0), at(3.2)]


@pytest.mark.parametrize(
    ("days", "judged", "words"),
    [
        (10, "suspect", "2 outages in the last 28d, the newest 7d ago; a suspect from 2 on"),
        (30, "good", "1 outage in the last 28d, the newest 27d ago; a suspect from 2 on"),
        (99, "good", "no outage in the last 28d"),
    ],
)
def test_a_node_is_a_suspect_by_number(days: float, judged: str, words: str) -> None:
    """Two in 28 days, each alike, and none of them a fraction."""
    entry = node([("drained", 0), ("drained", 3)])
    assert ledger_update.standing(entry, at(days), POLICY).judged == judged
    assert ledger_update.outages_text(entry, at(days), POLICY) == words


def test_a_node_by_another_rule() -> None:
    """`nodes` of the file, and a weight of nothing for drains that are planned."""
    strict = LemonPolicy(nodes=Rate.parse("1 in 7d"))
    assert ledger_update.standing(node(NODE_EVENTS), at(4), strict).judged == "suspect"
    spared = LemonPolicy(weights={"drained": 0, "node fail": 0})
    assert node(NODE_EVENTS, spared).outages == ()


@pytest.mark.parametrize(
    ("score", "judged"),
    [(0, "good"), (2.49, "good"), (2.5, "suspect"), (4.99, "suspect"), (5, "lemon")],
)
def test_what_a_score_means(score: float, judged: str) -> None:
    """Both thresholds, from both sides."""
    assert POLICY.judge_score(score) == judged


@pytest.mark.parametrize("code", [13, 31, 43, 45, 137, 999])
def test_what_programs_cause_weighs_nothing(code: int) -> None:
    """Nor does what is in no table."""
    assert weight(POLICY, f"xid {code}") == 0


def test_thresholds_do_not_make_another_recipe() -> None:
    """Weights and half-life do: then everything is counted anew."""
    assert LemonPolicy(lemon=9).counting_recipe == POLICY.counting_recipe
    assert LemonPolicy(weights={"xid 94": 2}).counting_recipe != POLICY.counting_recipe
    assert LemonPolicy(half_life=Duration(DAY_S)).counting_recipe != POLICY.counting_recipe


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"suspect": 6.0}, "not above"),
        ({"suspect": 0.0}, "above 0"),
        ({"half_life": Duration(60)}, "1h or longer"),
    ],
)
def test_policies_that_make_no_sense(settings: dict[str, float], words: str) -> None:
    """Said when the file is read."""
    with pytest.raises(Invalid, match=words):
        LemonPolicy(**settings)  # type: ignore[arg-type]
