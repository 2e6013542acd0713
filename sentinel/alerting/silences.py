"""What keeps an alert from being told for now: silences, inhibition, acknowledgement. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.matchers import escape_literal, label_value, matches_alert
from sentinel.alerting.settings import Inhibit, Match, SilenceWindow
from sentinel.core import cron
from sentinel.core.clock import SECOND, Instant
from sentinel.core.digests import blake2b
from sentinel.core.errors import Invalid
from sentinel.core.model import Alert, Key

SLURM_ORIGIN = "slurm"
"""How a silence was given that is a maintenance of Slurm's."""


MAINTENANCE_GRACE_S = 300.0
"""Seconds after a maintenance in which what is found still belongs to it: until then a node was out by
plan, and nobody was to hear of it. A check runs every five minutes as a rule."""


class Silence(Struct, frozen=True, kw_only=True):
    """Nobody is told of matching alerts from `starts` to `ends` (µs UTC). It always ends.

    `how` it was given: see orders. `nodes`: only of alerts whose label `node` is one of these; None:
    whatever node it is. `alerts`: only of these episodes, by their ids; None: of later ones too.
    """

    id: str
    match: Match
    starts: int
    ends: int
    who: str = ""
    how: str = ""
    reason: str = ""
    nodes: frozenset[str] | None = None
    alerts: frozenset[str] | None = None

    @property
    def is_planned(self) -> bool:
        """Whether it is a maintenance that Slurm has a reservation for."""
        return self.how == SLURM_ORIGIN


class Ack(Struct, frozen=True, kw_only=True):
    """Somebody has this alert (its id, one episode): no repeats, no escalation, until it ends."""

    alert: str
    at: Instant
    who: str = ""
    how: str = ""
    note: str = ""

    @property
    def author_text(self) -> str:
        """Who, and what they wrote."""
        return f"{self.who or 'somebody'}{f': {self.note}' if self.note else ''}"


RemarkKind = Literal["comment", "assign", "split", "close"]


class Remark(Struct, frozen=True, kw_only=True):
    """What a person says of an incident: a comment; whose it is (`text`); that `alert` is no part of
    it; what its cause was (`text`)."""

    incident: str
    deed: RemarkKind
    at: Instant
    who: str = ""
    how: str = ""
    text: str = ""
    alert: str = ""


class Orders(Struct, frozen=True, kw_only=True):
    """What people have said by hand; `remarks` in the order in which they were made."""

    silences: tuple[Silence, ...] = ()
    acks: Mapping[str, Ack] = {}
    remarks: tuple[Remark, ...] = ()

    @property
    def split_alerts(self) -> frozenset[str]:
        """Alerts that nothing explains, because somebody said so."""
        return frozenset(r.alert for r in self.remarks if r.deed == "split")

    def find_maintenance(self, incident: str) -> Silence | None:
        """The maintenance of Slurm's that an incident is about."""
        return next((s for s in self.silences if s.is_planned and s.id == incident), None)

    def find_assignee(self, incident: str) -> str:
        """Whose the incident is; empty where nobody was named."""
        said = (r for r in reversed(self.remarks) if r.incident == incident)
        return next((r.text for r in said if r.deed == "assign"), "")

    def last_comment(self, incident: str) -> Remark | None:
        """The last that was written about it."""
        said = (r for r in reversed(self.remarks) if r.incident == incident)
        return next((r for r in said if r.deed in ("comment", "close")), None)


def find_silence(alert: Alert, silences: Iterable[Silence], now: Instant) -> Silence | None:
    """The matching silence that lasts longest, if there is one now."""
    active = [s for s in silences if s.starts <= now.wall < s.ends and _covers_alert(s, alert)]
    return max(active, key=lambda s: s.ends, default=None)


def find_causing_maintenance(alert: Alert, silences: Iterable[Silence]) -> Silence | None:
    """The maintenance of Slurm's in which it began to fire, or at its end, on a node of it."""
    began, after = (alert.fired or alert.since).wall, int(MAINTENANCE_GRACE_S * SECOND)
    for s in silences:
        if s.is_planned and s.starts <= began < s.ends + after and _covers_alert(s, alert):
            return s
    return None


def _covers_alert(silence: Silence, alert: Alert) -> bool:
    if silence.alerts is not None and alert.id not in silence.alerts:
        return False
    if silence.nodes is not None and alert.labels.get("node", "") not in silence.nodes:
        return False
    return matches_alert(silence.match, alert) is True


def match_exactly(key: Key) -> Match:
    """A match that fits alerts of this key only, whatever it is named."""
    return Match(
        cluster=escape_literal(key.cluster),
        check=escape_literal(key.check),
        subject=escape_literal(key.subject),
    )


_Place = tuple[int, tuple[str, ...], bool]
"""A rule's number, what `same` names, and whether only causes count that fit `mute` not as well."""


class Inhibition:
    """What the rules mute while these alerts are as they are; found once, for many questions."""

    def __init__(self, rules: Sequence[Inhibit], alerts: Iterable[Alert]) -> None:
        self._rules = rules
        self._causes: dict[_Place, list[Alert]] = {}
        for alert in alerts if rules else ():
            for place in self._places_as_cause(alert) if alert.firing else ():
                self._causes.setdefault(place, []).append(alert)
        self._holding: dict[_Place, Alert] = {}
        while fresh := dict(self._next_places()):
            self._holding |= fresh

    def find_explanation(self, alert: Alert) -> Alert | None:
        """The firing alert that explains this one and was not itself explained away.

        An alert never mutes itself, and those that mute one another in a circle are all told.
        """
        found = (self._holding.get(place) for place in self._places_as_muted(alert))
        return next((cause for cause in found if cause), None)

    def _places_as_cause(self, alert: Alert) -> Iterator[_Place]:
        for number, rule in enumerate(self._rules):
            if matches_alert(rule.when, alert) and (same := _same_values(rule, alert)) is not None:
                yield number, same, False
                if matches_alert(rule.mute, alert) is False:
                    yield number, same, True

    def _places_as_muted(self, alert: Alert) -> Iterator[_Place]:
        """Where its causes are. One that fits both sides of a rule is muted by those only that do
        not, as in Alertmanager: so it mutes neither itself nor one like it."""
        for number, rule in enumerate(self._rules):
            if matches_alert(rule.mute, alert) and (same := _same_values(rule, alert)) is not None:
                both = matches_alert(rule.when, alert)
                if both is not None and (place := (number, same, both)) in self._causes:
                    yield place

    def _next_places(self) -> Iterator[tuple[_Place, Alert]]:
        """Further places that hold: by a cause that nothing mutes, or one that is explained."""
        for place, causes in self._causes.items():
            if place not in self._holding and (cause := self._unmuted_cause(causes)):
                yield place, cause

    def _unmuted_cause(self, causes: Iterable[Alert]) -> Alert | None:
        for cause in causes:
            if not any(True for _ in self._places_as_muted(cause)):
                return cause
            if explained := self.find_explanation(cause):
                return explained
        return None


def may_be_muted(alert: Alert, rules: Iterable[Inhibit], checks: Mapping[str, str]) -> bool:
    """Whether one of these checks (with their kinds) may find what mutes this alert by the rules."""
    return any(
        matches_alert(
            Match(check=rule.when.check, kind=rule.when.kind),
            replace(alert, key=replace(alert.key, check=check), kind=kind),
        )
        for rule in rules
        if matches_alert(rule.mute, alert)
        for check, kind in checks.items()
    )


def _same_values(rule: Inhibit, alert: Alert) -> tuple[str, ...] | None:
    """None where one is missing: of two alerts without a node nobody knows that it is the same."""
    values = tuple(label_value(alert, name) for name in rule.same)
    return values if all(values) else None


def window_silences(
    windows: Iterable[SilenceWindow], now: Instant, zone: tzinfo
) -> tuple[Silence, ...]:
    """The silences that the file's windows amount to at this moment."""
    wall = now.wall / SECOND
    spans = ((w, window_span(w, wall, zone)) for w in windows)
    return tuple(_window_silence(w, *s) for w, s in spans if s is not None and s[0] <= wall < s[1])


def window_span(window: SilenceWindow, at: float, zone: tzinfo) -> tuple[int, int] | None:
    """Beginning and end (epoch seconds) of the window that is open at this moment, or of a fixed
    one at any; None if there is none. `for` is real time, also in the night of a clock change."""
    if window.cron is None:
        begin = parse_moment(window.from_ or "", zone, "from")
        return int(begin.timestamp()), int(
            parse_moment(window.until or "", zone, "until").timestamp()
        )
    length = float(window.for_ or 0)
    start = cron.find_latest_time(cron.parse_cron(window.cron), at, length, zone)
    return None if start is None else (start, int(start + length))


def parse_moment(text: str, zone: tzinfo | None, key: str) -> datetime:
    """ISO 8601; without an offset in the file's time zone. Raises Invalid."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{text!r} is no moment; write it like 2026-12-24T18:00", key) from None
    return found if found.tzinfo else found.replace(tzinfo=zone)


def _window_silence(window: SilenceWindow, begin: int, end: int) -> Silence:
    # Of the window and not of its beginning: one that begins every minute stays the same silence.
    name = repr((window.reason, window.cron, window.from_, str(window.match))).encode()
    return Silence(
        id="file-" + blake2b(name, digest_size=4).hexdigest(),
        match=window.match,
        starts=begin * SECOND,
        ends=end * SECOND,
        who="the configuration",
        reason=window.reason,
    )
