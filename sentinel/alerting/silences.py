"""Reasons for which no message about an alert is sent now: silences, inhibition, acknowledgement.
Pure."""

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
"""The value of `how` for a silence that comes from a maintenance reservation of Slurm."""


MAINTENANCE_GRACE_S = 300.0
"""Seconds after a maintenance in which a new problem still belongs to it. Until the end the node
was out on purpose, and nobody was to be notified of it. A check usually runs every five minutes."""


class Silence(Struct, frozen=True, kw_only=True):
    """No messages about matching alerts are sent from `starts` to `ends` (µs UTC). A silence always
    ends.

    `how` says how it was given, see the module `orders`. `nodes` limits it to alerts whose label
    `node` is one of these. None means any node. `alerts` limits it to these alerts, by id. None
    means also later alerts.
    """

    id: str  # Unique name of the silence.
    match: Match  # Which alerts it silences.
    starts: int
    ends: int
    who: str = ""  # Who gave it.
    how: str = ""
    reason: str = ""  # Why, for people.
    nodes: frozenset[str] | None = None
    alerts: frozenset[str] | None = None

    @property
    def is_planned(self) -> bool:
        """Whether it comes from a maintenance reservation of Slurm."""
        return self.how == SLURM_ORIGIN


class Ack(Struct, frozen=True, kw_only=True):
    """Somebody has acknowledged this alert. It is not repeated or escalated until it ends."""

    alert: str  # Id of the alert.
    at: Instant  # When it was given.
    who: str = ""  # Who gave it.
    how: str = ""  # How it was given, see the module `orders`.
    note: str = ""  # What the person wrote.

    @property
    def author_text(self) -> str:
        """The person, and the note if there is one."""
        return f"{self.who or 'somebody'}{f': {self.note}' if self.note else ''}"


RemarkKind = Literal["comment", "assign", "split", "close"]


class Remark(Struct, frozen=True, kw_only=True):
    """A person's remark about an incident.

    `text` is a comment, the name of an owner, or a cause. `deed` says which of them.
    """

    incident: str  # Id of the incident.
    deed: RemarkKind  # What kind of remark it is.
    at: Instant  # When it was made.
    who: str = ""  # Who made it.
    how: str = ""  # How it was given, see the module `orders`.
    text: str = ""
    alert: str = ""


class Orders(Struct, frozen=True, kw_only=True):
    """The orders that people have given. `remarks` are sorted by time, oldest first."""

    silences: tuple[Silence, ...] = ()  # All silences given by hand.
    acks: Mapping[str, Ack] = {}  # Acknowledgements, by id of the alert.
    remarks: tuple[Remark, ...] = ()

    @property
    def split_alerts(self) -> frozenset[str]:
        """Ids of alerts that a person took out of their incident. No other alert explains them."""
        return frozenset(r.alert for r in self.remarks if r.deed == "split")

    def find_maintenance(self, incident: str) -> Silence | None:
        """The maintenance of Slurm that an incident is about."""
        return next((s for s in self.silences if s.is_planned and s.id == incident), None)

    def find_assignee(self, incident: str) -> str:
        """The owner of the incident. Empty if nobody was named."""
        said = (r for r in reversed(self.remarks) if r.incident == incident)
        return next((r.text for r in said if r.deed == "assign"), "")

    def last_comment(self, incident: str) -> Remark | None:
        """The last comment about the incident."""
        said = (r for r in reversed(self.remarks) if r.incident == incident)
        return next((r for r in said if r.deed in ("comment", "close")), None)


def find_silence(alert: Alert, silences: Iterable[Silence], now: Instant) -> Silence | None:
    """The matching silence that ends last. None if none is active."""
    active = [s for s in silences if s.starts <= now.wall < s.ends and _covers_alert(s, alert)]
    return max(active, key=lambda s: s.ends, default=None)


def find_causing_maintenance(alert: Alert, silences: Iterable[Silence]) -> Silence | None:
    """The maintenance of Slurm that explains the alert: it began on a node of it, during the
    maintenance or shortly after its end. None if there is none."""
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
    """A match for alerts with exactly this key, whatever characters its names contain."""
    return Match(
        cluster=escape_literal(key.cluster),
        check=escape_literal(key.check),
        subject=escape_literal(key.subject),
    )


_Place = tuple[int, tuple[str, ...], bool]
"""The number of a rule, the values of its `same` labels, and whether causes count only if they do
not match `mute` too."""


class Inhibition:
    """Finds which alerts mute which, for one set of alerts. It is computed once and asked often."""

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
        """The firing alert that mutes this one, and is not muted itself.

        An alert never mutes itself. If alerts mute one another in a circle, all of them are
        reported.
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
        """Where to look for the causes of an alert.

        If an alert matches both sides of a rule, only alerts that match just `when` mute it, as in
        Alertmanager. So it mutes neither itself nor a similar alert.
        """
        for number, rule in enumerate(self._rules):
            if matches_alert(rule.mute, alert) and (same := _same_values(rule, alert)) is not None:
                both = matches_alert(rule.when, alert)
                if both is not None and (place := (number, same, both)) in self._causes:
                    yield place

    def _next_places(self) -> Iterator[tuple[_Place, Alert]]:
        """Further places where a cause was found that is not muted, or whose own cause is known."""
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
    """Whether one of these checks (with their kinds) may find an alert that mutes this one."""
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
    """The values of these labels. None if one is missing: two alerts without a node are not alerts
    about the same node."""
    values = tuple(label_value(alert, name) for name in rule.same)
    return values if all(values) else None


def window_silences(
    windows: Iterable[SilenceWindow], now: Instant, zone: tzinfo
) -> tuple[Silence, ...]:
    """The silences that the configured windows give at this moment."""
    wall = now.wall / SECOND
    spans = ((w, window_span(w, wall, zone)) for w in windows)
    return tuple(_window_silence(w, *s) for w, s in spans if s is not None and s[0] <= wall < s[1])


def window_span(window: SilenceWindow, at: float, zone: tzinfo) -> tuple[int, int] | None:
    """Beginning and end (epoch seconds) of the window at this moment. None if none is open. A fixed
    window is returned at any time.

    `for` is elapsed time, also in the night of a clock change.
    """
    if window.cron is None:
        begin = parse_moment(window.from_ or "", zone, "from")
        return int(begin.timestamp()), int(
            parse_moment(window.until or "", zone, "until").timestamp()
        )
    length = float(window.for_ or 0)
    start = cron.find_latest_time(cron.parse_cron(window.cron), at, length, zone)
    return None if start is None else (start, int(start + length))


def parse_moment(text: str, zone: tzinfo | None, key: str) -> datetime:
    """Parse ISO 8601. Without an offset, the time is in the configured time zone. Raises Invalid."""
    try:
        # Python 3.10 does not know Z.
        found = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        raise Invalid(f"{text!r} is no moment; write it like 2026-12-24T18:00", key) from None
    return found if found.tzinfo else found.replace(tzinfo=zone)


def _window_silence(window: SilenceWindow, begin: int, end: int) -> Silence:
    # The id depends on the window, not on its beginning. So a window that begins every minute stays
    # the same silence.
    name = repr((window.reason, window.cron, window.from_, str(window.match))).encode()
    return Silence(
        id="file-" + blake2b(name, digest_size=4).hexdigest(),
        match=window.match,
        starts=begin * SECOND,
        ends=end * SECOND,
        who="the configuration",
        reason=window.reason,
    )
