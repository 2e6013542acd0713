"""Maintenance windows of the file: when each is open."""

from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.alerting.settings import Window
from sentinel.alerting.silence_windows import span
from sentinel.core import cron
from sentinel.core.errors import Invalid
from sentinel.core.values import Duration

BERLIN = ZoneInfo("Europe/Berlin")
CRONS = ("0 3 * * sun", "*/7 1-4 * * *", "30 22 1,15 * mon", "59 23 31 12 *", "0 0 29 2 *")


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"from_": "2027-01-01"},
        {"from_": "2027-01-01", "for_": Duration(60)},
        {"cron": "@daily"},
        {"cron": "@daily", "for_": Duration(60), "until": "2027-01-01"},
    ],
)
def test_a_window_is_one_span_or_recurs(keys: dict[str, Any]) -> None:
    """A key that would be ignored is refused: a daily silence `until` a day is not what it says."""
    with pytest.raises(Invalid, match="a silence always ends"):
        Window(**keys)


def weekly(at: datetime) -> tuple[datetime, datetime] | None:
    return opened("0 3 * * sun", 7200, at)


def opened(text: str, length: float, at: datetime) -> tuple[datetime, datetime] | None:
    found = span(Window(cron=text, for_=Duration(length)), at.timestamp(), BERLIN)
    return found and tuple(datetime.fromtimestamp(t, tz=timezone.utc) for t in found)  # type: ignore[return-value]


def test_a_recurring_window_is_open_from_its_minute_for_its_length() -> None:
    """Begin inclusive, end exclusive: two hours from Sunday 03:00 on."""
    begin = datetime(2027, 1, 17, 3, tzinfo=BERLIN)
    open_ = (begin, begin + timedelta(hours=2))
    assert weekly(begin - timedelta(seconds=1)) is None
    assert weekly(begin) == weekly(begin + timedelta(seconds=7199)) == open_
    assert weekly(begin + timedelta(hours=2)) is None


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        pytest.param("0 1 * * *", "2027-10-30T23:00Z", "2027-10-31T01:00Z", id="autumn: not cut"),
        pytest.param("30 2 * * *", "2027-10-31T00:30Z", "2027-10-31T02:30Z", id="autumn: once"),
        pytest.param(
            "0 1 * * *", "2027-03-28T00:00Z", "2027-03-28T02:00Z", id="spring: not longer"
        ),
        pytest.param("30 2 * * *", "2027-03-28T01:00Z", "2027-03-28T03:00Z", id="spring: not lost"),
    ],
)
def test_a_window_is_as_long_as_it_says_when_clocks_change(text: str, begin: str, end: str) -> None:
    """Two hours each, open at every minute between and at no other of that night."""
    first, last = (datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (begin, end))
    for minutes in range(-180, 301, 10):
        at = first + timedelta(minutes=minutes)
        inside = first <= at < last
        assert (opened(text, 7200, at) == (first, last)) is inside, at


@given(
    st.sampled_from(CRONS),
    st.datetimes(datetime(2023, 12, 1), datetime(2025, 2, 1), timezones=st.just(timezone.utc)),
    st.sampled_from([60, 3600, 90_000, 3 * 86_400]),
)
def test_a_window_is_open_when_a_minute_within_its_length_is_a_start(
    text: str, at: datetime, length: int
) -> None:
    """Against the plain way: look at every minute, the last first; in UTC, where no clock changes."""
    found = span(Window(cron=text, for_=Duration(length)), at.timestamp(), timezone.utc)
    when, last = cron.parse(text), at.replace(second=0, microsecond=0)
    minutes = (last - timedelta(minutes=back) for back in range(length // 60 + 1))
    starts = (m for m in minutes if cron.fits(when, m) and at - m < timedelta(seconds=length))
    begin = next(starts, None)
    assert (found and found[0]) == (begin and begin.timestamp())
