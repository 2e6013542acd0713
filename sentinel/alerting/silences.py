"""What keeps an alert from being told for now: silences, inhibition, acknowledgement. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from sentinel.alerting.matchers import literally
from sentinel.alerting.matching import matches, value
from sentinel.alerting.settings import Inhibit, Match
from sentinel.core.clock import Instant
from sentinel.core.model import Alert, Key


class Silence(Struct, frozen=True, kw_only=True):
    """Nobody is told of matching alerts from `starts` to `ends` (µs UTC). It always ends.

    `how` it was given: see orders. `nodes`: only of alerts whose label `node` is one of these; None: whatever node it is.
    """

    id: str
    match: Match
    starts: int
    ends: int
    who: str = ""
    how: str = ""
    reason: str = ""
    nodes: frozenset[str] | None = None


class Ack(Struct, frozen=True, kw_only=True):
    """Somebody has this alert (its id, one episode): no repeats, no escalation, until it ends."""

    alert: str
    at: Instant
    who: str = ""
    how: str = ""
    note: str = ""

    @property
    def said(self) -> str:
        """Who, and what they wrote."""
        return f"{self.who or 'somebody'}{f': {self.note}' if self.note else ''}"


class Orders(Struct, frozen=True, kw_only=True):
    """What people have said by hand."""

    silences: tuple[Silence, ...] = ()
    acks: Mapping[str, Ack] = {}


def silenced(alert: Alert, silences: Iterable[Silence], now: Instant) -> Silence | None:
    """The matching silence that lasts longest, if there is one now."""
    active = [s for s in silences if s.starts <= now.wall < s.ends and _covers(s, alert)]
    return max(active, key=lambda s: s.ends, default=None)


def _covers(silence: Silence, alert: Alert) -> bool:
    if silence.nodes is not None and alert.labels.get("node", "") not in silence.nodes:
        return False
    return matches(silence.match, alert)


def exactly(key: Key) -> Match:
    """A match that fits alerts of this key only, whatever it is named."""
    return Match(
        cluster=literally(key.cluster), check=literally(key.check), subject=literally(key.subject)
    )


_Place = tuple[int, tuple[str, ...], bool]
"""A rule's number, what `same` names, and whether only causes count that fit `mute` not as well."""


class Inhibition:
    """What the rules mute while these alerts are as they are; found once, for many questions."""

    def __init__(self, rules: Sequence[Inhibit], alerts: Iterable[Alert]) -> None:
        self._rules = rules
        self._causes: dict[_Place, list[Alert]] = {}
        for alert in alerts if rules else ():
            for place in self._as_cause(alert) if alert.firing else ():
                self._causes.setdefault(place, []).append(alert)
        self._holding: dict[_Place, Alert] = {}
        while fresh := dict(self._next()):
            self._holding |= fresh

    def explains(self, alert: Alert) -> Alert | None:
        """The firing alert that explains this one and was not itself explained away.

        An alert never mutes itself, and those that mute one another in a circle are all told.
        """
        found = (self._holding.get(place) for place in self._as_muted(alert))
        return next((cause for cause in found if cause), None)

    def _as_cause(self, alert: Alert) -> Iterator[_Place]:
        for number, rule in enumerate(self._rules):
            if matches(rule.when, alert) and (same := _same(rule, alert)) is not None:
                yield number, same, False
                if not matches(rule.mute, alert):
                    yield number, same, True

    def _as_muted(self, alert: Alert) -> Iterator[_Place]:
        """Where its causes are. One that fits both sides of a rule is muted by those only that do
        not, as in Alertmanager: so it mutes neither itself nor one like it."""
        for number, rule in enumerate(self._rules):
            if matches(rule.mute, alert) and (same := _same(rule, alert)) is not None:
                place = number, same, matches(rule.when, alert)
                if place in self._causes:
                    yield place

    def _next(self) -> Iterator[tuple[_Place, Alert]]:
        """Further places that hold: by a cause that nothing mutes, or one that is explained."""
        for place, causes in self._causes.items():
            if place not in self._holding and (cause := self._grounded(causes)):
                yield place, cause

    def _grounded(self, causes: Iterable[Alert]) -> Alert | None:
        for cause in causes:
            if not any(True for _ in self._as_muted(cause)):
                return cause
            if explained := self.explains(cause):
                return explained
        return None


def _same(rule: Inhibit, alert: Alert) -> tuple[str, ...] | None:
    """None where one is missing: of two alerts without a node nobody knows that it is the same."""
    values = tuple(value(alert, name) for name in rule.same)
    return values if all(values) else None
