"""crontab(5), not APScheduler's reading of it."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from sentinel.core.cron import parse
from sentinel.core.errors import Invalid
from sentinel.engine.schedule import cron_trigger

BERLIN = ZoneInfo("Europe/Berlin")


def fires(text: str, after: str, count: int = 3) -> list[str]:
    trigger = cron_trigger(text, BERLIN)
    at, seen = datetime.fromisoformat(after).replace(tzinfo=BERLIN), []
    for _ in range(count):
        at = trigger.get_next_fire_time(None, at + timedelta(seconds=1))
        seen.append(at.strftime("%a %Y-%m-%d %H:%M"))
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
        ("5-1 * * * *", "runs backwards"),
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
        parse(text)
