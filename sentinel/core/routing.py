"""Who hears of what. Pure: the first matching route decides, unless it says continue."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from sentinel.core.clock import Instant, elapsed
from sentinel.core.model import Alert, Transition
from sentinel.core.settings import Match, Route

DEFAULT_REPEAT = 86400.0
"""Seconds between repeats where no route says otherwise: once a day is a reminder, not noise."""

_LABELS = ("node", "user", "partition", "job")
_ENDS = ("resolved", "gone")


def audience(alert: Alert, routes: Sequence[Route], channels: Sequence[str]) -> dict[str, float]:
    """The channels that hear of the alert, each with its repeat interval in seconds.

    Without routes every channel hears everything.
    """
    if not routes:
        return dict.fromkeys(channels, DEFAULT_REPEAT)
    heard: dict[str, float] = {}
    for route in _decisive(alert, routes):
        repeat = DEFAULT_REPEAT if route.repeat is None else float(route.repeat)
        heard |= {name: repeat for name in route.to if name in channels and name not in heard}
    return heard


def recipients(alert: Alert, transition: Transition, heard: Iterable[str]) -> list[str]:
    """Who is told of this transition: of an end only those who were told of the trouble."""
    return list(alert.told) if transition.reason in _ENDS else list(heard)


def repeats_due(alert: Alert, heard: Mapping[str, float], now: Instant) -> list[str]:
    """The channels whose repeat interval has passed; a channel not told yet is due at once.

    Nothing is repeated while the alert is clear and only kept firing.
    """
    if not alert.firing or alert.clear_since is not None:
        return []
    return [name for name, repeat in heard.items() if _due(alert.told.get(name), repeat, now)]


def matches(match: Match, alert: Alert) -> bool:
    """Whether every key given fits; values are shell patterns, a list is alternatives."""
    facts = _facts(alert)
    given = {f: getattr(match, f) for f in match.__struct_fields__ if f != "labels"}
    return all(_fits(want, facts[f]) for f, want in given.items() if want is not None) and all(
        _fits(want, alert.labels.get(name, "")) for name, want in match.labels.items()
    )


def _decisive(alert: Alert, routes: Sequence[Route]) -> Iterable[Route]:
    for route in routes:
        if matches(route.match, alert):
            yield route
            if not route.continue_:
                return


def _facts(alert: Alert) -> dict[str, str]:
    return {
        "severity": alert.severity.value,
        "status": alert.status.value,
        "check": alert.key.check,
        "kind": alert.kind,
        "cluster": alert.key.cluster,
        "subject": alert.key.subject,
        **{name: alert.labels.get(name, "") for name in _LABELS},
    }


def _fits(want: str | list[str], have: str) -> bool:
    return any(fnmatchcase(have, w) for w in ([want] if isinstance(want, str) else want))


def _due(told: Instant | None, repeat: float, now: Instant) -> bool:
    return told is None or elapsed(told, now) >= repeat
