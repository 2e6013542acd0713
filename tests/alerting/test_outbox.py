"""Order, patience and giving up of the outbox."""

import pytest
from msgspec.structs import replace

from sentinel.alerting.outbox import (
    BLOCKING_ATTEMPTS,
    after_failure,
    bundle_messages,
    due_rows,
    expired_rows,
    find_overtaken,
    is_due,
    next_wait,
)
from sentinel.core.clock import Instant, shift_instant
from sentinel.core.errors import ChannelError
from sentinel.core.holds import MessageGroup
from sentinel.core.model import Notification, Outgoing, Status
from sentinel.testing import START


def row(seq: int, alert: str = "a", channel: str = "mail", **more: object) -> Outgoing:
    message = Notification(
        at="", cluster="c", check="x", kind="fs", subject=alert, severity=Status.WARNING,
        status=Status.WARNING, reason="firing", summary="", since="", key=f"{alert}-{seq}",
        alert=alert,
    )  # fmt: skip
    base = Outgoing(seq=seq, channel=channel, notification=message, created=START)
    return replace(base, **more)


def test_rows_go_in_the_order_in_which_they_were_committed() -> None:
    """Whatever order the store hands them out in."""
    assert [r.seq for r in due_rows([row(3), row(1), row(2)], START)] == [1, 2, 3]


def test_a_waiting_row_holds_up_its_channel_and_no_other() -> None:
    """Everything arrives in order once the relay is up; other channels go on."""
    waiting = row(1, tried=START, wait=60.0, attempts=1)
    rows = [waiting, row(2, "b"), row(3, "b", channel="file")]
    assert [r.seq for r in due_rows(rows, shift_instant(START, 59))] == [3]
    assert [r.seq for r in due_rows(rows, shift_instant(START, 60))] == [1, 2, 3]


def test_a_refused_row_lets_the_others_pass() -> None:
    """What a server refuses for good must not hold up the resolved message behind it."""
    refused = row(1, tried=START, wait=3600.0, attempts=1, permanent=True)
    assert [r.seq for r in due_rows([refused, row(2)], START)] == [2]


def test_a_row_that_failed_very_often_holds_up_only_its_own_alert() -> None:
    """One message that a server chokes on must not silence the channel."""
    for attempts, passing in ((BLOCKING_ATTEMPTS - 1, []), (BLOCKING_ATTEMPTS, [3])):
        stuck = row(1, tried=START, wait=300.0, attempts=attempts)
        assert [r.seq for r in due_rows([stuck, row(2), row(3, "b")], START)] == passing


def test_a_new_message_does_not_wait_behind_an_old_failure() -> None:
    """Half a minute after the last failure it is tried, once: then it waits in its turn. What belongs
    to the failed alert keeps its order, and a refused one delays nobody."""
    failed = row(1, tried=START, wait=300.0, attempts=9)
    rows = [failed, row(2, "b"), row(3), row(4, "c", channel="file")]
    assert [r.seq for r in due_rows(rows, shift_instant(START, 29))] == [4]
    assert next_wait(rows[:3], shift_instant(START, 29)) == 1.0
    assert [r.seq for r in due_rows(rows, shift_instant(START, 30))] == [2, 4]
    also = row(2, "b", tried=shift_instant(START, 30), wait=2.0, attempts=1)
    later = [failed, also, row(5, "d"), row(6, "b")]
    assert due_rows(later, shift_instant(START, 59)) == []
    assert [r.seq for r in due_rows(later, shift_instant(START, 60))] == [5]
    assert [r.seq for r in due_rows(later, shift_instant(START, 300))] == [1, 2, 5, 6]


def test_a_refused_message_makes_no_new_one_wait() -> None:
    """The channel works: it has said no to one message."""
    failed, no = row(1, tried=START, wait=300.0, attempts=9), refused(2, "b")
    rows = [failed, replace(no, tried=shift_instant(START, 29)), row(3, "c")]
    assert [r.seq for r in due_rows(rows, shift_instant(START, 30))] == [3]


def test_a_new_message_waits_as_long_as_the_channel_has_asked() -> None:
    """Retry-After is about the channel, not about one message."""
    asked = after_failure(row(1), ChannelError("slow", retry_after=90), START)
    rows = [asked, row(2, "b")]
    assert due_rows(rows, shift_instant(START, 89)) == []
    assert next_wait(rows, shift_instant(START, 60)) == 30.0
    assert [r.seq for r in due_rows(rows, shift_instant(START, 90))] == [1, 2]


def test_waits_double_up_to_a_bound_and_follow_the_server() -> None:
    """2 s, 4 s, … 300 s; Retry-After when longer; an hour after a refusal."""
    failed = row(1)
    waits = []
    for _ in range(10):
        failed = after_failure(failed, ChannelError("down"), START)
        waits.append(failed.wait)
    assert waits[:3] == [2.0, 4.0, 8.0]
    assert waits[-1] == 300.0
    assert after_failure(row(1), ChannelError("slow", retry_after=30), START).wait == 30.0
    assert after_failure(row(1), ChannelError("slow", retry_after=9e9), START).wait == 3600.0
    assert after_failure(row(1), ChannelError("no", permanent=True), START).wait == 3600.0


@pytest.mark.parametrize("jump", [3600, -3600])
def test_a_clock_jump_does_not_prolong_a_wait(jump: int) -> None:
    """Within a boot the monotonic clock decides; after a reboot a clock set back makes it due."""
    waiting = row(1, tried=START, wait=60.0, attempts=1)
    later = shift_instant(START, 60)
    assert is_due(
        waiting, Instant(wall=later.wall + jump * 10**6, boot=later.boot, mono=later.mono)
    )
    assert is_due(waiting, Instant(wall=START.wall - 3600 * 10**6, boot="another", mono=1))


def test_only_rows_that_were_tried_for_a_week_are_given_up() -> None:
    """A service that was off for a month still delivers what it owed."""
    for_a_week = row(1, tried=shift_instant(START, 7 * 86400 + 1), attempts=300)
    off_since = row(2, "b", tried=shift_instant(START, 60), attempts=5)
    assert expired_rows([for_a_week, off_since, row(3, "c")]) == [for_a_week]
    assert expired_rows([row(1, tried=shift_instant(START, 7 * 86400), attempts=300)]) == []


def test_the_next_wait_is_the_shortest_of_what_nothing_holds_up() -> None:
    """None when nothing is left, zero when something is due; what waits behind a failed row of
    its channel is not asked for again and again."""
    assert next_wait([], START) is None
    failed = row(1, tried=START, wait=9.0, attempts=1)
    other = row(2, channel="file", tried=START, wait=5.0, attempts=1)
    assert next_wait([failed, other], START) == 5.0
    assert next_wait([failed, row(2, channel="file")], START) == 0.0
    assert next_wait([failed, row(2), row(3, "b")], START) == 9.0
    assert next_wait([failed, row(2)], shift_instant(START, 9)) == 0.0


def test_a_group_waits_for_its_others_and_then_goes_together() -> None:
    """group_wait counts from the first; whoever comes within it joins; other groups go on."""
    first = row(1, "a", bundle=MessageGroup("g"), hold=30.0)
    late = row(2, "b", bundle=MessageGroup("g"), hold=30.0, created=shift_instant(START, 29))
    other = row(3, "c", bundle=MessageGroup("h"))
    assert [r.seq for r in due_rows([first, late, other], shift_instant(START, 29))] == [3]
    assert [r.seq for r in due_rows([first, late, other], shift_instant(START, 30))] == [1, 2, 3]
    assert next_wait([first, late], shift_instant(START, 29)) == 1.0


def test_rows_of_a_group_are_one_message() -> None:
    """500 nodes that fail in one pass are one mail."""
    rows = [row(i, f"alert-{i}", bundle=MessageGroup("g")) for i in range(500)]
    assert [len(m) for m in bundle_messages(rows)] == [500]


def test_a_subject_stands_once_in_a_message_and_in_order() -> None:
    """firing and resolved that waited together are two messages, whatever their groups, so that
    each stays in the thread of its alert."""
    rows = [
        row(1, "a", bundle=MessageGroup("g")), row(2, "b", bundle=MessageGroup("h")), row(3, "a", bundle=MessageGroup("g")),
        row(4, "b", bundle=MessageGroup("g")), row(5, "c", bundle=MessageGroup("h")),
    ]  # fmt: skip
    assert [[r.seq for r in m] for m in bundle_messages(rows)] == [[1], [2, 5], [3, 4]]
    changed = [
        row(1, "a", bundle=MessageGroup("g")),
        row(2, "b", bundle=MessageGroup("h")),
        row(3, "b", bundle=MessageGroup("g")),
    ]
    assert [[r.seq for r in m] for m in bundle_messages(changed)] == [[1], [2], [3]]


def test_rows_without_a_group_go_alone() -> None:
    """Rows of an older sentinel."""
    rows = [row(1, "a", interval=300.0), row(2, "b", interval=300.0)]
    assert [len(m) for m in bundle_messages(rows)] == [1, 1]
    assert due_rows(rows, shift_instant(START, 1), {("mail", MessageGroup()): START}) == rows


INTERVAL: dict[str, object] = {"bundle": MessageGroup("g"), "interval": 300.0}


def test_a_group_is_told_again_only_after_its_interval() -> None:
    """Counted from the last message about it on that channel; other channels and groups go on."""
    told = {("mail", MessageGroup("g")): START}
    rows = [
        row(1, "a", created=shift_instant(START, 10), **INTERVAL),
        row(2, "b", created=shift_instant(START, 299), **INTERVAL),
        row(3, "c", channel="chat", created=shift_instant(START, 10), **INTERVAL),
        row(4, "d", created=shift_instant(START, 10), bundle=MessageGroup("h"), interval=300.0),
    ]
    assert [r.seq for r in due_rows(rows, shift_instant(START, 299), told)] == [3, 4]
    assert next_wait(rows[:2], shift_instant(START, 299), told) == 1.0
    assert [r.seq for r in due_rows(rows, shift_instant(START, 300), told)] == [1, 2, 3, 4]
    assert [r.seq for r in due_rows(rows[:2], shift_instant(START, 299), {})] == [1, 2]


def test_an_interval_keeps_the_order_of_an_alert() -> None:
    """An end that goes another way does not overtake the beginning that waits."""
    first = row(1, "a", created=shift_instant(START, 1), **INTERVAL)
    end = ended(2, "a", created=shift_instant(START, 2))
    assert (
        due_rows([first, end], shift_instant(START, 3), {("mail", MessageGroup("g")): START}) == []
    )


def test_a_failed_message_does_not_wait_for_its_interval_again() -> None:
    """It was ripe when it was tried."""
    failed = row(1, "a", attempts=1, tried=shift_instant(START, 400), wait=2.0, **INTERVAL)
    assert due_rows(
        [failed],
        shift_instant(START, 402),
        {("mail", MessageGroup("g")): shift_instant(START, 399)},
    ) == [replace(failed, hold=0.0)]


@pytest.mark.parametrize("boot", ["boot-1", "boot-2"])
def test_a_clock_set_back_does_not_prolong_an_interval(boot: str) -> None:
    """Across a reboot only the wall clock is left; one that lies counts for nothing."""
    now = Instant(wall=START.wall - 10**9, boot=boot, mono=START.mono + 300 * 10**6)
    for created in (START, shift_instant(now, -1)):
        waiting = row(1, "a", created=created, **INTERVAL)
        assert [r.seq for r in due_rows([waiting], now, {("mail", MessageGroup("g")): START})] == [
            1
        ]


def ended(seq: int, alert: str = "a", **more: object) -> Outgoing:
    base = row(seq, alert, **more)
    message = replace(base.notification, reason="resolved", status=Status.OK)
    return replace(base, notification=message)


def refused(seq: int, alert: str = "a", **more: object) -> Outgoing:
    return row(seq, alert, tried=START, wait=3600.0, attempts=1, permanent=True, **more)


def test_an_end_waits_for_its_refused_beginning_and_news_does_not() -> None:
    """Nobody hears of the end of what they have not heard of; news tells it all itself."""
    news = replace(row(2), notification=replace(row(2).notification, reason="repeat"))
    assert due_rows([refused(1), ended(2)], START) == []
    assert [r.seq for r in due_rows([refused(1), news, ended(3)], START)] == [2, 3]
    assert [r.seq for r in due_rows([refused(1), ended(2, "b")], START)] == [2]


def test_a_new_trouble_does_not_wait_for_a_refused_older_one() -> None:
    """Another episode of the same subject, told by another message."""
    again = replace(row(3), notification=replace(row(3).notification, alert="a2"))
    assert [r.seq for r in due_rows([refused(1), ended(2), again], START)] == [3]


def test_what_a_newer_message_has_overtaken_is_known_by_its_subject() -> None:
    """Of the same channel; an action says nothing of how the trouble stands."""
    act = replace(row(4), notification=replace(row(4).notification, reason="action"))
    waiting = [refused(1), refused(2, "b"), refused(3, channel="file"), refused(5)]
    assert [r.seq for r in find_overtaken(waiting, [row(4)])] == [1]
    assert find_overtaken(waiting, [act]) == []
    assert find_overtaken([act], [row(5)]) == []


def test_with_a_beginning_that_is_given_up_goes_its_end() -> None:
    """An end alone would be told after a week."""
    week = shift_instant(START, 7 * 86400 + 1)
    rows = [replace(refused(1), tried=week), ended(2, created=week), ended(3, "b", created=week)]
    assert [r.seq for r in expired_rows(rows)] == [1, 2]
