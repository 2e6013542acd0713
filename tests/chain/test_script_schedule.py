"""When scripts are due."""

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest

from sentinel.chain.script import iterate_slots, schedule_of_directory, schedule_of_text
from sentinel.core.errors import Invalid

UTC = timezone.utc
BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: timezone | ZoneInfo = UTC) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


@pytest.mark.parametrize(
    ("directory", "expected"),
    [
        ("cron.hourly", "2026-11-21T05:00"),
        ("cron.daily", "2026-11-22T00:00"),
        ("cron.weekly", "2026-11-22T00:00"),
        ("cron.monthly", "2026-12-01T00:00"),
        ("cron.every-30min", "2026-11-21T05:00"),
        ("cron.every-7min", "2026-11-21T04:37"),
        ("cron.every-2h", "2026-11-21T06:00"),
        ("cron.every-2days", "2026-11-23T00:00"),
    ],
)
def test_directories_say_when(directory: str, expected: str) -> None:
    """After 2026-11-21 04:30, a Saturday."""
    found = iterate_slots(
        schedule_of_directory(directory), at("2026-11-21T04:30"), at("2026-12-21T04:30"), UTC
    )
    assert next(found) == at(expected)


@pytest.mark.parametrize("name", ["cron.yearlyish", "cron.every-0min", "cron.every-30s", "cron."])
def test_names_that_are_no_schedule(name: str) -> None:
    """They are errors and not silence."""
    with pytest.raises(Invalid):
        schedule_of_directory(name)


def test_a_schedule_that_never_comes_is_refused() -> None:
    """The 30th of February."""
    with pytest.raises(Invalid, match="never comes"):
        schedule_of_text("0 0 30 2 *")


def test_the_29th_of_february_comes() -> None:
    """In a leap year."""
    found = iterate_slots(
        schedule_of_text("0 0 29 2 *"), at("2028-01-01T00:00"), at("2028-12-31T00:00"), UTC
    )
    assert list(found) == [at("2028-02-29T00:00")]


def test_working_hours_on_working_days() -> None:
    """`*/30 8-20 * * mon-fri`: 26 slots a day, five days a week."""
    line = schedule_of_text("*/30 8-20 * * mon-fri")
    week = list(iterate_slots(line, at("2026-11-15T23:59"), at("2026-11-22T23:59"), UTC))
    assert len(week) == 26 * 5
    assert week[0] == at("2026-11-16T08:00")
    assert week[-1] == at("2026-11-20T20:30")


@pytest.mark.parametrize(
    ("line", "begin", "end", "expected"),
    [
        pytest.param("30 2 * * *", "2026-03-28T12:00", "2026-03-29T12:00",
                     ["2026-03-29T01:00+00:00"], id="left out by summer time: as soon as the clock has moved"),
        pytest.param("0,30 2,3 * * *", "2026-03-28T12:00", "2026-03-29T12:00",
                     ["2026-03-29T01:00+00:00", "2026-03-29T01:30+00:00"], id="and then once"),
        pytest.param("*/30 2 * * *", "2026-03-28T12:00", "2026-03-29T12:00",
                     [], id="a star goes by real time: that hour does not come"),
        pytest.param("30 2 * * *", "2026-10-24T12:00", "2026-10-25T12:00",
                     ["2026-10-25T00:30+00:00"], id="repeated by winter time: once"),
        pytest.param("0 * * * *", "2026-10-25T01:30", "2026-10-25T03:30",
                     ["2026-10-25T00:00+00:00", "2026-10-25T01:00+00:00", "2026-10-25T02:00+00:00"],
                     id="hourly goes on by real time"),
    ],
)  # fmt: skip
def test_changes_of_the_clock(line: str, begin: str, end: str, expected: list[str]) -> None:
    """As cron(8) has it, in Berlin."""
    found = iterate_slots(schedule_of_text(line), at(begin, BERLIN), at(end, BERLIN), BERLIN)
    assert list(found) == [datetime.fromisoformat(text).timestamp() for text in expected]


@pytest.mark.parametrize("line", ["*/5 * * * *", "0 3 * * *", "15 8-18/2 1,15 * 2"])
def test_slots_agree_with_the_minutes_of_crontab(line: str) -> None:
    """Every minute of a month, asked of core.cron itself."""
    from sentinel.core.cron import is_due_minute, parse_cron

    begin, end = at("2026-11-01T00:00"), at("2026-12-01T00:00")
    minutes = range(int(begin), int(end) + 1, 60)
    expected = [
        m for m in minutes if is_due_minute(parse_cron(line), datetime.fromtimestamp(m, tz=UTC))
    ]
    assert list(iterate_slots(schedule_of_text(line), begin - 1, end, UTC)) == expected
