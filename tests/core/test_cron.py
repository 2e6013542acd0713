"""crontab(5), not APScheduler's reading of it."""

import random
from bisect import bisect_right
from datetime import datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from sentinel.core.cron import (
    find_latest_time,
    find_next_time,
    is_due_minute,
    iterate_times,
    parse_cron,
)
from sentinel.core.errors import Invalid

BERLIN = ZoneInfo("Europe/Berlin")


def fires(text: str, after: str, count: int = 3) -> list[str]:
    at, seen = datetime.fromisoformat(after).replace(tzinfo=BERLIN).timestamp(), []
    for _ in range(count):
        found = find_next_time(parse_cron(text), at, BERLIN)
        assert found is not None
        at = found
        seen.append(datetime.fromtimestamp(at, tz=BERLIN).strftime("%a %Y-%m-%d %H:%M"))
    return seen


@pytest.mark.parametrize("sunday", ["0", "7", "sun", "SUN"])
def test_zero_and_seven_are_sunday(sunday: str) -> None:
    """crontab(5): 0-7, 0 or 7 is Sunday, or use names."""
    assert fires(f"0 3 * * {sunday}", "2026-11-21 00:00:00", 2) == [
        "Sun 2026-11-22 03:00",
        "Sun 2026-11-29 03:00",
    ]


def test_one_to_five_is_monday_to_friday() -> None:
    """APScheduler's own numbers would make this Tuesday to Saturday."""
    assert [f[:3] for f in fires("0 3 * * 1-5", "2026-11-21 00:00:00", 6)] == (
        ["Mon", "Tue", "Wed", "Thu", "Fri", "Mon"]
    )


def test_five_to_seven_is_friday_to_sunday() -> None:
    """A range may end at 7."""
    assert [f[:3] for f in fires("0 3 * * 5-7", "2026-11-23 00:00:00", 4)] == (
        ["Fri", "Sat", "Sun", "Fri"]
    )


def test_day_of_month_or_day_of_week_when_both_are_given() -> None:
    """crontab(5): if both fields are restricted, the command runs when either matches."""
    assert fires("30 4 1,15 * 5", "2026-11-30 00:00:00", 4) == [
        "Tue 2026-12-01 04:30",
        "Fri 2026-12-04 04:30",
        "Fri 2026-12-11 04:30",
        "Tue 2026-12-15 04:30",
    ]


def test_a_star_with_a_step_does_not_count_as_restricted() -> None:
    """Vixie cron looks at the first character: `*/2` with a weekday needs both."""
    assert fires("0 0 */2 * mon", "2026-11-21 00:00:00", 2) == [
        "Mon 2026-11-23 00:00",
        "Mon 2026-12-07 00:00",
    ]


def test_steps_lists_names_and_nicknames() -> None:
    """The example of the interface, and @daily."""
    assert fires("*/30 8-20 * * mon-fri", "2026-11-20 20:00:00", 3) == [
        "Fri 2026-11-20 20:30",
        "Mon 2026-11-23 08:00",
        "Mon 2026-11-23 08:30",
    ]
    assert fires("@daily", "2026-11-20 20:00:00", 1) == ["Sat 2026-11-21 00:00"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * *", "five fields"),
        ("60 * * * *", "minute '60' is not within 0-59"),
        ("* 24 * * *", "hour '24' is not within 0-23"),
        ("* * 0 * *", "day of month '0' is not within 1-31"),
        ("* * * 13 *", "month '13' is not within 1-12 or jan-dec"),
        ("* * * * 8", "day of week '8' is not within 0-7 or sun-sat"),
        ("*/0 * * * *", "minute '0' is not within 1-59"),
        ("5-1 * * * *", "goes over the end"),
        ("x * * * *", "minute 'x'"),
        ("* * 30 2 *", "never comes"),
        ("", "five fields"),
        ("@reboot", "five fields"),
        ("1,,2 * * * *", "minute ''"),
        ("² * * * *", "minute"),
    ],
)
def test_a_bad_schedule_is_refused_in_words(text: str, words: str) -> None:
    """The message names the field and what it may hold."""
    with pytest.raises(Invalid, match=words.replace("*", r"\*")):
        parse_cron(text)


LOST = [
    pytest.param("0 0 * * *", "2027-03-28", ["Sun 2027-03-28 00:00", "Mon 2027-03-29 00:00"], id="day"),
    pytest.param("0 0 * * mon", "2027-03-27", ["Mon 2027-03-29 00:00", "Mon 2027-04-05 00:00"], id="week"),
    pytest.param("0 0 1 * *", "2027-03-27", ["Thu 2027-04-01 00:00", "Sat 2027-05-01 00:00"], id="month"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "after", "expected"), LOST)
def test_summer_time_takes_no_day_away(text: str, after: str, expected: list[str]) -> None:
    """APScheduler 3.11 goes from Sunday 00:00 to Tuesday 00:00 in Berlin, and loses a week or a
    month where the next one begins on the day after the change."""
    second_before = (datetime.fromisoformat(after) - timedelta(seconds=1)).isoformat()
    assert fires(text, second_before, 2) == expected


@pytest.mark.parametrize(
    ("zone", "night"),
    [
        ("Europe/Berlin", "2027-03-28T01:00"),
        ("Europe/Berlin", "2027-10-31T01:00"),
        ("America/New_York", "2027-03-14T07:00"),
        ("America/New_York", "2027-11-07T06:00"),
        ("America/Santiago", "2027-04-04T03:00"),
        ("America/Santiago", "2027-09-05T04:00"),
        ("America/Havana", "2027-11-07T05:00"),
        ("Antarctica/Troll", "2027-03-28T01:00"),
        ("Antarctica/Troll", "2027-10-31T01:00"),
        ("America/St_Johns", "2027-11-07T04:30"),
        ("Asia/Kolkata", "2027-03-28T01:00"),
    ],
)
def test_agrees_with_cronsim_around_both_nights(zone: str, night: str) -> None:
    """cronsim follows Debian's cron too. Seeded expressions, 24 a night, whose times may lie in
    the hour that is left out or repeated."""
    there, change = ZoneInfo(zone), datetime.fromisoformat(night + "+00:00")
    chance = random.Random(zone + night)
    for _ in range(24):
        text = expression(chance)
        begin, end = change - timedelta(hours=40), change + timedelta(hours=50)
        theirs = takewhile(end.__ge__, CronSim(text, begin.astimezone(there)))
        expected = [int(at.timestamp()) for at in theirs]
        assert (
            list(iterate_times(parse_cron(text), begin.timestamp(), end.timestamp(), there))
            == expected
        ), text


def expression(chance: random.Random) -> str:
    minute = chance.choice(["0", "30", "15,45", "7-20", "*/20"])
    hour = chance.choice(["0", "1", "2", "3", "0-2", "2,3", "1-4", "23", "*/2", "*"])
    day = chance.choice(["*", "*", "28-31", "*/2", "4,5,7,14"])
    return f"{minute} {hour} {day} * {chance.choice(['*', '*', '0', 'mon', '0,1,6'])}"


@pytest.mark.parametrize(
    ("zone", "night"),
    [
        ("Australia/Lord_Howe", "2027-04-03T15:00"),
        ("Australia/Lord_Howe", "2027-10-02T15:30"),
        ("Pacific/Chatham", "2027-09-25T14:00"),
        ("Asia/Beirut", "2027-03-27T22:00"),
    ],
)
def test_real_time_against_every_minute_where_cronsim_loses_some(zone: str, night: str) -> None:
    """It does where clocks move by half an hour, and after a midnight that does not exist."""
    there, change = ZoneInfo(zone), int(datetime.fromisoformat(night + "+00:00").timestamp())
    for text in ("40 * * * *", "*/7 1-3 * * *", "* 2 * * *", "*/20 1-4 28-31 * mon"):
        minutes = range(change - 90_000, change + 90_000, 60)
        clock = ((m, datetime.fromtimestamp(m, tz=there)) for m in minutes)
        expected = [m for m, local in clock if is_due_minute(parse_cron(text), local)]
        assert list(iterate_times(parse_cron(text), minutes[0] - 1, minutes[-1], there)) == expected


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll", "UTC"]
)
@pytest.mark.parametrize("text", ["30 2 * * *", "0 0 * * *", "15 0-4 * * sun", "*/20 * * * *"])
def test_the_next_and_the_latest_are_neighbours_in_the_list(zone: str, text: str) -> None:
    """From any moment of a year: what comes next, and what came last."""
    there, cron = ZoneInfo(zone), parse_cron(text)
    times = list(iterate_times(cron, 1_798_000_000, 1_830_000_000, there))
    chance = random.Random(text)
    for _ in range(60):
        at = chance.choice(times[1:-1]) + chance.choice([-1, 0, 1, 600])
        expected = bisect_right(times, at)
        assert find_next_time(cron, at, there) == times[expected]
        assert find_latest_time(cron, at, 9e6, there) == times[expected - 1]
        assert find_latest_time(cron, at, at - times[expected - 1], there) is None


def test_the_29th_of_february_over_a_century_without_one() -> None:
    """Eight years; and not a slow search."""
    after = datetime(2096, 3, 1, tzinfo=BERLIN).timestamp()
    found = find_next_time(parse_cron("0 12 29 2 *"), after, BERLIN)
    assert found == datetime(2104, 2, 29, 12, tzinfo=BERLIN).timestamp()
