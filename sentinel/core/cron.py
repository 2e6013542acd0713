"""Crontab schedules, for checks, scripts, windows and reports.

They have the meaning of crontab(5): 0 and 7 are Sunday, day of month OR day of week. At a change of
clocks they behave as cron(8) of Debian. A schedule whose minute or hour begins with `*` follows
real time. A fixed time that the clock skips comes at the end of the gap. A fixed time that the
clock repeats comes once, the first time. https://manpages.debian.org/bookworm/cron/cron.8.en.html
"""

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo

from msgspec import Struct

from sentinel.core.errors import Invalid
from sentinel.core.text import shortened

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELD_SPECS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTH_NAMES),
    ("day of week", 0, 7, _DAY_NAMES),
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

    `either_day`: both day fields are restricted. Then a day matches if one of the two matches.
    `real_time`: minute or hour begin with `*`, so clock changes neither shift nor merge its times.
    """

    minutes: tuple[int, ...]  # Minutes that fit, 0 to 59.
    hours: tuple[int, ...]  # Hours that fit, 0 to 23.
    days: tuple[int, ...]  # Days of the month that fit, 1 to 31.
    months: tuple[int, ...]  # Months that fit, 1 to 12.
    weekdays: tuple[int, ...]  # Days of the week that fit, 0 (Sunday) to 6.
    either_day: bool
    real_time: bool


def parse_cron(text: str) -> Cron:
    """Parse the five fields (or @daily and the like). Raises Invalid, which names the bad field."""
    fields = _NICKNAMES.get(text.strip().lower(), text).split()
    if len(fields) != 5:
        raise Invalid(
            f"{text!r} is no crontab schedule: five fields are needed "
            "(minute hour day-of-month month day-of-week), or @hourly, @daily, @weekly, @monthly"
        )
    minutes, hours, days, months, weekdays = (
        _parse_field(field, *spec) for field, spec in zip(fields, _FIELD_SPECS, strict=True)
    )
    cron = Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=tuple(sorted({d % 7 for d in weekdays})),
        either_day=not fields[2].startswith("*") and not fields[4].startswith("*"),
        real_time=fields[0].startswith("*") or fields[1].startswith("*"),
    )
    _refuse_never(cron, text)
    return cron


def _parse_field(
    text: str, name: str, low: int, high: int, words: tuple[str, ...]
) -> tuple[int, ...]:
    values: set[int] = set()
    for part in text.lower().split(","):
        values |= set(_parse_part(part, name, low, high, words))
    return tuple(sorted(values))


def _parse_part(text: str, name: str, low: int, high: int, words: tuple[str, ...]) -> range:
    span, _, step = text.partition("/")
    every = _parse_number(step, name, 1, high, ()) if "/" in text else 1
    if span == "*":
        return range(low, min(high, 6 if name == "day of week" else high) + 1, every)
    first, dash, last = span.partition("-")
    start = _parse_number(first, name, low, high, words)
    if not dash:
        return range(start, high + 1, every) if "/" in text else range(start, start + 1)
    end = _parse_number(last, name, low, high, words)
    if name == "day of week" and start > end == 0:  # fri-sun, as cronie reads it: Sunday is also 7
        end = 7
    if end < start:
        raise Invalid(_explain_backwards(text, name, (start, end), (low, high), words, every))
    return range(start, end + 1, every)


def _explain_backwards(
    text: str,
    name: str,
    ends: tuple[int, int],
    bounds: tuple[int, int],
    words: tuple[str, ...],
    every: int,
) -> str:
    """An error text about a range that goes over the end of the field, with the same schedule as a
    list."""
    (start, end), (low, high) = ends, bounds
    if name == "day of week":
        high = 6
    values = (*range(start, high + 1), *range(low, end + 1))[::every]
    listed = ",".join(words[v - bounds[0]] if words else str(v) for v in sorted(values))
    return f"{name} {text!r} goes over the end of its field; write {listed}"


def _parse_number(text: str, name: str, low: int, high: int, words: tuple[str, ...]) -> int:
    if text in words:
        return list(words).index(text) + (low if name == "month" else 0)
    # int() refuses very long numbers (more than 4,300 digits)
    number = text.isascii() and text.isdigit() and len(text) < 10
    if not number or not low <= int(text) <= high:
        names = f" or {words[0]}-{words[-1]}" if words else ""
        raise Invalid(f"{name} {shortened(text, 20)!r} is not within {low}-{high}{names}")
    return int(text)


def _refuse_never(cron: Cron, text: str) -> None:
    longest = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
    possible = any(d <= longest.get(m, 31) for m in cron.months for d in cron.days)
    if not possible and not cron.either_day:
        raise Invalid(f"{text!r} never comes: no such day in these months")


def is_due_minute(cron: Cron, local: datetime) -> bool:
    """Whether the schedule names this minute of local time."""
    return (
        local.minute in cron.minutes and local.hour in cron.hours and has_times_on_day(cron, local)
    )


def has_times_on_day(cron: Cron, local: datetime) -> bool:
    """Whether the schedule has times on this day."""
    day, weekday = local.day in cron.days, local.isoweekday() % 7 in cron.weekdays
    return local.month in cron.months and (day or weekday if cron.either_day else day and weekday)


def iterate_times(cron: Cron, after: float, until: float, zone: tzinfo) -> Iterator[int]:
    """Every time of the schedule (epoch seconds) later than `after` and not later than `until`,
    in order."""
    last = after
    calm = until - after < 86400 and _get_utc_offset(after - 86400, zone) == _get_utc_offset(
        until, zone
    )
    slack = _NONE if calm else _MAX_CLOCK_SHIFT
    first, final = _to_wall_time(after, zone) - slack, _to_wall_time(until, zone) + slack
    day = first.replace(hour=0, minute=0, second=0, microsecond=0)
    while day <= final:
        if has_times_on_day(cron, day):
            for slot in sorted(_list_day_times(cron, day, (first, final), zone)):
                if last < slot <= until:
                    yield slot
                    last = slot
        day += _DAY


def find_next_time(cron: Cron, after: float, zone: tzinfo) -> int | None:
    """The first time later than `after`. None if there is none within nine years.

    A 29th of February comes after eight years at the latest, around 2100.
    """
    begin = after
    for span in _SEARCH_SPANS_S:
        found = next(iterate_times(cron, begin, after + span, zone), None)
        if found is not None:
            return found
        begin = after + span
    return None


def find_latest_time(cron: Cron, until: float, within: float, zone: tzinfo) -> int | None:
    """The last time up to `until` that is less than `within` seconds ago; None if there is none."""
    end = until
    for span in (*(s for s in _SEARCH_SPANS_S if s < within), within):
        begin = until - span
        *_, found = (None, *iterate_times(cron, begin, end, zone))
        if found is not None:
            return found if until - found < within else None
        end = begin
    return None


def find_clock_changes(after: float, until: float, zone: tzinfo) -> Iterator[int]:
    """The moments (epoch seconds) at which clocks are moved, in order."""
    begin = int(after)
    while begin < until:
        end = begin + 86400
        if _get_utc_offset(begin, zone) != _get_utc_offset(end, zone):
            change = _find_clock_change(begin, end, zone)
            if after < change <= until:
                yield change
        begin = end


_NONE, _HOUR, _DAY = timedelta(0), timedelta(hours=1), timedelta(days=1)
_MAX_CLOCK_SHIFT = timedelta(hours=26)
"""No clock was ever moved by more at once (Samoa left out a day in 2011)."""

_SEARCH_SPANS_S = tuple(float(days * 86400) for days in (1 / 24, 1, 8, 62, 366, 9 * 366))
"""Seconds to look ahead in each step of a search."""


def _list_day_times(
    cron: Cron, day: datetime, within: tuple[datetime, datetime], zone: tzinfo
) -> Iterator[int]:
    first, final = within
    for hour in cron.hours:
        begin = day.replace(hour=hour)
        if begin > final or begin + _HOUR <= first:
            continue
        for minute in cron.minutes:
            local = begin.replace(minute=minute)
            if first <= local <= final:
                yield from _list_epochs(local, zone, cron.real_time)


def _list_epochs(local: datetime, zone: tzinfo, real_time: bool) -> set[int]:
    """The moments (epoch seconds) at which clocks show this local time. By real time: none, one or
    two; else exactly one, as `resolve_local_time` picks it."""
    if not real_time:
        return {resolve_local_time(local, zone)}
    early, late = _get_both_epochs(local, zone)
    return {early, late} if early <= late else set()


def resolve_local_time(local: datetime, zone: tzinfo) -> int:
    """Epoch seconds of a local time. If clocks show the time twice, the first counts. If they leave
    it out, the end of the gap counts."""
    early, late = _get_both_epochs(local, zone)
    return early if early <= late else _find_clock_change(late, early, zone)


def _get_both_epochs(local: datetime, zone: tzinfo) -> tuple[int, int]:
    """Epoch seconds by the offset before and after a clock change. If clocks leave the time out,
    the first is later than the second (PEP 495)."""
    before, after = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    return _to_epoch(before), _to_epoch(after)


def _find_clock_change(before: int, after: int, zone: tzinfo) -> int:
    """The moment within (before, after] at which the clock is moved."""
    old = _get_utc_offset(before, zone)
    while after - before > 1:
        middle = (before + after) // 2
        if _get_utc_offset(middle, zone) == old:
            before = middle
        else:
            after = middle
    return after


def _get_utc_offset(epoch: float, zone: tzinfo) -> timedelta | None:
    return datetime.fromtimestamp(epoch, tz=zone).utcoffset()


def _to_wall_time(epoch: float, zone: tzinfo) -> datetime:
    """The local time that clocks show, without a zone."""
    return datetime.fromtimestamp(epoch, tz=zone).replace(tzinfo=None)


def _to_epoch(local: datetime) -> int:
    return int(local.astimezone(timezone.utc).timestamp())
