"""So many messages a day to each user: when the next may come, and what goes together meanwhile."""

import pytest
from msgspec.structs import replace

from sentinel.alerting.owners import (
    DAY_S,
    RECIPIENT_REASON,
    daily_cap_reopens,
    find_message_owner,
    is_recipient_failure,
    owners_at_cap,
    ration_messages,
)
from sentinel.core.clock import Instant, shift_instant
from sentinel.core.errors import ChannelError
from sentinel.core.holds import MessageGroup
from sentinel.core.model import Outgoing
from sentinel.testing import START
from tests.store.nouns import outgoing

HOUR = 3600.0


def ago(hours: float) -> Instant:
    return shift_instant(START, -hours * HOUR)


def row(number: int, owner: str | None, channel: str = "mail") -> Outgoing:
    return replace(outgoing(str(number), channel), bundle=MessageGroup(owner=owner))


@pytest.mark.parametrize(
    ("hours_ago", "hours_left"),
    [
        ((), 0),
        ((1, 2), 0),
        ((1, 2, 5), 19),
        ((5, 1, 2), 19),
        ((1, 2, 5, 7), 19),  # when the third newest is a day old, two are left
        ((1, 2, 25), 0),
        ((1, 2, 24), 0),
    ],
)
def test_a_full_day_ends_when_the_oldest_that_counts_is_a_day_old(
    hours_ago: tuple[float, ...], hours_left: float
) -> None:
    """Three a day."""
    left = daily_cap_reopens([ago(hours) for hours in hours_ago], 3, START)
    assert left == pytest.approx(hours_left * HOUR)


def numbers(messages: list[list[Outgoing]]) -> list[list[int]]:
    return [[int(one.notification.summary) for one in message] for message in messages]


def test_what_is_over_the_day_goes_with_the_last_message() -> None:
    """Of each user by itself; nothing is lost, and the order stays."""
    messages = [[row(1, "ann")], [row(2, "bob")], [row(3, "ann")], [row(4, "ann"), row(5, "ann")]]
    kept = ration_messages(messages, {"ann": [ago(1), ago(25)]}, 3, START)
    assert numbers(kept) == [[1], [2], [3, 4, 5]]
    kept = ration_messages(messages, {"ann": [ago(1), ago(2), ago(3)]}, 3, START)
    assert numbers(kept) == [[1, 3, 4, 5], [2]]
    kept = ration_messages(messages, {}, 3, START)
    assert numbers(kept) == [[1], [2], [3], [4, 5]]


def test_who_has_a_full_day_is_named_by_channel() -> None:
    """A channel without a limit has none."""
    rows = [row(1, "ann"), row(2, "bob"), row(3, "ann", "chat")]
    sent = {("mail", "ann"): [ago(1)], ("mail", "bob"): [ago(25)], ("chat", "ann"): [ago(1)] * 9}
    full = owners_at_cap(rows, sent, {"mail": 1}, START)
    assert full == {("mail", "ann"): pytest.approx(DAY_S - HOUR)}
    assert owners_at_cap(rows, sent, {}, START) == {}


def test_a_message_about_several_users_is_nobodys() -> None:
    """A failure at one user's address holds up that user alone."""
    assert find_message_owner([row(1, "ann"), row(2, "ann")]) == "ann"
    assert find_message_owner([row(1, "ann"), row(2, "bob")]) == ""
    refused = ChannelError("no such user", permanent=True, reason=RECIPIENT_REASON)
    assert is_recipient_failure(row(1, "ann"), refused)
    assert is_recipient_failure(row(1, ""), refused)
    assert not is_recipient_failure(row(1, None), refused)
    assert not is_recipient_failure(row(1, "ann"), ChannelError("no answer", permanent=False))
