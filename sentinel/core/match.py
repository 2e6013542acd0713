"""Whether an alert is meant by a route, a silence or an inhibition. Pure."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from sentinel.core.model import Alert
from sentinel.core.route_settings import Match

_FACTS: Mapping[str, Callable[[Alert], str]] = {
    "severity": lambda a: a.severity.value,
    "status": lambda a: a.status.value,
    "check": lambda a: a.key.check,
    "kind": lambda a: a.kind,
    "cluster": lambda a: a.key.cluster,
    "subject": lambda a: a.key.subject,
    "node": lambda a: a.labels.get("node", ""),
    "user": lambda a: a.labels.get("user", ""),
    "partition": lambda a: a.labels.get("partition", ""),
    "job": lambda a: a.labels.get("job", ""),
}


def matches(match: Match, alert: Alert) -> bool:
    """Whether every key given fits; values are shell patterns, a list is alternatives."""
    return all(
        _fits(want, fact(alert))
        for key, fact in _FACTS.items()
        if (want := getattr(match, key)) is not None
    ) and all(_fits(want, alert.labels.get(name, "")) for name, want in match.labels.items())


def _fits(want: str | list[str], have: str) -> bool:
    return any(fnmatchcase(have, w) for w in ([want] if isinstance(want, str) else want))
