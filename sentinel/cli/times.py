"""`sentinel config check --times`: shows when checks run, and when silences and routes are
active."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta, tzinfo
from functools import partial
from itertools import islice
from typing import Any

from sentinel.alerting.routing import open_hours
from sentinel.core import cron
from sentinel.core.text import visible

MAX_TIMES_SHOWN = 3
"""Times that are printed for each schedule, and for each night, at most."""

MAX_WINDOW_S = 8 * 86400.0
"""Seconds before a night in which a window that reaches into it may begin."""

YEAR_S = 366 * 86400.0

SpanFinder = Callable[[float, float], Iterator[tuple[int, int]]]
"""Finds the spans between two moments (epoch seconds): begin and end of each, which are the same
for a run."""


def list_schedule_times(settings: Any, now: float, zone: tzinfo) -> Iterator[str]:
    """Lines for every `cron`, silence and `hours` of the file: the next times, and what a change of
    clocks within a year does to them."""
    changes = list(cron.find_clock_changes(now, now + YEAR_S, zone))
    yield f"times in {_name_zone(zone)}"
    found = list(_list_schedules(settings, zone))
    for title, spans in found:
        yield title
        following = [
            _format_span(*span, zone) for span in islice(spans(now, now + YEAR_S), MAX_TIMES_SHOWN)
        ]
        yield f"  next: {', '.join(following) or 'none within a year'}"
        for change in changes:
            yield f"  {_describe_clock_change(change, zone)}: {_describe_change_night(spans, change, zone)}"
    if not found:
        yield "nothing in this file has a time of the day (`cron`, `from`, `hours`)"
    elif not changes:
        yield "clocks are not changed there within a year"


def _list_schedules(settings: Any, zone: tzinfo) -> Iterator[tuple[str, SpanFinder]]:
    for check in settings.checks:
        if check.common.cron is not None:
            text = f"check {visible(check.name)}: {check.common.cron}"
            yield text, partial(_iterate_cron_runs, check.common.cron, 0.0, zone)
    for number, window in enumerate(settings.silences):
        if window.cron is not None:
            length = float(window.for_ or 0)
            text = f"silences[{number}]: {window.cron} for {window.for_}"
            yield text, partial(_iterate_cron_runs, window.cron, length, zone)
    for number, route in enumerate(settings.routes):
        if route.hours is not None:
            hours = route.hours
            text = f"routes[{number}].hours: {hours.days} {hours.from_} to {hours.until}"
            yield text, partial(_iterate_open_hours, hours, zone)


def _iterate_cron_runs(
    text: str, length: float, zone: tzinfo, after: float, until: float
) -> Iterator[tuple[int, int]]:
    for slot in cron.iterate_times(cron.parse_cron(text), after, until, zone):
        yield slot, int(slot + length)


def _iterate_open_hours(
    hours: Any, zone: tzinfo, after: float, until: float
) -> Iterator[tuple[int, int]]:
    day: date = datetime.fromtimestamp(after, tz=zone).date() - timedelta(days=1)
    while (midnight := datetime.combine(day, time())).timestamp() < until + 86400:
        begin, end = open_hours(hours, midnight, zone)
        if begin < end and after < begin <= until:
            yield begin, end
        day += timedelta(days=1)


def _describe_change_night(spans: SpanFinder, change: int, zone: tzinfo) -> str:
    """What begins, or is active, within three hours of the change of clocks."""
    around = spans(change - MAX_WINDOW_S, change + 10800.0)
    found = [_format_span(*span, zone) for span in around if span[1] > change - 10801]
    more = f" and {len(found) - MAX_TIMES_SHOWN} more" if len(found) > MAX_TIMES_SHOWN else ""
    return ", ".join(found[:MAX_TIMES_SHOWN]) + more if found else "nothing then"


def _describe_clock_change(change: int, zone: tzinfo) -> str:
    before, after = (datetime.fromtimestamp(at, tz=zone) for at in (change - 1, change))
    shown = (before + timedelta(seconds=1)).strftime("%H:%M")
    return f"{after:%a %Y-%m-%d}, clocks go from {shown} to {after:%H:%M}"


def _format_span(begin: int, end: int, zone: tzinfo) -> str:
    first, last = (datetime.fromtimestamp(at, tz=zone) for at in (begin, end))
    if begin == end:
        return f"{first:%a %m-%d %H:%M %Z}"
    return f"{first:%a %m-%d %H:%M %Z} to {last:%H:%M %Z}"


def _name_zone(zone: tzinfo) -> str:
    return str(getattr(zone, "key", zone))
