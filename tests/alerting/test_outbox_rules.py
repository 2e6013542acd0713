"""Who tells an end, what is not needed any more, how much fits into an hour, who stands in."""

import pytest
from msgspec.structs import replace

from sentinel.alerting.outbox import (
    BLOCKING_ATTEMPTS,
    DOUBT_MARK,
    FALLBACK_AFTER_S,
    GIVE_UP_S,
    REDIRECTED_MARK,
    EndDuty,
    RefusedRows,
    after_doubt,
    after_failure,
    bundle_messages,
    decide_end_duty,
    due_rows,
    expired_rows,
    find_early_retries,
    find_next_attempt,
    is_answerable,
    is_beginning,
    is_due,
    is_ending,
    join_messages,
    next_wait,
    redirect_row,
    share_doubtful,
    undelivered_rows,
)
from sentinel.alerting.owners import RECIPIENT_REASON
from sentinel.core.clock import Instant, shift_instant
from sentinel.core.errors import ChannelError
from sentinel.core.holds import MessageGroup
from sentinel.core.model import Outgoing, Status
from sentinel.testing import START
from tests.alerting.test_outbox import ended, refused, row


def of(reason: str, seq: int = 1, alert: str = "a", **more: object) -> Outgoing:
    base = row(seq, alert, **more)
    return replace(base, notification=replace(base.notification, reason=reason))


@pytest.mark.parametrize(
    ("reason", "begins", "ends", "answerable"),
    [
        ("firing", True, False, True),
        ("flapping", True, False, True),
        ("repeat", False, False, True),
        ("settled", False, False, True),
        ("resolved", False, True, False),
        ("gone", False, True, False),
        ("action", False, False, False),
        ("test", False, False, False),
        ("digest", False, False, False),
    ],
)
def test_what_a_message_is(reason: str, begins: bool, ends: bool, answerable: bool) -> None:
    """By its reason; what has settled ends where all is good."""
    n = of(reason).notification
    assert (is_beginning(n), is_ending(n), is_answerable(n)) == (begins, ends, answerable)
    good = replace(n, status=Status.OK)
    assert is_ending(good) is (ends or reason == "settled")
    assert not is_answerable(replace(n, alert=""))


def test_refused_rows_go_when_a_newer_one_was_taken() -> None:
    """Of the same subject, and older; an action takes nothing away. What is newer stays."""
    rows = RefusedRows([refused(1), refused(2, "b"), refused(5)])
    assert rows.overtaken_by([of("action", 6)]) == []
    assert [r.seq for r in rows.overtaken_by([row(4)])] == [1]
    assert [r.seq for r in rows.overtaken_by([row(4)])] == []
    assert [r.seq for r in rows.overtaken_by([row(6), row(7, "b")])] == [5, 2]


def test_an_end_is_held_back_after_its_beginning_was_refused_just_now() -> None:
    """Until something newer was taken; an end that was refused holds nothing back."""
    rows = RefusedRows([refused(1)])
    assert not rows.hold_back(ended(2))
    rows.add_refused([refused(3), ended(4, "b")])
    assert rows.hold_back(ended(5))
    assert not rows.hold_back(row(5))
    assert not rows.hold_back(ended(5, "b"))
    assert not rows.hold_back(ended(5, channel="chat"))
    assert [r.seq for r in rows.overtaken_by([row(6)])] == [1, 3]
    assert not rows.hold_back(ended(7))


def test_whose_it_is_to_tell_an_end() -> None:
    """The fallback's where it has told the beginning, and its alone where the own one never did."""
    end = ended(9)
    mine, sent = row(1), shift_instant(START, 1)
    at_fallback = replace(row(2, channel="desk"), notification=mine.notification)
    stands_in, told = (mine, None, REDIRECTED_MARK), (at_fallback, sent, "")
    assert decide_end_duty(end, [], "desk") == EndDuty(False, False)
    assert decide_end_duty(end, [(mine, sent, "")], "desk") == EndDuty(False, False)
    assert decide_end_duty(end, [(mine, None, "gave up"), told], "desk") == EndDuty(False, False)
    assert decide_end_duty(end, [stands_in], "desk") == EndDuty(False, False)
    assert decide_end_duty(end, [stands_in, told], "desk") == EndDuty(True, True)
    other = (row(3), sent, "")
    assert decide_end_duty(end, [stands_in, told, other], "desk") == EndDuty(True, False)
    elsewhere = (row(3, channel="chat"), sent, "")
    assert decide_end_duty(end, [stands_in, told, elsewhere], "desk") == EndDuty(True, True)
    own = (end, sent, "")  # of itself nothing is learnt
    assert decide_end_duty(end, [stands_in, told, own], "desk") == EndDuty(True, True)
    there = (replace(end, channel="desk"), sent, "")
    assert decide_end_duty(end, [stands_in, told, there], "desk") == EndDuty(False, True)


@pytest.mark.parametrize(
    ("delivered", "said", "attempts", "heard"),
    [
        (True, "", 1, True),
        (True, f"{DOUBT_MARK}1 no answer", 1, False),
        (False, "", 0, True),  # it will be tried
        (False, "", 1, False),
        (False, "no route", 0, False),
    ],
)
def test_whether_another_channel_has_what_one_gave_a_doubtful_answer_to(
    delivered: bool, said: str, attempts: int, heard: bool
) -> None:
    there = replace(row(1, channel="chat"), attempts=attempts)
    past = [(there, START if delivered else None, said)]
    assert share_doubtful(row(1), past, "", ["chat", "desk"]) == ([] if heard else ["desk"], True)
    other = replace(there, notification=replace(there.notification, key="another"))
    past = [(other, START if delivered else None, said)]
    assert share_doubtful(row(1), past, "", ["chat", "desk"]) == (["chat", "desk"], True)


def test_after_a_doubtful_answer_a_row_is_sent_twice_more() -> None:
    """In five minutes and in an hour; it makes no other wait, and people may end its wait."""
    first = after_doubt(row(1), "no answer", START)
    assert first is not None
    second = after_doubt(replace(first, wait=0.0), "no answer", START)
    assert second is not None
    assert [(one.wait, one.permanent, one.attempts) for one in (first, second)] == [
        (300.0, True, 1),
        (3600.0, True, 2),
    ]
    assert after_doubt(second, "no answer", START) is None


def test_messages_of_one_call_lose_none_and_keep_their_order() -> None:
    one, two, three = [row(1)], [row(2), row(3)], [row(4)]
    assert join_messages([one, two, three], 2) == [[*one, *two], three]
    assert join_messages([one, two], 1) == [one, two]


def test_who_stands_in_for_a_channel_that_does_not_deliver() -> None:
    """After five minutes of trying, or at once for what was refused; never for what waits."""
    assert FALLBACK_AFTER_S == 300
    tried, later = row(1, attempts=1, tried=START, wait=2.0), shift_instant(START, 300)
    fallbacks = {"mail": "desk", "chat": ""}

    def undelivered(one: Outgoing, now: Instant) -> bool:
        return undelivered_rows([one], fallbacks, now) == [one]

    assert undelivered(tried, later)
    assert not undelivered(tried, shift_instant(START, 299))
    assert undelivered(replace(tried, permanent=True), START)
    assert not undelivered(replace(tried, attempts=0), later)
    assert not undelivered(replace(tried, channel="chat"), later)
    assert not undelivered(replace(tried, channel="other"), later)


def test_a_row_that_goes_another_way_says_why() -> None:
    """Its own note stays before that; it is new there, and nobody's own any more."""
    lost = row(1, error="no route", attempts=3, wait=9.0, bundle=MessageGroup("g", owner="ann"))
    sent = redirect_row(lost, "desk", shift_instant(START, 5))
    why = "sent here because mail does not deliver: no route"
    assert sent.notification == replace(lost.notification, note=why)
    assert (sent.channel, sent.created, sent.attempts) == ("desk", shift_instant(START, 5), 0)
    assert sent.bundle == MessageGroup("g")
    noted = replace(lost, notification=replace(lost.notification, note="muted before"))
    assert redirect_row(noted, "desk", START).notification.note == f"muted before; {why}"


def test_the_bounds_of_waiting() -> None:
    """A wait ends at its second; of a group it is gathered until then, but never once tried."""
    later = shift_instant(START, 30)
    held = row(1, bundle=MessageGroup("g"), hold=30.0)
    assert not is_due(held, shift_instant(START, 29.9))
    assert is_due(held, later)
    assert is_due(replace(held, attempts=1, tried=START, wait=5.0), shift_instant(START, 5))
    assert not is_due(replace(held, attempts=1, tried=START, wait=5.0), shift_instant(START, 4.9))
    assert next_wait([row(1, attempts=1, tried=START, wait=5.0)], shift_instant(START, 2)) == 3.0
    before = Instant(wall=START.wall - 10**6, boot="other", mono=0)
    assert is_due(held, before)  # made in what is now the future: nobody waits for a clock


def test_a_refused_beginning_is_tried_again_when_its_end_has_come() -> None:
    """Once: what was tried after the end was made is not."""
    end = ended(2, created=shift_instant(START, 60))
    now = shift_instant(START, 61)
    assert [r.seq for r in due_rows([refused(1), end], now)] == [1, 2]
    again = replace(refused(1), tried=shift_instant(START, 60))
    assert due_rows([again, end], now) == []
    assert due_rows([replace(refused(1), permanent=False), end], now) == []  # it failed for now
    rebooted = ended(2, created=Instant(wall=START.wall + 1, boot="boot-2", mono=0))
    assert [r.seq for r in due_rows([refused(1), rebooted], now)] == [1, 2]
    earlier = ended(2, created=Instant(wall=START.wall - 1, boot="boot-2", mono=10**12))
    assert due_rows([refused(1), earlier], now) == []


def test_two_groups_of_one_channel_wait_each_for_itself() -> None:
    """The first of a group that has waited enough opens it for all."""
    one = row(1, "a", bundle=MessageGroup("g"), hold=30.0)
    two = row(2, "b", bundle=MessageGroup("g"), hold=5.0, created=shift_instant(START, 1))
    assert [r.seq for r in due_rows([one, two], shift_instant(START, 6))] == [1, 2]
    assert due_rows([one, two], shift_instant(START, 5)) == []
    assert [len(m) for m in bundle_messages([row(1, "a", bundle=MessageGroup(""))])] == [1]


def test_failures_are_counted() -> None:
    """With their words and their moment; the wait grows no more after twenty."""
    failed = after_failure(row(1, attempts=40), ChannelError("down"), shift_instant(START, 7))
    assert (failed.attempts, failed.error, failed.tried) == (41, "down", shift_instant(START, 7))
    assert (failed.wait, failed.permanent) == (300.0, False)
    assert after_failure(row(1), ChannelError("no", permanent=True), START).permanent
    theirs, gone = MessageGroup("", owner="ann"), ChannelError("no", reason=RECIPIENT_REASON)
    for before, after in ((0, BLOCKING_ATTEMPTS), (40, 41)):
        assert after_failure(row(1, attempts=before, bundle=theirs), gone, START).attempts == after


def test_what_is_given_up_is_old_and_was_tried() -> None:
    """A week; the end of a beginning that goes is that of the same episode on the same channel."""
    assert GIVE_UP_S == 7 * 86_400
    week = shift_instant(START, GIVE_UP_S + 1)
    old = replace(refused(1), tried=week)
    others = [ended(2, "b", created=week), ended(3, channel="chat", created=week), row(4)]
    assert expired_rows([old, *others]) == [old]
    assert expired_rows([replace(of("repeat"), tried=week), ended(2, created=week)]) == [
        replace(of("repeat"), tried=week)
    ]


REFUSED = ChannelError("535 wrong password", permanent=True)
BUSY = ChannelError("429 too many requests", retry_after=900.0)


def test_a_start_tries_what_was_refused_after_five_minutes() -> None:
    """The password may be mended now. What the channel has asked for, and what waits less, stays."""
    rejected, asked, failed = (
        after_failure(row(number), error, START)
        for number, error in enumerate((REFUSED, BUSY, ChannelError("no connection")))
    )
    assert rejected.wait == 3600.0
    early = find_early_retries([rejected, asked, failed, row(9)])
    assert early == [replace(rejected, wait=300.0)]
    assert find_early_retries(early) == []


@pytest.mark.parametrize(("seconds", "left"), [(0, 900.0), (600, 300.0), (900, 0.0), (5000, 0.0)])
def test_when_a_message_is_tried_again(seconds: float, left: float) -> None:
    failed = after_failure(row(1), BUSY, START)
    assert find_next_attempt(failed, shift_instant(START, seconds)) == left
    assert find_next_attempt(row(1), shift_instant(START, seconds)) is None
