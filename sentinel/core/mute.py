"""What keeps an alert from being told for now: silences, inhibition, acknowledgement. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from sentinel.core.clock import Instant
from sentinel.core.match import matches
from sentinel.core.model import Alert, Key
from sentinel.core.route_settings import Inhibit, Match


class Silence(Struct, frozen=True, kw_only=True):
    """Nobody is told of matching alerts from `starts` to `ends` (µs UTC). It always ends.

    `nodes`: only of alerts whose label `node` is one of these; None: whatever node it is.
    """

    id: str
    match: Match
    starts: int
    ends: int
    who: str = ""
    reason: str = ""
    nodes: frozenset[str] | None = None


class Ack(Struct, frozen=True, kw_only=True):
    """Somebody has this alert (its id, one episode): no repeats, no escalation, until it ends."""

    alert: str
    at: Instant
    who: str = ""
    note: str = ""


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
        cluster=_literal(key.cluster), check=_literal(key.check), subject=_literal(key.subject)
    )


def _literal(text: str) -> str:
    """A pattern that fits only this text: see fnmatch(7)."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)


class Inhibition:
    """What the rules mute while these alerts are as they are; found once, for many questions."""

    def __init__(self, rules: Sequence[Inhibit], alerts: Iterable[Alert]) -> None:
        firing = [a for a in alerts if a.firing] if rules else []
        causes = [(rule, [a for a in firing if matches(rule.when, a)]) for rule in rules]
        self._open = [(rule, found) for rule, found in causes if found]
        self._holding: list[tuple[Inhibit, Alert]] = []
        while fresh := list(self._next()):
            self._holding += fresh

    def explains(self, alert: Alert) -> Alert | None:
        """The firing alert that explains this one and was not itself explained away.

        An alert never mutes itself, nor one that the same rule would mute; and those that mute
        one another in a circle are all told.
        """
        return next((cause for rule, cause in self._holding if _mutes(rule, alert)), None)

    def _next(self) -> Iterator[tuple[Inhibit, Alert]]:
        """Further rules that hold: by a cause that nothing mutes, or one that is explained."""
        held = [rule for rule, _ in self._holding]
        for rule, causes in self._open:
            if rule not in held and (cause := self._grounded(causes)):
                yield rule, cause

    def _grounded(self, causes: Iterable[Alert]) -> Alert | None:
        for cause in causes:
            if not any(_mutes(rule, cause) for rule, _ in self._open):
                return cause
            if explained := self.explains(cause):
                return explained
        return None


def _mutes(rule: Inhibit, alert: Alert) -> bool:
    return matches(rule.mute, alert) and not matches(rule.when, alert)
