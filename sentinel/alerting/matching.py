"""Whether an alert is meant by a route, a silence or an inhibition. Pure."""

from collections.abc import Callable, Mapping
from functools import lru_cache

from sentinel.alerting.matchers import LISTS, Matcher, Word, matchers, word
from sentinel.alerting.settings import Match
from sentinel.core.errors import Invalid
from sentinel.core.model import Alert

FACTS: Mapping[str, Callable[[Alert], str]] = {
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
    """Whether every key given fits. A word that cannot be understood fits nothing: whoever wrote
    it is told by the configuration's own check, and nothing is kept from being told by it."""
    return (
        all(
            fits(key, want, fact(alert))
            for key, fact in FACTS.items()
            if (want := getattr(match, key)) is not None
        )
        and all(fits(name, want, value(alert, name)) for name, want in match.labels.items())
        and all(_all_fit(text, alert) for text in match.matchers)
    )


def value(alert: Alert, name: str) -> str:
    """What the alert has under this name, of itself or as a label; empty where it has none."""
    fact = FACTS.get(name)
    return fact(alert) if fact else alert.labels.get(name, "")


def fits(name: str, want: str | list[str], have: str) -> bool:
    """One of the words, and none of those with != or !~. A label that is a list is hit where any
    of its names is."""
    words = [_word(name, text) for text in ([want] if isinstance(want, str) else want)]
    wanted = [w for w in words if not w.negated]
    if any(w.negated and _hits(name, w, have) for w in words) or not words:
        return False
    return not wanted or any(_hits(name, w, have) for w in wanted)


def _hits(name: str, one: Word, have: str) -> bool:
    return any(one.hits(value) for value in (have.split(",") if name in LISTS else (have,)))


def is_wide(match: Match) -> bool:
    """Whether it fits what has nothing of all it names, as `node!=gpu-1` fits every alert without
    a node. Alertmanager takes no such silence ("at least one matcher must not match the empty
    string")."""
    given = {name: want for name in FACTS if (want := getattr(match, name)) is not None}
    whole = [m for text in match.matchers for m in _matchers(text) or ()]
    words = [*given.items(), *match.labels.items(), *((m.name, m.word) for m in whole)]
    return all(fits(name, want, "") for name, want in words)


def _all_fit(text: str, alert: Alert) -> bool:
    found = _matchers(text)
    return found is not None and all(fits(m.name, m.word, value(alert, m.name)) for m in found)


@lru_cache(maxsize=4096)
def _matchers(text: str) -> tuple[Matcher, ...] | None:
    try:
        return tuple(matchers(text))
    except Invalid:
        return None


@lru_cache(maxsize=4096)
def _word(name: str, text: str) -> Word:
    try:
        return word(name, text)
    except Invalid:
        return Word(negated=False, hits=lambda _: False)
