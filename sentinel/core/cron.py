"""crontab(5) read as crontab(5) means it: 0 and 7 are Sunday, day-of-month OR day-of-week."""

from datetime import datetime

from msgspec import Struct

from sentinel.core.errors import Invalid
from sentinel.core.text import shortened

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Cron(Struct, frozen=True, kw_only=True):
    """The moments of a crontab line; days of the week count from Sunday = 0.

    `either_day`: both day fields are restricted, so a day that fits one of them fits.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    either_day: bool


def parse(text: str) -> Cron:
    """The five fields (or @daily and the like); raises Invalid that names the bad field."""
    fields = _NICKNAMES.get(text.strip().lower(), text).split()
    if len(fields) != 5:
        raise Invalid(
            f"{text!r} is no crontab schedule: five fields are needed "
            "(minute hour day-of-month month day-of-week), or @hourly, @daily, @weekly, @monthly"
        )
    minutes, hours, days, months, weekdays = (
        _field(field, *spec) for field, spec in zip(fields, _FIELDS, strict=True)
    )
    cron = Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=tuple(sorted({d % 7 for d in weekdays})),
        either_day=not fields[2].startswith("*") and not fields[4].startswith("*"),
    )
    _refuse_never(cron, text)
    return cron


def _field(text: str, name: str, low: int, high: int, words: tuple[str, ...]) -> tuple[int, ...]:
    values: set[int] = set()
    for part in text.lower().split(","):
        values |= set(_part(part, name, low, high, words))
    return tuple(sorted(values))


def _part(text: str, name: str, low: int, high: int, words: tuple[str, ...]) -> range:
    span, _, step = text.partition("/")
    every = _number(step, name, 1, high, ()) if "/" in text else 1
    if span == "*":
        return range(low, min(high, 6 if name == "day of week" else high) + 1, every)
    first, dash, last = span.partition("-")
    start = _number(first, name, low, high, words)
    if not dash:
        return range(start, high + 1, every) if "/" in text else range(start, start + 1)
    end = _number(last, name, low, high, words)
    if end < start:
        raise Invalid(f"{name} {text!r} runs backwards; write the smaller value first")
    return range(start, end + 1, every)


def _number(text: str, name: str, low: int, high: int, words: tuple[str, ...]) -> int:
    if text in words:
        return list(words).index(text) + (low if name == "month" else 0)
    number = text.isascii() and text.isdigit() and len(text) < 10  # int() takes no 4,301 digits
    if not number or not low <= int(text) <= high:
        names = f" or {words[0]}-{words[-1]}" if words else ""
        raise Invalid(f"{name} {shortened(text, 20)!r} is not within {low}-{high}{names}")
    return int(text)


def _refuse_never(cron: Cron, text: str) -> None:
    longest = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
    possible = any(d <= longest.get(m, 31) for m in cron.months for d in cron.days)
    if not possible and not cron.either_day:
        raise Invalid(f"{text!r} never comes: no such day in these months")


def fits(cron: Cron, local: datetime) -> bool:
    """Whether the schedule names this minute of local time."""
    day, weekday = local.day in cron.days, local.isoweekday() % 7 in cron.weekdays
    return (
        local.minute in cron.minutes
        and local.hour in cron.hours
        and local.month in cron.months
        and (day or weekday if cron.either_day else day and weekday)
    )
