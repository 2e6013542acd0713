"""From what checks saw to what is written: alerts, transitions and outbox rows. Pure."""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone, tzinfo

from msgspec import Struct
from msgspec.structs import replace

from sentinel.actions.announcements import ActionBulletin
from sentinel.alerting.incidents import (
    Causes,
    assign_incidents,
    is_always_notified,
    is_standstill,
    may_be_explained,
    rank_alert,
    rank_importance,
)
from sentinel.alerting.observations import RunOutcome, observed_findings
from sentinel.alerting.owners import OWNER_LABEL, group_for_owner
from sentinel.alerting.routing import Listener, find_listeners, unrouted_listener
from sentinel.alerting.settings import Inhibit, Route, SilenceWindow
from sentinel.alerting.silences import (
    Inhibition,
    Orders,
    find_silence,
    may_be_muted,
    window_silences,
)
from sentinel.alerting.state_machine import AlertPolicy, FlapPolicy, advance_alert, announce_again
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.model import (
    Alert,
    Batch,
    CheckRun,
    Finding,
    Key,
    LastNotified,
    Notification,
    Outgoing,
    Status,
    Transition,
    get_worst_status,
)


class NotificationPlan(Struct, frozen=True, kw_only=True):
    """Whom to tell of what, as one configuration has it; without I/O, for the decisions.

    `personal`: the channels that tell each user of their own jobs.
    """

    cluster: str
    policies: Mapping[str, AlertPolicy]
    channels: Sequence[str]
    personal: Container[str] = ()
    routes: Sequence[Route] = ()
    inhibit: Sequence[Inhibit] = ()
    windows: Sequence[SilenceWindow] = ()
    zone: tzinfo = timezone.utc
    dry_run: bool = False

    def cluster_of(self, check: str) -> str:
        """The cluster whose name the check's alerts bear."""
        policy = self.policies.get(check)
        return (policy.cluster if policy else "") or self.cluster


SETTLE_S = 300.0
"""Seconds after the end of a cause in which what it explained may end as well, untold: a check that
could not see has to run once more, every five minutes as a rule."""


class PendingChecks(Struct, frozen=True, kw_only=True):
    """What of a pass is still to come: the checks at work, with their kinds, and whether it is the
    `first` look of a new state, which is told as one message."""

    checks: Mapping[str, str] = {}
    first: bool = False


GATHER, FIRST_LOOK = 10.0, 30.0
"""Seconds that an alert waits at most for what may explain it, and for the others of a first look.
Nobody waits where no check is at work: Alertmanager's group_wait, 30 s, is always waited for
(https://prometheus.io/docs/alerting/latest/configuration/#route)."""

WAITS, FIRST = "waits for ", "waits for the first look to end"
"""How `held` begins of an alert that waits for the rest of its pass."""

HELD_BY_CAUSE = "told with its cause:"
"""How `held` begins of an alert that its cause explains."""

MAX_NAMED_ALERTS = 5
"""Alerts of an incident that its message names."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST_MICROSECOND = 253_402_214_400_000_000  # 9999-12-31 UTC: datetime ends a day later


def make_notification(
    alert: Alert, transition: Transition, plan: NotificationPlan, note: str = ""
) -> Notification:
    """The message about a transition, with times as the reader's clock shows them."""
    over = transition.status is Status.OK and transition.reason != "action"
    return Notification(
        at=format_iso(transition.at, plan.zone),
        cluster=alert.key.cluster,
        check=alert.key.check,
        kind=alert.kind,
        subject=alert.key.subject,
        severity=alert.severity,
        status=transition.status,
        reason=transition.reason,
        summary=transition.summary,
        since=format_iso(alert.shown_since, plan.zone),
        key=transition.id,
        alert=alert.id,
        incident=alert.incident or alert.id,
        details=alert.details if not over else "",
        commands=alert.commands if not over else (),
        labels=alert.labels,
        values=alert.values if not over else {},
        runbook=alert.runbook,
        note=note,
        dry_run=plan.dry_run,
    )


def format_iso(moment: Instant, zone: tzinfo) -> str:
    """ISO 8601 to the second with the zone's offset; what lies behind the calendar's end is on its
    last day (`until: 9999-12-31` in the file is later than that in some zones)."""
    at = _EPOCH + timedelta(microseconds=min(moment.wall, _LAST_MICROSECOND))
    return at.astimezone(zone).isoformat(timespec="seconds")


def due_notifications(
    alert: Alert, heard: Mapping[str, Listener], now: Instant, *, acked: bool = False
) -> dict[str, list[str]]:
    """Channels by reason (firing, flapping, worse, repeat); nothing while it does not fire, or is
    clear and only kept firing. What flaps is told to those who do not know, and when it gets
    worse; it is not repeated."""
    due: dict[str, list[str]] = {}
    if not alert.firing or alert.clear_since is not None:
        return due
    for name, listener in heard.items():
        reason = _due_reason(alert, alert.told.get(name), listener, now, acked)
        if reason:
            due.setdefault(reason, []).append(name)
    return due


def _due_reason(
    alert: Alert, told: LastNotified | None, listener: Listener, now: Instant, acked: bool
) -> str:
    if told is None:
        return "flapping" if alert.flapping else "firing"
    if alert.severity.rank > told.severity.rank:
        return "worse"
    if not (acked or alert.flapping) and get_elapsed_s(told.at, now) >= listener.repeat:
        return "repeat"
    return ""


NO_ORDERS, ALL_DONE = Orders(), PendingChecks()


def process_outcomes(
    outcomes: Sequence[RunOutcome],
    alerts: Mapping[Key, Alert],
    plan: NotificationPlan,
    now: Instant,
    orders: Orders = NO_ORDERS,
    origin: Callable[[Key], str] = lambda _: "",
    rest: PendingChecks = ALL_DONE,
) -> Batch:
    """What one transaction has to write about these runs. `origin`: see state_machine.advance_alert."""
    work = _BatchBuilder(alerts, plan, now, orders, rest)
    for outcome in outcomes:
        for key, finding in observed_findings(outcome, alerts, plan.cluster_of(outcome.check)):
            work.observe_finding(key, finding, plan.policies[outcome.check], origin(key))
    work.notify_channels({outcome.check for outcome in outcomes})
    return work.build_batch(outcomes)


def review_alerts(
    alerts: Mapping[Key, Alert],
    plan: NotificationPlan,
    now: Instant,
    orders: Orders = NO_ORDERS,
    rest: PendingChecks = ALL_DONE,
) -> Batch:
    """What is owed although nothing new was seen: repeats, escalation, a silence that has ended."""
    work = _BatchBuilder(alerts, plan, now, orders, rest)
    work.notify_channels({key.check for key in alerts})
    return work.build_batch(())


def forget_checks(
    keys: Iterable[Key],
    alerts: Mapping[Key, Alert],
    plan: NotificationPlan,
    now: Instant,
    orders: Orders = NO_ORDERS,
) -> Batch:
    """End alerts whose check is no longer configured; those who were told hear of it."""
    work = _BatchBuilder(alerts, plan, now, orders)
    for key in keys:
        work.observe_finding(
            key, None, AlertPolicy(kind=alerts[key].kind, flap=FlapPolicy(changes=0))
        )
    work.notify_channels(())
    return work.build_batch(())


def announce_actions(
    bulletins: Sequence[ActionBulletin],
    alerts: Mapping[Key, Alert],
    plan: NotificationPlan,
    now: Instant,
    orders: Orders = NO_ORDERS,
) -> Batch:
    """Tell of sentinel's own actions, beside the alert about the same subject if there is one."""
    work = _BatchBuilder(alerts, plan, now, orders)
    for bulletin in bulletins:
        work.announce_action(bulletin)
    return work.build_batch(())


class _BatchBuilder:
    """Collects one batch: first what was seen, then who is owed a word about it."""

    def __init__(
        self,
        alerts: Mapping[Key, Alert],
        plan: NotificationPlan,
        now: Instant,
        orders: Orders,
        rest: PendingChecks = ALL_DONE,
    ) -> None:
        self._before, self._plan, self._now = alerts, plan, now
        self._orders, self._rest = orders, rest
        self._first, self._split = False, orders.split_alerts
        self._kinds = frozenset(rest.checks.values())
        self._greeted: set[tuple[str, str]] = set()
        self._silences = (*orders.silences, *window_silences(plan.windows, now, plan.zone))
        self._alerts = dict(alerts)
        self._fresh: dict[Key, Transition] = {}
        self._changes: list[tuple[Key, Alert, Transition]] = []
        self._muting: Inhibition | None = None
        self._explains: Causes | None = None
        self._members: Mapping[str, list[Key]] = {}
        self._transitions, self._outbox = list[Transition](), list[Outgoing]()

    def observe_finding(
        self, key: Key, finding: Finding | None, policy: AlertPolicy, origin: str = ""
    ) -> None:
        """One step of the life of one alert."""
        before = self._before.get(key)
        done = advance_alert(key, before, finding, policy, self._now, origin)
        if done.alert is None:
            self._alerts.pop(key, None)
        else:
            self._alerts[key] = done.alert
        if done.transition is None:
            return
        self._transitions.append(done.transition)
        about = done.alert or before
        if about is None:
            return
        if done.transition.reason in ("firing", "worse"):
            self._fresh[key] = done.transition
        else:
            self._changes.append((key, about, done.transition))

    def announce_action(self, bulletin: ActionBulletin) -> None:
        """One message about an action to whoever hears of its subject, unless that is muted."""
        key = Key(self._plan.cluster_of(bulletin.check), bulletin.check, bulletin.subject)
        policy = self._plan.policies[bulletin.check]
        alert = bulletin.make_alert(
            key, self._alerts.get(key), policy.kind, policy.labels, self._now
        )
        transition = bulletin.make_transition(alert, self._now)
        self._transitions.append(transition)
        if not self._hold_reason(alert):
            heard = self._listeners(alert)
            self._queue_message(alert, transition, list(heard), heard)

    def notify_channels(self, checks: Container[str]) -> None:
        """Tell of what has changed, then give every channel what it is owed about the alerts of
        these checks."""
        self._join_incidents()
        for change in self._changes:
            self._notify_change(*change)
        due = [
            (key, alert)
            for key, alert in self._alerts.items()
            if alert.firing and (key.check in checks or alert.held.startswith(WAITS))
        ]
        self._first = self._rest.first or any(alert.held == FIRST for _, alert in due)
        if self._first:
            due.sort(key=lambda one: rank_alert(one[1], self._now))
        for key, alert in due:
            self._alerts[key] = self._notify_due(key, alert)

    def _join_incidents(self) -> None:
        """Give each alert its incident, when all of the batch was observed."""
        self._explains = Causes(self._alerts.values(), split=self._split)
        for alert in list(assign_incidents(self._alerts, self._explains, self._silences)):
            self._alerts[alert.key] = alert
        members: dict[str, list[Key]] = defaultdict(list)
        for alert in self._alerts.values():
            if alert.firing:
                members[alert.incident].append(alert.key)
        for incident in members:  # the cause first: every effect asks for it
            members[incident].sort(key=lambda key: self._alerts[key].id != incident)
        self._members = members

    def build_batch(self, outcomes: Sequence[RunOutcome]) -> Batch:
        """All of it, as one transaction."""
        reports = [(o.check, o.report) for o in outcomes if o.report is not None]
        changed = (a for k, a in self._alerts.items() if a != self._before.get(k))
        incidents = {a.id: a.incident for a in (*self._before.values(), *self._alerts.values())}
        told = (replace(t, incident=incidents.get(t.alert) or t.alert) for t in self._transitions)
        return Batch(
            at=self._now,
            alerts=tuple(changed),
            closed=tuple(k for k in self._before if k not in self._alerts),
            transitions=tuple(told),
            outbox=tuple(self._outbox),
            memory={check: r.memory for check, r in reports if r.memory is not None},
            samples={check: r.samples for check, r in reports if r.samples},
            runs=tuple(_run_row(o, self._now) for o in outcomes),
        )

    def _notify_change(self, key: Key, alert: Alert, transition: Transition) -> None:
        """An end or a settling goes to those who know of the trouble, muted or not; flapping
        to whoever would hear of a firing now."""
        heard = self._listeners(alert)
        flaps = transition.reason == "flapping"
        names = (heard if not self._hold_reason(alert) else {}) if flaps else alert.told
        told = self._queue_message(alert, transition, list(names), heard)
        if key in self._alerts:
            self._alerts[key] = told

    def _notify_due(self, key: Key, alert: Alert) -> Alert:
        if alert.held.startswith(HELD_BY_CAUSE) and not alert.freed and not self._find_cause(alert):
            alert = replace(alert, freed=self._now)
        waited = alert.held.startswith(WAITS)
        held = self._hold_reason(alert)
        alert = alert if held == alert.held else replace(alert, held=held)
        if held:
            return alert
        heard = self._listeners(alert)
        if self._first:
            heard = {n: replace(how, group=FIRST) for n, how in heard.items()}
        acked = alert.id in self._orders.acks
        if acked and not alert.acked:
            alert = self._notify_ack(alert, heard)
        quiet = acked or alert.tell_once
        for reason, names in due_notifications(alert, heard, self._now, acked=quiet).items():
            transition = self._fresh.get(key)
            if transition is None and waited and reason == "firing":
                told = replace(alert, count=alert.count - 1)
                alert, transition = announce_again(
                    told, reason, self._now
                )  # it is in the state already
            elif transition is None or transition.reason != reason:
                alert, transition = announce_again(alert, reason, self._now)
                self._transitions.append(transition)
            alert = self._queue_message(alert, transition, names, heard)
        return alert

    def _notify_ack(self, alert: Alert, heard: Mapping[str, Listener]) -> Alert:
        """Those who know of the trouble hear once that somebody has it."""
        alert = replace(alert, acked=True)
        if not alert.told:
            return alert
        alert, transition = announce_again(alert, "ack", self._now)
        self._transitions.append(transition)
        told = self._queue_message(alert, transition, list(alert.told), heard)
        return replace(told, told=alert.told)  # neither a repeat nor worse: nothing begins anew

    def _listeners(self, alert: Alert) -> dict[str, Listener]:
        quiet = alert.tell_once or alert.id in self._orders.acks
        plan = self._plan
        return find_listeners(alert, plan.routes, plan.channels, self._now, plan.zone, quiet)

    def _hold_reason(self, alert: Alert) -> str:
        """Why nobody is told just now; empty when they are."""
        if silence := find_silence(alert, self._silences, self._now):
            why = f": {silence.reason}" if silence.reason else ""
            until = format_iso(Instant(wall=silence.ends), self._plan.zone)
            return f"silenced until {until} by {silence.who or 'somebody'}{why}"
        if cause := self._current_inhibition().find_explanation(alert):
            return f"muted while {_name_alerts(cause)} fires"
        if cause := self._find_cause(alert):
            return f"{HELD_BY_CAUSE} {_name_alerts(cause)}"
        if waits := self._wait_reason(alert):
            return waits
        split = alert.id in self._split
        if (
            alert.freed is not None
            and not split
            and get_elapsed_s(alert.freed, self._now) < SETTLE_S
        ):
            return "its cause is over; muted until it has been looked at again"
        return ""

    def _wait_reason(self, alert: Alert) -> str:
        """What of the pass a new alert is held for; a training that stands still only for the
        others of a first look."""
        if alert.told:
            return ""
        age = get_elapsed_s(alert.fired or alert.since, self._now)
        if self._rest.first and age < FIRST_LOOK:
            return FIRST
        still = is_standstill(alert.kind, alert.key.subject, alert.severity)
        if not self._rest.checks or still or age >= GATHER:
            return ""
        muted = may_be_muted(alert, self._plan.inhibit, self._rest.checks)
        if not muted and not may_be_explained(alert, self._kinds):
            return ""
        checks = ", ".join(sorted(self._rest.checks)[:MAX_NAMED_ALERTS])
        return f"{WAITS}{checks}: its cause may be found there"

    def _find_cause(self, alert: Alert) -> Alert | None:
        """What explains it away; nothing does with a training that is dead or hangs."""
        if self._explains is None or is_always_notified(alert):
            return None
        root = self._explains.find_root_cause(alert)
        return root if root.key != alert.key else None

    def _queue_message(
        self,
        alert: Alert,
        transition: Transition,
        names: Sequence[str],
        heard: Mapping[str, Listener],
    ) -> Alert:
        message = make_notification(alert, transition, self._plan, self._message_note(alert))
        for name in names:
            how = heard.get(name) or unrouted_listener(alert)
            owner = alert.labels.get(OWNER_LABEL, "") if name in self._plan.personal else None
            group, told = how.group, message
            if group == FIRST:
                told = self._first_look_note(message, (name, owner or ""))
            elif len(self._members.get(alert.incident, ())) > 1:
                group = f"incident\0{alert.incident}"
            self._outbox.append(
                Outgoing(
                    channel=name,
                    notification=told,
                    created=self._now,
                    group=group if owner is None else group_for_owner(group, owner),
                    hold=how.wait,
                    interval=how.interval,
                )
            )
        known = dict.fromkeys(names, LastNotified(self._now, alert.severity))
        return replace(alert, told={**alert.told, **known}) if names else alert

    def _first_look_note(self, message: Notification, to: tuple[str, str]) -> Notification:
        """Of a first look the message says once what is watched."""
        if to in self._greeted:
            return message
        self._greeted.add(to)
        kinds = Counter(policy.kind for policy in self._plan.policies.values())
        watched = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        words = f"sentinel has just begun to watch ({watched}): this was wrong already"
        return replace(message, note="; ".join(filter(None, (words, message.note))))

    def _current_inhibition(self) -> Inhibition:
        """Asked for only when all of the batch was observed: by whom does not matter then."""
        if self._muting is None:
            self._muting = Inhibition(self._plan.inhibit, self._alerts.values())
        return self._muting

    def _message_note(self, alert: Alert) -> str:
        ack = self._orders.acks.get(alert.id)
        incident = alert.incident or alert.id
        whose, comment = self._orders.find_assignee(incident), self._orders.last_comment(incident)
        parts = (
            self._hold_reason(alert),
            f"acknowledged by {ack.author_text}" if ack else "",
            f"assigned to {whose}" if whose else "",
            f"{comment.who}: {comment.text}" if comment else "",
            self._incident_story(alert),
        )
        return "; ".join(part for part in parts if part)

    def _incident_story(self, alert: Alert) -> str:
        """What else belongs to the incident: of the cause its effects, of an effect its cause."""
        members = self._members.get(alert.incident, [])
        if planned := self._orders.find_maintenance(alert.incident):
            more = f", with {len(members) - 1} more" if len(members) > 1 else ""
            return f"began in {planned.reason}{more}"
        if len(members) < 2:
            return ""
        if alert.id != alert.incident:
            cause = self._alerts[members[0]]
            known = cause.id == alert.incident
            return f"same incident as {_name_alerts(cause)}: {cause.summary}" if known else ""
        others = [self._alerts[key] for key in members if key != alert.key]
        others.sort(key=lambda a: rank_importance(a.kind, a.key.subject, a.severity, a.status))
        names = ", ".join(_name_alerts(a) for a in others[:MAX_NAMED_ALERTS])
        more = (
            f" and {len(others) - MAX_NAMED_ALERTS} more" if len(others) > MAX_NAMED_ALERTS else ""
        )
        return f"same incident: {names}{more}"


def _name_alerts(alert: Alert) -> str:
    return " ".join(filter(None, (alert.key.check, alert.key.subject)))


def _run_row(outcome: RunOutcome, now: Instant) -> CheckRun:
    found = outcome.report.findings if outcome.report else ()
    return CheckRun(
        check=outcome.check,
        kind=outcome.kind,
        at=now,
        status=get_worst_status([f.status for f in (*found, outcome.itself)]),
        summary=outcome.headline,
        duration=outcome.seconds,
        after=outcome.after,
        blind=outcome.itself.status is Status.UNKNOWN,
    )
