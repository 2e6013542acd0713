"""Who hears of an alert, how often and together with what. Pure.

The first matching route decides, unless it says continue; without routes every channel hears
everything.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, time, timedelta, timezone, tzinfo

from msgspec import Struct

from sentinel.alerting.matchers import label_value, matches_alert
from sentinel.alerting.settings import Hours, Route
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cron import resolve_local_time
from sentinel.core.model import Alert, Status

DEFAULT_REPEAT_S = 86400.0
"""Seconds between repeats where no route says otherwise: once a day is a reminder, not noise."""

HOUR_S = 3600.0
DEFAULT_GROUP = ("cluster", "check")
_ONE_DAY = 24 * 60


class Listener(Struct, frozen=True):
    """How a channel hears of an alert: repeated after so many seconds, told together with
    others of the same `group` that come within `wait` seconds, and of that group at most once
    in `interval` seconds."""

    repeat: float = DEFAULT_REPEAT_S
    group: str = ""
    wait: float = 0.0
    interval: float = 0.0


def find_listeners(
    alert: Alert,
    routes: Sequence[Route],
    channels: Sequence[str],
    now: Instant,
    zone: tzinfo = timezone.utc,
    acked: bool = False,
) -> dict[str, Listener]:
    """The channels that hear of the alert now.

    Outside a route's hours it tells only of what is critical; escalation adds channels when
    nobody has acknowledged for long enough.
    """
    if not routes:
        return dict.fromkeys(channels, Listener(group=_group_key(alert, DEFAULT_GROUP, 0)))
    heard: dict[str, Listener] = {}
    for number, route in matching_routes(alert, routes):
        if is_outside_hours(route.hours, alert, now, zone):
            continue
        listener = _route_listener(alert, route, number)
        names = [*route.to, *_escalation_channels(alert, route, now, acked)]
        heard |= {n: listener for n in names if n in channels and n not in heard}
    return heard


def unrouted_listener(alert: Alert) -> Listener:
    """How those hear of an end whom no route leads to any more, or not at this hour."""
    return Listener(group=_group_key(alert, DEFAULT_GROUP, -1))


def lookback_s(routes: Iterable[Route]) -> float:
    """Seconds of past messages that have to be known after a start: an hour for the caps, and
    more where a route tells of a group more rarely."""
    return max([HOUR_S, *(float(route.group_interval) for route in routes)])


def is_outside_hours(hours: Hours | None, alert: Alert, now: Instant, zone: tzinfo) -> bool:
    """Whether a route is outside its hours for this alert; what is critical wakes everybody."""
    if hours is None or alert.severity is Status.CRITICAL:
        return False
    wall = now.wall / SECOND
    today = datetime.combine(datetime.fromtimestamp(wall, tz=zone).date(), time())
    nights = (open_hours(hours, today - timedelta(days=back), zone) for back in (0, 1))
    return not any(begin <= wall < end for begin, end in nights)


def open_hours(hours: Hours, day: datetime, zone: tzinfo) -> tuple[int, int]:
    """Beginning and end (epoch seconds) of the hours that begin on this day; both the same where
    there are none. A night belongs to the day on which it begins."""
    begin, end = hours.parse_minutes()
    opens = resolve_local_time(day + timedelta(minutes=begin), zone)
    if day.isoweekday() not in hours.parse_weekdays():
        return opens, opens
    return opens, resolve_local_time(
        day + timedelta(minutes=end + (_ONE_DAY if end <= begin else 0)), zone
    )


def matching_routes(alert: Alert, routes: Sequence[Route]) -> Iterable[tuple[int, Route]]:
    """The routes that an alert takes, with their places. One of which nobody can tell whether it
    fits is taken, and so are those after it: nobody who is meant is left out."""
    for number, route in enumerate(routes):
        fits = matches_alert(route.match, alert)
        if fits is not False:
            yield number, route
        if fits and not route.continue_:
            return


def _route_listener(alert: Alert, route: Route, number: int) -> Listener:
    repeat = DEFAULT_REPEAT_S if route.repeat is None else float(route.repeat)
    by = DEFAULT_GROUP if route.group_by is None else tuple(route.group_by)
    group = _group_key(alert, by, number)
    return Listener(repeat, group, float(route.group_wait), float(route.group_interval))


def _escalation_channels(alert: Alert, route: Route, now: Instant, acked: bool) -> list[str]:
    if route.escalate is None or acked or alert.fired is None:
        return []
    return route.escalate.to if get_elapsed_s(alert.fired, now) >= route.escalate.after else []


def _group_key(alert: Alert, by: Sequence[str], number: int) -> str:
    return "\0".join([str(number), *(f"{name}={label_value(alert, name)}" for name in by)])
