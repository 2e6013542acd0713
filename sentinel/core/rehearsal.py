"""Who would hear of each configured check, without waiting for a night to find out. Pure."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import Instant
from sentinel.core.model import Alert, Key, Status
from sentinel.core.routing import audience
from sentinel.core.settings import Match, Route, Settings

_BY_SUBJECT = ("subject", "node", "user", "partition", "job")


class Rehearsal(Struct, frozen=True):
    """The channels that would hear of a check at a severity, now and at the latest.

    `depends`: some route also looks at the subject or labels, which only an alert has.
    """

    check: str
    severity: Status
    channels: tuple[str, ...]
    later: tuple[str, ...]
    depends: bool


def rehearse(settings: Settings, now: Instant) -> Iterator[Rehearsal]:
    """One row per check and severity; hours count as open, escalation as in the future."""
    routes = [_open(route) for route in settings.routes]
    names = [channel.name for channel in settings.channels]
    later = Instant(wall=now.wall + 10**15)
    depends = any(_by_subject(route.match) for route in routes)
    for check in settings.checks:
        for severity in _severities(check.common.severity):
            alert = _alert(settings.cluster, check.name, check.common.kind, severity, now)
            soon = audience(alert, routes, names, now)
            ever = audience(alert, routes, names, later)
            others = tuple(name for name in ever if name not in soon)
            yield Rehearsal(check.name, severity, tuple(soon), others, depends)


def _severities(cap: str) -> Sequence[Status]:
    return (Status.WARNING,) if cap == "warning" else (Status.WARNING, Status.CRITICAL)


def _open(route: Route) -> Route:
    return replace(route, hours=None)


def _by_subject(match: Match) -> bool:
    return bool(match.labels) or any(getattr(match, key) is not None for key in _BY_SUBJECT)


def _alert(cluster: str, check: str, kind: str, severity: Status, now: Instant) -> Alert:
    return Alert(
        key=Key(cluster, check, "?"),
        id="",
        kind=kind,
        status=severity,
        severity=severity,
        summary="",
        since=now,
        last=now,
        firing=True,
        fired=now,
    )
