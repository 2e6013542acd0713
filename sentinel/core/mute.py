"""What keeps an alert from being told for now: silences, inhibition, acknowledgement. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from sentinel.core.clock import Instant
from sentinel.core.match import matches
from sentinel.core.model import Alert, Key
from sentinel.core.settings import Inhibit, Match


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


def inhibited(alert: Alert, rules: Sequence[Inhibit], alerts: Mapping[Key, Alert]) -> Alert | None:
    """The firing alert that explains this one. An alert never inhibits itself, nor does one
    that the same rule would mute: two that match both sides would silence each other."""
    for rule in rules:
        if matches(rule.mute, alert) and not matches(rule.when, alert):
            cause = next((a for a in alerts.values() if a.firing and matches(rule.when, a)), None)
            if cause is not None:
                return cause
    return None
