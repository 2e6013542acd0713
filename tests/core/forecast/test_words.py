"""Rules of what a person is told of a forecast."""

import time
from collections.abc import Iterator

import pytest

from sentinel.core.errors import Invalid
from sentinel.core.forecast.forecast import Forecast
from sentinel.core.forecast.growth_steps import GrowthSteps
from sentinel.core.forecast.words import describe_forecast, format_moment, parse_headroom

# Thursday 2027-01-14 12:00:00 UTC
NOW, HOUR = 1_799_928_000.0, 3600.0


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The host's zone is UTC here."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (0.5, "Thursday 12:30"),
        (39.2, "Saturday 03:12"),
        (143, "Wednesday 11:00"),
        (145, "20 January"),
        (1000, "25 February"),
    ],
)
def test_a_moment_is_a_weekday_or_a_date(hours: float, text: str) -> None:
    """A weekday alone would be ambiguous after six days."""
    assert format_moment(NOW + hours * HOUR, NOW) == text


def test_the_zone_is_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads it sits beside it."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert format_moment(NOW, NOW) == "Thursday 21:00"


def made(full: float | None, early: float | None, late: float | None, **more: object) -> Forecast:
    times = [None if t is None else t * HOUR for t in (full, early, late)]
    known = {"rate": 1e12 / 86_400, **more}
    return Forecast(full_in=times[0], early=times[1], late=times[2], **known)  # type: ignore[arg-type]


STEPS = GrowthSteps(size=2.3e12, every=10_900.0)


@pytest.mark.parametrize(
    ("forecast", "text"),
    [
        (
            made(39, 34, 47, steps=STEPS),
            "full on Saturday 03:00 (between Friday 22:00 and Saturday 11:00) at 2.3 TB every 3h",
        ),
        (made(39, 39, 39), "full on Saturday 03:00 at 1 TB a day"),
        (made(39, 34, None), "full on Saturday 03:00 (not before Friday 22:00) at 1 TB a day"),
        (made(39, 39, 39, rate=-1.0), "full on Saturday 03:00"),
        (made(0, 0, 1), "full now"),
        (made(None, None, None), "not full within two months as it goes now"),
        (
            made(None, 34, None),
            "not full within two months as it goes now (at the earliest Friday 22:00)",
        ),
    ],
)
def test_a_forecast_in_words(forecast: Forecast, text: str) -> None:
    """When, between when and when, and why."""
    assert describe_forecast(forecast, NOW) == text


def test_inodes_are_told_by_their_share() -> None:
    """Their steps are no checkpoints."""
    forecast = made(39, 39, 39, rate=10 / 86_400, steps=STEPS)
    said = describe_forecast(forecast, NOW, "out of inodes", "% of inodes")
    assert said == "out of inodes on Saturday 03:00 at 10% of inodes a day"


def test_headroom_in_checkpoints() -> None:
    """Of a size that is given, or that is learned."""
    assert parse_headroom("8 checkpoints of 2.3TB") == (8, 2_300_000_000_000)
    assert parse_headroom("1 checkpoint") == (1, None)
    for text in ("", "8", "checkpoints", "0 checkpoints", "8 checkpoints of", "8 checkpoints of x"):
        with pytest.raises(Invalid):
            parse_headroom(text)
