"""How a score comes about."""

import pytest

from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Invalid
from sentinel.core.lemon_policy import DAY, LemonPolicy
from sentinel.core.values import Duration
from sentinel.gpu.lemon_score import decayed, sum_of, weight

POLICY = LemonPolicy()


def at(days: float) -> Instant:
    return Instant(wall=int((20_000 + days) * DAY * SECOND))


def test_a_score_halves_and_never_grows() -> None:
    """After 28 days; a clock that went back makes nothing heavier."""
    assert decayed(8, 0, 28 * DAY * SECOND, POLICY) == pytest.approx(4)
    assert decayed(8, 28 * DAY * SECOND, 0, POLICY) == 8


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


@pytest.mark.parametrize(
    ("score", "judged"),
    [(0, "good"), (2.49, "good"), (2.5, "suspect"), (4.99, "suspect"), (5, "lemon")],
)
def test_what_a_score_means(score: float, judged: str) -> None:
    """Both thresholds, from both sides."""
    assert POLICY.judged(score) == judged


@pytest.mark.parametrize("code", [13, 31, 43, 45, 137, 999])
def test_what_programs_cause_weighs_nothing(code: int) -> None:
    """Nor does what is in no table."""
    assert weight(POLICY, f"xid {code}") == 0


def test_thresholds_do_not_make_another_recipe() -> None:
    """Weights and half-life do: then everything is counted anew."""
    assert LemonPolicy(lemon=9).recipe == POLICY.recipe
    assert LemonPolicy(weights={"xid 94": 2}).recipe != POLICY.recipe
    assert LemonPolicy(half_life=Duration(DAY)).recipe != POLICY.recipe


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
