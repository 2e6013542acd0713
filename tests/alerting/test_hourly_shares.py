"""How the hour of a channel is shared between the owners of its messages."""

import pytest
from msgspec.structs import replace

from sentinel.alerting.hourly_shares import HourlyShares, find_capped_rows, put_critical_first
from sentinel.core.clock import shift_instant
from sentinel.core.holds import MessageGroup
from sentinel.core.model import Outgoing, Sending, SentNotification, Status
from sentinel.testing import START
from tests.alerting.test_outbox import row


def of(
    user: str, alert: str = "", reason: str = "firing", seq: int = 1, **more: object
) -> Outgoing:
    base = row(seq, alert or user)
    labels = {"user": user} if user else {}
    told = replace(base.notification, reason=reason, alert=alert, labels=labels, **more)
    return replace(base, notification=told)


def shares(per_hour: int, *sent: tuple[str, float]) -> HourlyShares:
    """`sent`: the owners of messages, and how many seconds ago they were accepted."""
    made = HourlyShares()
    made.per_hour = per_hour
    for owner, age in sent:
        made.count_message([of(owner, f"{owner}{age}")], shift_instant(START, -age))
    return made


@pytest.mark.parametrize(
    ("ages", "per_hour", "room", "reopens"),
    [
        ([], 0, None, None),
        ([1.0] * 9, 0, None, None),
        ([], 2, 2, 0.0),
        ([10.0], 2, 1, None),
        ([10.0, 3599.0], 2, 0, 1.0),
        ([10.0, 3600.0], 2, 1, None),
        ([30.0, 10.0], 1, 0, 3570.0),
    ],
)
def test_how_much_fits_into_an_hour(
    ages: list[float], per_hour: int, room: int | None, reopens: float | None
) -> None:
    """0 is no cap. Who is alone has all of the hour."""
    there = shares(per_hour, *(("eve", age) for age in ages))
    assert there.get_room("eve", START) == room
    if reopens is not None:
        assert there.get_reopening(START) == reopens


@pytest.mark.parametrize(
    ("sent", "owner", "room"),
    [
        ([("eve", 9.0)] * 5, "victim", 2),
        ([("eve", 9.0)] * 5, "", 2),  # nodes and disks
        ([("", 9.0)] * 5, "eve", 2),
        ([("eve", 9.0)] * 5 + [("victim", 8.0)], "victim", 1),
        ([("eve", 9.0)] * 5 + [("victim", 8.0)] * 2, "victim", 0),
        ([("eve", 9.0)] * 5 + [("victim", 8.0)], "eve", 0),
        ([("eve", 9.0)] * 2, "victim", 3),
        ([(f"user{n}", 9.0) for n in range(5)], "victim", 0),  # a storm: the cap holds
    ],
)
def test_what_one_has_used_up_is_not_taken_from_another(
    sent: list[tuple[str, float]], owner: str, room: int
) -> None:
    """Everybody may have an equal share of the five."""
    assert shares(5, *sent).get_room(owner, START) == room


def test_while_another_waits_an_owner_has_half() -> None:
    """Then the other's message goes first; alone the owner goes on."""
    there = shares(4, ("eve", 9.0), ("eve", 8.0))
    eve, victim = [of("eve", "e")], [of("victim", "v")]
    assert there.choose_message([eve, eve, victim], START) == 2
    assert there.choose_message([eve, eve], START) == 0
    assert shares(2, ("eve", 9.0), ("eve", 8.0)).choose_message([eve], START) is None


def test_without_a_cap_messages_go_in_their_order() -> None:
    """Whoever has sent much is not put behind others, and what is over is not remembered."""
    made = shares(0, *[("eve", 7200.0 - n) for n in range(50)], ("eve", 10.0))
    assert made.choose_message([[of("eve", "e")], [of("bob", "b")]], START) == 0
    assert len(made._sent) == 1


def test_an_end_is_free_once_for_each_beginning_that_counted() -> None:
    """Whoever was told of a trouble is told its end, also after a restart."""
    there, end = shares(1), [of("eve", "a", "resolved", status=Status.OK)]
    assert not there.is_free(end)
    there.count_message([of("eve", "a")], START)
    assert there.get_room("eve", START) == 0
    assert there.is_free(end)
    assert there.choose_message([[of("eve", "b")], end], START) == 1
    assert find_capped_rows([of("eve", "b", seq=7), *end], lambda _: there, START)[0] == {7}
    there.count_message(end, START)
    assert not there.is_free(end)
    assert there.get_room("victim", shift_instant(START, 3600)) == 1
    past = SentNotification("firing", "a", Status.CRITICAL, {"user": "eve"})
    after = shares(1)
    after.count_message([Sending("mail", MessageGroup(), START, 1, past)], START)
    assert (after.is_free(end), after.get_room("eve", START)) == (True, 0)


def test_critical_ones_go_first_and_no_subject_overtakes_itself() -> None:
    low = {"severity": Status.WARNING}
    lines = [[of("u", f"a{n}", seq=n, **low)] for n in range(3)]
    worst = [of("u", "a1", seq=9, severity=Status.CRITICAL)]
    told = put_critical_first([*lines, worst])
    assert [message[0].seq for message in told] == [1, 9, 0, 2]
    assert put_critical_first(lines) == lines
