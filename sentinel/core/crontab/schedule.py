"""When a script is due: by the name of its directory, or by a line in it."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo

from msgspec import Struct

from sentinel.core.cron import Cron, fits, parse
from sentinel.core.errors import Invalid
from sentinel.core.values import Duration

_EVERY = re.compile(r"every-(\d+)(s|sec|m|min|h|hour|hours|d|day|days)")
_UNITS = {"sec": "s", "min": "m", "hour": "h", "hours": "h", "day": "d", "days": "d"}
_NAMED = ("hourly", "daily", "weekly", "monthly")
_DAY = timedelta(days=1)
LOOK_BACK = 366
"""Days of the past in which a slot is looked for, at most."""


class Schedule(Struct, frozen=True):
    """Slots at every so many seconds since 1970, or those of a crontab line in a time zone."""

    text: str
    every: int = 0
    cron: Cron | None = None


def of_directory(name: str) -> Schedule:
    """`cron.hourly`, `cron.daily`, `cron.weekly`, `cron.monthly`, `cron.every-30min`; raises
    Invalid for any other name."""
    word = name.removeprefix("cron.")
    if word in _NAMED:
        return of_text(f"@{word}")
    match = _EVERY.fullmatch(word)
    if not match:
        raise Invalid(
            f"{name!r} is no schedule; directories are cron.hourly, cron.daily, cron.weekly, "
            "cron.monthly, or like cron.every-30min"
        )
    seconds = int(Duration.parse(f"{match[1]}{_UNITS.get(match[2], match[2])}"))
    if seconds < 60:
        raise Invalid(f"{name!r}: scripts are submitted once a minute at most")
    return Schedule(f"every {match[1]}{match[2]}", every=seconds)


def of_text(text: str) -> Schedule:
    """A crontab line in five fields or @daily and the like; raises Invalid."""
    return Schedule(text, cron=parse(text))


def slots(schedule: Schedule, after: float, until: float, zone: tzinfo) -> Iterator[int]:
    """Every slot (epoch seconds) later than `after` and not later than `until`, in order.

    A time of the day that summer time leaves out is made up an hour later, one that it repeats
    comes once; schedules of every hour go on by real time, as cron(8) has it.
    """
    after = max(after, until - LOOK_BACK * 86400)
    if schedule.cron is None:
        first = (int(after) // schedule.every + 1) * schedule.every
        yield from range(first, int(until) + 1, schedule.every)
    elif len(schedule.cron.hours) == 24:
        yield from _by_real_time(schedule.cron, after, until, zone)
    else:
        yield from _by_wall_clock(schedule.cron, after, until, zone)


def _by_real_time(cron: Cron, after: float, until: float, zone: tzinfo) -> Iterator[int]:
    for hour in range(int(after) // 3600, int(until) // 3600 + 1):
        local = datetime.fromtimestamp(hour * 3600, tz=zone)
        if not (_names_day(cron, local) or _names_day(cron, local + timedelta(minutes=59))):
            continue
        for minute in range(60):
            slot = hour * 3600 + minute * 60
            if after < slot <= until and fits(cron, datetime.fromtimestamp(slot, tz=zone)):
                yield slot


def _by_wall_clock(cron: Cron, after: float, until: float, zone: tzinfo) -> Iterator[int]:
    day = datetime.fromtimestamp(after, tz=zone).replace(tzinfo=None) - _DAY
    day = day.replace(hour=0, minute=0, second=0, microsecond=0)
    last = datetime.fromtimestamp(until, tz=zone).replace(tzinfo=None) + _DAY
    while day <= last:
        if _names_day(cron, day):
            found = {_epoch(day.replace(hour=h, minute=m), zone) for h, m in _times(cron)}
            yield from (slot for slot in sorted(found) if after < slot <= until)
        day += _DAY


def _times(cron: Cron) -> Iterator[tuple[int, int]]:
    return ((hour, minute) for hour in cron.hours for minute in cron.minutes)


def _names_day(cron: Cron, local: datetime) -> bool:
    probe = local.replace(hour=cron.hours[0], minute=cron.minutes[0])
    return fits(cron, probe)


def _epoch(local: datetime, zone: tzinfo) -> int:
    """A time that does not exist counts as the one an hour later (PEP 495, fold=0)."""
    return int(local.replace(tzinfo=zone).astimezone(timezone.utc).timestamp())
