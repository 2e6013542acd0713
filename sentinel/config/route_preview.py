"""Who would hear of each configured check, without waiting for a night to find out. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.matchers import FACTS, matchers
from sentinel.alerting.routing import audience, deciding
from sentinel.alerting.settings import Match, Route
from sentinel.config.settings import Settings
from sentinel.core.clock import Instant
from sentinel.core.model import Alert, Key, Status

ITSELF = "sentinel"
"""The built-in check: sentinel's words about its own state and channels are routed too."""

_BY_SUBJECT = ("subject", "node", "user", "partition", "job")
_BY_CHECK = frozenset(FACTS).difference(_BY_SUBJECT)
_BOTH = (Status.WARNING, Status.CRITICAL)


class Rehearsal(Struct, frozen=True):
    """The channels that would hear of a check at a severity, now and at the latest.

    `routes`: the places of the routes that decide. `unknown` is the severity of a check that
    cannot see. `maybe`: the channels that hear too of what routes pick by its subject or its
    labels, which only an alert has.
    """

    check: str
    severity: Status
    channels: tuple[str, ...]
    later: tuple[str, ...]
    routes: tuple[int, ...]
    maybe: tuple[str, ...]


def rehearse(settings: Settings, now: Instant) -> Iterator[Rehearsal]:
    """One row per check and severity; hours count as open, escalation as in the future."""
    for check in settings.checks:
        common = check.common
        alert = _alert(
            common.cluster or settings.cluster, check.name, common.kind, common.labels, now
        )
        severities = (Status.WARNING,) if common.severity == "warning" else _BOTH
        yield from (_row(replace(alert, severity=s), settings, now) for s in severities)
        yield _row(_blind(alert), settings, now)
    own = _alert(settings.cluster, ITSELF, ITSELF, {}, now)
    yield from (_row(replace(own, severity=s), settings, now) for s in _BOTH)


def _row(alert: Alert, settings: Settings, now: Instant) -> Rehearsal:
    alert = replace(alert, status=alert.severity)
    names = [channel.name for channel in settings.channels]
    routes = [replace(route, hours=None) for route in settings.routes]
    later = Instant(wall=now.wall + 10**15)
    soon = audience(alert, routes, names, now)
    ever = audience(alert, routes, names, later)
    picked = audience(alert, [_whatever(route) for route in routes], names, later)
    return Rehearsal(
        alert.key.check,
        alert.severity,
        tuple(soon),
        tuple(name for name in ever if name not in soon),
        tuple(number for number, _ in deciding(alert, routes)),
        tuple(name for name in picked if name not in ever),
    )


def _whatever(route: Route) -> Route:
    """The route for an alert whose subject and labels are such that it fits."""
    return replace(route, match=_without_subject(route.match), continue_=True)


def _without_subject(match: Match) -> Match:
    whole = [text for text in match.matchers if all(m.name in _BY_CHECK for m in matchers(text))]
    return replace(match, labels={}, matchers=whole, **dict.fromkeys(_BY_SUBJECT))


def _blind(alert: Alert) -> Alert:
    return replace(alert, key=replace(alert.key, subject=""), severity=Status.UNKNOWN)


def _alert(cluster: str, check: str, kind: str, labels: Mapping[str, str], now: Instant) -> Alert:
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


def nobody(rows: Sequence[Rehearsal]) -> list[Rehearsal]:
    """Those that would reach no channel, whoever waits how long."""
    return [row for row in rows if not row.channels and not row.later]
