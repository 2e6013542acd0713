"""A message that was not sent yet when a person silenced its alert waits for the end of the silence."""

from typing import Any

from msgspec.structs import replace

from sentinel.alerting.settings import Match
from sentinel.alerting.silenced_rows import split_silenced_rows
from sentinel.alerting.silences import Silence
from sentinel.core.clock import SECOND, shift_instant
from sentinel.core.model import Outgoing, Status
from sentinel.testing import START
from tests.alerting.test_outbox import row

LATER = shift_instant(START, 60)
SILENCE = Silence(
    id="s",
    match=Match(subject="a"),
    starts=START.wall + 10 * SECOND,
    ends=START.wall + 3600 * SECOND,
)


def reason(one: Outgoing, word: str, **more: Any) -> Outgoing:
    over = {"status": Status.OK} if word == "resolved" else {}
    return replace(one, notification=replace(one.notification, reason=word, **over), **more)


def split(
    *rows: Outgoing, silence: Silence = SILENCE, at: float = 60
) -> tuple[list[int], list[int]]:
    found = split_silenced_rows(rows, [silence], shift_instant(START, at))
    return [r.seq for r in found.waiting], [r.seq for r in found.needless]


def test_what_is_silenced_before_it_is_sent_waits() -> None:
    """And nothing else: another alert, what was tried before, a message from after the silence, and
    once the silence is over."""
    tried = row(2, tried=START, attempts=1)
    newer = row(3, created=LATER)
    assert split(row(1), row(4, "b")) == ([1], [])
    assert split(tried, row(5, "b")) == ([], [])
    assert split(newer) == ([], [])
    assert split(row(1), at=3601) == ([], [])
    assert split(row(1), silence=replace(SILENCE, ends=START.wall + 20 * SECOND)) == ([], [])


def test_what_is_over_before_anybody_heard_of_it_is_told_to_nobody() -> None:
    """The end of what people have heard of is sent, whatever waits of it."""
    firing, worse, end = row(1), reason(row(2), "worse"), reason(row(3, created=LATER), "resolved")
    assert split(firing, worse, end) == ([], [1, 2, 3])
    assert split(worse, end) == ([], [2])
    assert split(end) == ([], [])
