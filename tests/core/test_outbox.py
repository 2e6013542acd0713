"""Order, patience and giving up of the outbox."""

import pytest
from msgspec.structs import replace

from sentinel.core.clock import Instant, shifted
from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification, Outgoing, Status
from sentinel.core.outbox import (
    BLOCKING_ATTEMPTS,
    after_failure,
    bundles,
    due,
    expired,
    is_due,
    next_wait,
)
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
    assert [r.seq for r in due([row(3), row(1), row(2)], START)] == [1, 2, 3]


def test_a_waiting_row_holds_up_its_channel_and_no_other() -> None:
    """Everything arrives in order once the relay is up; other channels go on."""
    waiting = row(1, tried=START, wait=60.0, attempts=1)
    rows = [waiting, row(2, "b"), row(3, "b", channel="file")]
    assert [r.seq for r in due(rows, shifted(START, 59))] == [3]
    assert [r.seq for r in due(rows, shifted(START, 60))] == [1, 2, 3]


def test_a_refused_row_lets_the_others_pass() -> None:
    """What a server refuses for good must not hold up the resolved message behind it."""
    refused = row(1, tried=START, wait=3600.0, attempts=1, permanent=True)
    assert [r.seq for r in due([refused, row(2)], START)] == [2]


def test_a_row_that_failed_very_often_holds_up_only_its_own_alert() -> None:
    """One message that a server chokes on must not silence the channel."""
    for attempts, passing in ((BLOCKING_ATTEMPTS - 1, []), (BLOCKING_ATTEMPTS, [3])):
        stuck = row(1, tried=START, wait=300.0, attempts=attempts)
        assert [r.seq for r in due([stuck, row(2), row(3, "b")], START)] == passing


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
    later = shifted(START, 60)
    assert is_due(
        waiting, Instant(wall=later.wall + jump * 10**6, boot=later.boot, mono=later.mono)
    )
    assert is_due(waiting, Instant(wall=START.wall - 3600 * 10**6, boot="another", mono=1))


def test_only_rows_that_were_tried_for_a_week_are_given_up() -> None:
    """A service that was off for a month still delivers what it owed."""
    week = shifted(START, 7 * 86400 + 1)
    tried = row(1, tried=START, attempts=3)
    assert expired([tried, row(2)], week) == [tried]
    assert expired([tried], shifted(START, 7 * 86400)) == []


def test_the_next_wait_is_the_shortest_of_what_nothing_holds_up() -> None:
    """None when nothing is left, zero when something is due; what waits behind a failed row of
    its channel is not asked for again and again."""
    assert next_wait([], START) is None
    failed = row(1, tried=START, wait=9.0, attempts=1)
    other = row(2, channel="file", tried=START, wait=5.0, attempts=1)
    assert next_wait([failed, other], START) == 5.0
    assert next_wait([failed, row(2, channel="file")], START) == 0.0
    assert next_wait([failed, row(2), row(3, "b")], START) == 9.0
    assert next_wait([failed, row(2)], shifted(START, 9)) == 0.0


def test_a_group_waits_for_its_others_and_then_goes_together() -> None:
    """group_wait counts from the first; whoever comes within it joins; other groups go on."""
    first = row(1, "a", group="g", hold=30.0)
    late = row(2, "b", group="g", hold=30.0, created=shifted(START, 29))
    other = row(3, "c", group="h")
    assert [r.seq for r in due([first, late, other], shifted(START, 29))] == [3]
    assert [r.seq for r in due([first, late, other], shifted(START, 30))] == [1, 2, 3]
    assert next_wait([first, late], shifted(START, 29)) == 1.0


def test_rows_of_a_group_are_one_message() -> None:
    """500 nodes that fail in one pass are one mail."""
    rows = [row(i, f"alert-{i}", group="g") for i in range(500)]
    assert [len(m) for m in bundles(rows)] == [500]


def test_a_subject_stands_once_in_a_message_and_in_order() -> None:
    """firing and resolved that waited together are two messages, whatever their groups, so that
    each stays in the thread of its alert."""
    rows = [
        row(1, "a", group="g"), row(2, "b", group="h"), row(3, "a", group="g"),
        row(4, "b", group="g"), row(5, "c", group="h"),
    ]  # fmt: skip
    assert [[r.seq for r in m] for m in bundles(rows)] == [[1], [2, 5], [3, 4]]
    changed = [row(1, "a", group="g"), row(2, "b", group="h"), row(3, "b", group="g")]
    assert [[r.seq for r in m] for m in bundles(changed)] == [[1], [2], [3]]


def test_rows_without_a_group_go_alone() -> None:
    """Rows of an older sentinel."""
    assert [len(m) for m in bundles([row(1, "a"), row(2, "b")])] == [1, 1]
