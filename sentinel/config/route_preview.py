"""Who would hear of each configured check, without waiting for a night to find out. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.matchers import ALERT_FACTS, parse_matchers
from sentinel.alerting.routing import find_listeners, matching_routes
from sentinel.alerting.settings import Match, Route
from sentinel.config.settings import Settings
from sentinel.core.clock import Instant
from sentinel.core.model import Alert, Key, Status

ITSELF = "sentinel"
"""The built-in check: sentinel's words about its own state and channels are routed too."""

_BY_SUBJECT = ("subject", "node", "user", "partition", "job")
_BY_CHECK = frozenset(ALERT_FACTS).difference(_BY_SUBJECT)
_BOTH = (Status.WARNING, Status.CRITICAL)


class RoutePreview(Struct, frozen=True):
    """The channels that would hear of a check at a severity, now and at the latest.

    `severity`: UNKNOWN stands for a check that cannot see.
    `routes`: the positions of the matching routes in the configuration, from 0.
    `maybe`: channels that would also be notified of some alerts of this check, namely those with a
        subject or labels that a route asks for. These are not known before there is an alert.
    """

    check: str  # Name of the check.
    severity: Status  # How bad the alert would be.
    channels: tuple[str, ...]  # Channels that are notified at once.
    later: tuple[str, ...]  # Channels that are notified later.
    routes: tuple[int, ...]
    maybe: tuple[str, ...]


def preview_routes(settings: Settings, now: Instant) -> Iterator[RoutePreview]:
    """One row per check and severity. It assumes that hours are open, and that escalation comes
    later."""
    for check in settings.checks:
        common = check.common
        alert = _sample_alert(
            common.cluster or settings.cluster, check.name, common.kind, common.labels, now
        )
        severities = (Status.WARNING,) if common.severity == "warning" else _BOTH
        yield from (_preview_row(replace(alert, severity=s), settings, now) for s in severities)
        yield _preview_row(_blind_alert(alert), settings, now)
    own = _sample_alert(settings.cluster, ITSELF, ITSELF, {}, now)
    yield from (_preview_row(replace(own, severity=s), settings, now) for s in _BOTH)


def _preview_row(alert: Alert, settings: Settings, now: Instant) -> RoutePreview:
    alert = replace(alert, status=alert.severity)
    names = [channel.name for channel in settings.channels]
    routes = [replace(route, hours=None) for route in settings.routes]
    later = Instant(wall=now.wall + 10**15)
    soon = find_listeners(alert, routes, names, now)
    ever = find_listeners(alert, routes, names, later)
    picked = find_listeners(alert, [_route_for_any(route) for route in routes], names, later)
    return RoutePreview(
        alert.key.check,
        alert.severity,
        tuple(soon),
        tuple(name for name in ever if name not in soon),
        tuple(number for number, _ in matching_routes(alert, routes)),
        tuple(name for name in picked if name not in ever),
    )


def _route_for_any(route: Route) -> Route:
    """The route for an alert whose subject and labels are such that it fits."""
    return replace(route, match=_without_subject(route.match), continue_=True)


def _without_subject(match: Match) -> Match:
    whole = [
        text for text in match.matchers if all(m.name in _BY_CHECK for m in parse_matchers(text))
    ]
    return replace(match, labels={}, matchers=whole, **dict.fromkeys(_BY_SUBJECT))


def _blind_alert(alert: Alert) -> Alert:
    return replace(alert, key=replace(alert.key, subject=""), severity=Status.UNKNOWN)


def _sample_alert(
    cluster: str, check: str, kind: str, labels: Mapping[str, str], now: Instant
) -> Alert:
    return Alert(
        key=Key(cluster, check, "?"),
        id="",
        kind=kind,
        status=Status.CRITICAL,
        summary="",
        since=now,
        last=now,
        firing=True,
        fired=now,
        labels=labels,
    )


def unheard_previews(rows: Sequence[RoutePreview]) -> list[RoutePreview]:
    """The previews that reach no channel, even after escalation."""
    return [row for row in rows if not row.channels and not row.later]
