"""Whether an alert is meant by a route, a silence or an inhibition. Pure."""

from fnmatch import fnmatchcase

from sentinel.core.model import Alert
from sentinel.core.settings import Match

_LABELS = ("node", "user", "partition", "job")


def matches(match: Match, alert: Alert) -> bool:
    """Whether every key given fits; values are shell patterns, a list is alternatives."""
    facts = _facts(alert)
    given = {f: getattr(match, f) for f in match.__struct_fields__ if f != "labels"}
    return all(_fits(want, facts[f]) for f, want in given.items() if want is not None) and all(
        _fits(want, alert.labels.get(name, "")) for name, want in match.labels.items()
    )


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
