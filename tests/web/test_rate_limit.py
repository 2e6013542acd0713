"""How many requests one address may make."""

from sentinel.core.clock import shift_instant
from sentinel.testing import START
from sentinel.web.rate_limit import MAX_KNOWN_ADDRESSES, RequestRateLimiter


def test_a_burst_is_allowed_and_then_a_pace() -> None:
    """Three at once, then one in two seconds; who waits is told how long."""
    rate = RequestRateLimiter(burst=3, refill=0.5)
    assert [rate.take_token("a", START) for _ in range(4)] == [0, 0, 0, 2.0]
    assert rate.take_token("a", shift_instant(START, 1)) == 1.0
    assert rate.take_token("a", shift_instant(START, 2)) == 0
    assert rate.take_token("a", shift_instant(START, 2)) == 2.0


def test_addresses_do_not_disturb_each_other() -> None:
    """One that asks too much is alone with it."""
    rate = RequestRateLimiter(burst=1, refill=0.5)
    assert [rate.take_token(a, START) for a in "abab"] == [0, 0, 2.0, 2.0]


def test_very_many_addresses_are_not_remembered() -> None:
    """The memory is bounded; those who asked last stay in it."""
    rate = RequestRateLimiter(burst=1, refill=0.001)
    for number in range(MAX_KNOWN_ADDRESSES + 1):
        rate.take_token(str(number), START)
    assert rate.take_token(str(MAX_KNOWN_ADDRESSES), START) > 0
    assert rate.take_token("0", START) == 0
