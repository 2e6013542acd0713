"""How many requests one address may make."""

from sentinel.core.clock import shifted
from sentinel.testing import START
from sentinel.web.rate_limit import KNOWN, Rate


def test_a_burst_is_allowed_and_then_a_pace() -> None:
    """Three at once, then one in two seconds; who waits is told how long."""
    rate = Rate(burst=3, refill=0.5)
    assert [rate.wait("a", START) for _ in range(4)] == [0, 0, 0, 2.0]
    assert rate.wait("a", shifted(START, 1)) == 1.0
    assert rate.wait("a", shifted(START, 2)) == 0
    assert rate.wait("a", shifted(START, 2)) == 2.0


def test_addresses_do_not_disturb_each_other() -> None:
    """One that asks too much is alone with it."""
    rate = Rate(burst=1, refill=0.5)
    assert [rate.wait(a, START) for a in "abab"] == [0, 0, 2.0, 2.0]


def test_very_many_addresses_are_not_remembered() -> None:
    """The memory is bounded; those who asked last stay in it."""
    rate = Rate(burst=1, refill=0.001)
    for number in range(KNOWN + 1):
        rate.wait(str(number), START)
    assert rate.wait(str(KNOWN), START) > 0
    assert rate.wait("0", START) == 0
