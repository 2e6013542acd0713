"""Decides which channels get an alert, how often, and grouped with which others. Pure.

The first matching route decides, unless it has `continue`. Without routes, every channel gets
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
"""Seconds between repeats if the route does not set them. Once a day reminds without flooding."""

HOUR_S = 3600.0
DEFAULT_GROUP = ("cluster", "check")
_ONE_DAY = 24 * 60


class Listener(Struct, frozen=True):
    """How a channel gets an alert.

    The message is repeated after `repeat` seconds. It is joined with others of the same `group`
    that arrive within `wait` seconds. A group gets at most one message per `interval` seconds. With
    `first_look`, all findings of the first pass go into one message.
    """

    repeat: float = DEFAULT_REPEAT_S  # Seconds until the message is repeated.
    group: str = ""
    wait: float = 0.0
    interval: float = 0.0
    first_look: bool = False


def find_listeners(
    alert: Alert,
    routes: Sequence[Route],
    channels: Sequence[str],
    now: Instant,
    zone: tzinfo = timezone.utc,
    acked: bool = False,
) -> dict[str, Listener]:
    """The channels that get the alert now.

    Outside its hours, a route sends only critical alerts. Escalation adds channels if nobody has
    acknowledged the alert in time.
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
    """How a channel hears of the end, if no route leads to it any more, or not at this hour."""
    return Listener(group=_group_key(alert, DEFAULT_GROUP, -1))


def lookback_s(routes: Iterable[Route]) -> float:
    """How many seconds of past messages must be known after a start.

    The caps need one hour. A route with a longer group interval needs more.
    """
    return max([HOUR_S, *(float(route.group_interval) for route in routes)])


def is_outside_hours(hours: Hours | None, alert: Alert, now: Instant, zone: tzinfo) -> bool:
    """Whether a route is outside its hours for this alert. Critical alerts are always sent."""
    if hours is None or alert.severity is Status.CRITICAL:
        return False
    wall = now.wall / SECOND
    today = datetime.combine(datetime.fromtimestamp(wall, tz=zone).date(), time())
    nights = (open_hours(hours, today - timedelta(days=back), zone) for back in (0, 1))
    return not any(begin <= wall < end for begin, end in nights)


def open_hours(hours: Hours, day: datetime, zone: tzinfo) -> tuple[int, int]:
    """Beginning and end (epoch seconds) of the hours that begin on this day. Both are equal if
    there are none.

    A night belongs to the day on which it begins.
    """
    begin, end = hours.parse_minutes()
    opens = resolve_local_time(day + timedelta(minutes=begin), zone)
    if day.isoweekday() not in hours.parse_weekdays():
        return opens, opens
    return opens, resolve_local_time(
        day + timedelta(minutes=end + (_ONE_DAY if end <= begin else 0)), zone
    )


def matching_routes(alert: Alert, routes: Sequence[Route]) -> Iterable[tuple[int, Route]]:
    """The routes for an alert, with their positions.

    If it cannot be decided whether a route matches, it is taken, and the next routes are tried too.
    So nobody is left out.
    """
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
