"""How many requests one address may make."""

import pytest

from sentinel.core.clock import shift_instant
from sentinel.testing import START
from sentinel.web.clients import client_of
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("127.0.0.1", "127.255.3.9"),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"),
        ("fe80::1%eth0", "fe80::2%eth1"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::ffff:127.0.0.9", "127.0.0.1"),
    ],
)
def test_addresses_that_one_user_may_take_are_one_client(one: str, other: str) -> None:
    """127/8 is this host (RFC 1122, 3.2.1.3); an IPv6 host makes up the lower 64 bits (RFC 8981)."""
    assert client_of(one) == client_of(other)


def test_addresses_of_others_are_other_clients() -> None:
    addresses = ["127.0.0.1", "::1", "128.0.0.1", "192.0.2.7", "192.0.2.8", "2001:db8:1:2::1",
                 "2001:db8:1:3::1", "", "unix"]  # fmt: skip
    assert len({client_of(one) for one in addresses}) == len(addresses)
