"""When a script is due: by the name of its directory, or by a line in it."""

import re
from collections.abc import Iterator
from datetime import tzinfo

from msgspec import Struct

from sentinel.core.cron import Cron, parse
from sentinel.core.cron import slots as cron_slots
from sentinel.core.errors import Invalid
from sentinel.core.values import Duration

_EVERY = re.compile(r"every-(\d+)(s|sec|m|min|h|hour|hours|d|day|days)")
_UNITS = {"sec": "s", "min": "m", "hour": "h", "hours": "h", "day": "d", "days": "d"}
_NAMED = ("hourly", "daily", "weekly", "monthly")
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
    """Every slot (epoch seconds) later than `after` and not later than `until`, in order."""
    after = max(after, until - LOOK_BACK * 86400)
    if schedule.cron is None:
        first = (int(after) // schedule.every + 1) * schedule.every
        yield from range(first, int(until) + 1, schedule.every)
    else:
        yield from cron_slots(schedule.cron, after, until, zone)
