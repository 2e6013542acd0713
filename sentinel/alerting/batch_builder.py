"""Builds the batch that one pass writes: changed alerts, messages, and a row for each check."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sentinel.alerting.incidents import (
    Causes,
    assign_incidents,
    is_always_notified,
    is_standstill,
    may_be_explained,
    rank_alert,
    rank_importance,
)
from sentinel.alerting.notifications import (
    NotificationPlan,
    describe_hold,
    due_notifications,
    make_notification,
)
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.owners import OWNER_LABEL
from sentinel.alerting.pending_checks import PendingChecks
from sentinel.alerting.routing import Listener, find_listeners, unrouted_listener
from sentinel.alerting.silences import (
    Inhibition,
    Orders,
    find_silence,
    may_be_muted,
    window_silences,
)
from sentinel.alerting.state_machine import AlertPolicy, advance_alert, announce_again
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.deaths import describe_news, mark_told, recent_events
from sentinel.core.holds import Held, HeldKind, MessageGroup
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

if TYPE_CHECKING:
    from sentinel.actions.announcements import ActionBulletin

SETTLE_S = 300.0
"""Seconds after the end of a cause. Effects that end within this time are not reported. A blind
check needs one more run for this, usually within five minutes."""


GATHER, FIRST_LOOK = 10.0, 30.0
"""The longest waits in seconds: for another check that may explain an alert, and for the other
alerts of a first pass. If no check is running, there is no wait. Alertmanager, in contrast, always
waits its group_wait of 30 s (https://prometheus.io/docs/alerting/latest/configuration/#route)."""

MAX_NAMED_ALERTS = 5
"""How many alerts of an incident its message names."""

NO_ORDERS, ALL_DONE = Orders(), PendingChecks()


class BatchBuilder:
    """Builds one batch: first the changes of alerts, then the messages about them."""

    def __init__(
        self,
        alerts: Mapping[Key, Alert],
        plan: NotificationPlan,
        now: Instant,
        orders: Orders,
        pending: PendingChecks = ALL_DONE,
    ) -> None:
        self._before, self._plan, self._now = alerts, plan, now
        self._orders, self._pending = orders, pending
        self._first, self._split = False, orders.split_alerts
        self._observed = False  # whether an observed alert was open before or is open now
        self._kinds = frozenset(pending.checks.values())
        self._greeted: set[tuple[str, str]] = set()
        self._silences = (*orders.silences, *window_silences(plan.windows, now, plan.zone))
        self._alerts = dict(alerts)
        self._fresh: dict[Key, Transition] = {}
        self._changes: list[tuple[Key, Alert, Transition]] = []
        self._muting: Inhibition | None = None
        self._explains: Causes | None = None
        self._members: Mapping[str, list[Key]] = {}
        self._ended = Counter[str]()  # How many alerts of each incident end in this batch.
        self._transitions, self._outbox = list[Transition](), list[Outgoing]()

    def observe_finding(
        self, key: Key, finding: Finding | None, policy: AlertPolicy, origin: str = ""
    ) -> None:
        """Apply one observation to one alert."""
        before = self._before.get(key)
        done = advance_alert(key, before, finding, policy, self._now, origin)
        self._observed |= before is not None or done.alert is not None
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
        """Queue a message about an action for each channel of its subject, unless muted. If its alert
        still waits for other checks, that is told first."""
        key = Key(self._plan.cluster_of(bulletin.check), bulletin.check, bulletin.subject)
        waiting = self._alerts.get(key)
        if waiting is not None and _waits_for_pass(waiting):
            self._alerts[key] = self._notify_due(key, waiting)
        policy = self._plan.policies[bulletin.check]
        alert = bulletin.make_alert(
            key, self._alerts.get(key), policy.kind, policy.labels, self._now
        )
        transition = bulletin.make_transition(alert, self._now)
        self._transitions.append(transition)
        if not self._find_hold(alert):
            heard = self._listeners(alert)
            self._queue_message(alert, transition, list(heard), heard)

    def notify_channels(self, checks: Container[str]) -> None:
        """Queue the messages about changes, then the due messages about the alerts of these checks."""
        if not self._has_news(checks):
            return
        self._join_incidents()
        firing = {key for key, alert in self._alerts.items() if alert.firing}
        self._ended.update(a.incident for key, a, _ in self._changes if key not in firing)
        self._free_effects([a for k, a in self._before.items() if a.firing and k not in firing])
        for change in self._changes:
            self._notify_change(*change)
        due = [
            (key, alert)
            for key, alert in self._alerts.items()
            if alert.firing and (key.check in checks or _waits_for_pass(alert))
        ]
        self._first = self._pending.first or any(
            _is_held_for(alert, HeldKind.FIRST_LOOK) for _, alert in due
        )
        if self._first:
            due.sort(key=lambda one: rank_alert(one[1], self._now))
        for key, alert in due:
            self._alerts[key] = self._notify_due(key, alert)

    def _free_effects(self, over: Sequence[Alert]) -> None:
        """Note on what these alerts explained that they end now, also where it does not fire yet: what
        a check saw before that end is looked at again before people are told."""
        if not over:
            return
        causes = Causes(over, split=self._split)
        for key, alert in self._alerts.items():
            if alert.told or alert.freed or is_always_notified(alert):
                continue
            if causes.find_cause(alert):
                self._alerts[key] = replace(alert, freed=self._now)

    def _has_news(self, checks: Container[str]) -> bool:
        """Whether there is anything to report. Usually a check is well while alerts of others fire.
        Those have their incidents already, and no message is due."""
        return bool(self._observed or self._silences or self._split) or any(
            alert.firing and (key.check in checks or _waits_for_pass(alert) or not alert.incident)
            for key, alert in self._alerts.items()
        )

    def _join_incidents(self) -> None:
        """Assign each alert to its incident. All observations must have been made before."""
        self._explains = Causes(self._alerts.values(), split=self._split)
        for alert in list(assign_incidents(self._alerts, self._explains, self._silences)):
            self._alerts[alert.key] = alert
        members: dict[str, list[Key]] = defaultdict(list)
        for alert in self._alerts.values():
            if alert.firing:
                members[alert.incident].append(alert.key)
        for incident in members:  # the cause comes first, because every effect looks it up
            members[incident].sort(key=lambda key: self._alerts[key].id != incident)
        self._members = members

    def build_batch(self, outcomes: Sequence[RunOutcome]) -> Batch:
        """The whole batch, for one transaction."""
        reports = [(o.check, o.report) for o in outcomes if o.report is not None]
        changed = (a for k, a in self._alerts.items() if a != self._before.get(k))
        known = (*self._before.values(), *self._alerts.values()) if self._transitions else ()
        incidents = {a.id: a.incident for a in known}
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
            ledger=tuple(
                replace(row, cluster=self._plan.cluster_of(check))
                for check, report in reports
                for row in report.ledger
            ),
        )

    def _notify_change(self, key: Key, alert: Alert, transition: Transition) -> None:
        """Report an end or a settled state to those who know of the problem, even if it is muted.
        `flapping` is reported to those who would get a firing alert now."""
        heard = self._listeners(alert)
        flaps = transition.reason == "flapping"
        names = (heard if not self._find_hold(alert) else {}) if flaps else alert.told
        told = self._queue_message(alert, transition, list(names), heard)
        if key in self._alerts:
            self._alerts[key] = _mark_news(told, self._now) if names else told

    def _notify_due(self, key: Key, alert: Alert) -> Alert:
        explained = _is_held_for(alert, HeldKind.EXPLAINED)
        if explained and not alert.freed and not self._find_cause(alert):
            alert = replace(alert, freed=self._now)
        waited = _waits_for_pass(alert)
        held = self._find_hold(alert)
        alert = alert if held == alert.on_hold else replace(alert, on_hold=held)
        if held:
            return alert
        heard = self._listeners(alert)
        if self._first:
            heard = {n: replace(how, group="", first_look=True) for n, how in heard.items()}
        acked, before, sent = alert.id in self._orders.acks, alert, len(self._outbox)
        alert = self._notify_news(key, alert, heard)
        quiet = acked or alert.tell_once
        first = not alert.told
        for reason, names in due_notifications(alert, heard, self._now, acked=quiet).items():
            transition = self._fresh.get(key)
            if transition is None and waited and reason == "firing":
                told = replace(alert, count=alert.count - 1)
                alert, transition = announce_again(
                    told, reason, self._now
                )  # the transition is stored already
            elif transition is None or transition.reason != reason:
                alert, transition = announce_again(alert, reason, self._now)
                self._transitions.append(transition)
            alert = self._queue_message(alert, transition, names, heard)
            if first or reason in ("worse", "repeat"):
                alert = _mark_news(replace(alert, unseen_told=()), self._now)
        if acked and not before.acked:
            newer = {row.channel for row in self._outbox[sent:]}
            alert = self._notify_ack(alert, [name for name in before.told if name not in newer])
        return alert

    def _notify_news(self, key: Key, alert: Alert, heard: Mapping[str, Listener]) -> Alert:
        """Report deaths and unseen things that no message told yet to those who know of the alert,
        also if somebody has acknowledged it or it flaps. They are no more of the same."""
        names = [name for name in heard if name in alert.told]
        settled = alert.clear_since is None and key not in self._fresh
        policy = self._plan.policies.get(key.check)  # the check may be gone from the configuration
        words = describe_news(alert, policy.blind_after if policy else 1, self._now)
        if not (names and settled and words):
            return alert
        alert, transition = announce_again(alert, "again", self._now)
        transition = replace(transition, summary=f"{words}; {transition.summary}")
        self._transitions.append(transition)
        alert = _mark_news(self._queue_message(alert, transition, names, heard), self._now)
        events = (*recent_events(alert.death_events, self._now), self._now.wall)
        return replace(alert, death_events=events)

    def _notify_ack(self, alert: Alert, names: Sequence[str]) -> Alert:
        """Report an acknowledgement once to those who know of the problem. Whoever is told something
        newer just now reads of it there: nobody has acknowledged that."""
        alert = replace(alert, acked=True)
        if not names:
            return alert
        alert, transition = announce_again(alert, "ack", self._now)
        self._transitions.append(transition)
        told = self._queue_message(alert, transition, names, self._listeners(alert))
        return replace(told, told=alert.told)  # an acknowledgement starts no new repeat interval

    def _listeners(self, alert: Alert) -> dict[str, Listener]:
        quiet = alert.tell_once or alert.id in self._orders.acks
        plan = self._plan
        names = [n for n in plan.channels if not (alert.owner_muted and n in plan.personal)]
        return find_listeners(alert, plan.routes, names, self._now, plan.zone, quiet)

    def _find_hold(self, alert: Alert) -> Held | None:
        """Why no message is sent now. None if messages are sent."""
        if silence := find_silence(alert, self._silences, self._now):
            why = f": {silence.reason}" if silence.reason else ""
            who = f"{silence.who or 'somebody'}{why}"
            return Held(HeldKind.SILENCED, who, Instant(wall=silence.ends))
        if cause := self._current_inhibition().find_explanation(alert):
            return Held(HeldKind.MUTED, _name_alerts(cause))
        if cause := self._find_cause(alert):
            return Held(HeldKind.EXPLAINED, _name_alerts(cause))
        if waits := self._find_wait(alert):
            return waits
        split = alert.id in self._split
        if (
            alert.freed is not None
            and not split
            and get_elapsed_s(alert.freed, self._now) < SETTLE_S
        ):
            return Held(HeldKind.SETTLING)
        return None

    def _find_wait(self, alert: Alert) -> Held | None:
        """Why a new alert waits for the rest of the pass. None if it does not wait. A stopped
        training waits only for the other alerts of a first pass."""
        if alert.told:
            return None
        age = get_elapsed_s(alert.fired or alert.since, self._now)
        if self._pending.first and age < FIRST_LOOK:
            return Held(HeldKind.FIRST_LOOK)
        still = is_standstill(alert.kind, alert.key.subject, alert.severity)
        if not self._pending.checks or still or age >= GATHER:
            return None
        muted = may_be_muted(alert, self._plan.inhibit, self._pending.checks)
        if not muted and not may_be_explained(alert, self._kinds):
            return None
        checks = ", ".join(sorted(self._pending.checks)[:MAX_NAMED_ALERTS])
        return Held(HeldKind.CHECKS_AT_WORK, checks)

    def _find_cause(self, alert: Alert) -> Alert | None:
        """The alert that explains this one. None if there is none, or if its kind is always sent."""
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
            told, bundle = message, MessageGroup(how.group, owner=owner)
            if how.first_look:
                told = self._first_look_note(message, (name, owner or ""))
                bundle = MessageGroup(first_look=True, owner=owner)
            elif len(self._members.get(alert.incident, ())) + self._ended[alert.incident] > 1:
                bundle = MessageGroup(incident=alert.incident, owner=owner)
            self._outbox.append(
                Outgoing(
                    channel=name,
                    notification=told,
                    created=self._now,
                    bundle=bundle,
                    hold=how.wait,
                    interval=how.interval,
                )
            )
        known = dict.fromkeys(names, LastNotified(self._now, alert.severity))
        return replace(alert, told={**alert.told, **known}) if names else alert

    def _first_look_note(self, message: Notification, to: tuple[str, str]) -> Notification:
        """In a first pass, the first message to each reader also says what is watched."""
        if to in self._greeted:
            return message
        self._greeted.add(to)
        kinds = Counter(policy.kind for policy in self._plan.policies.values())
        watched = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        words = f"first pass ({watched})"
        if at := self._pending.set_up.get(message.check):
            from sentinel.core.time_text import format_clock  # only a first message needs it

            clock = format_clock(at / SECOND, self._plan.zone)
            words += f": it ran when you set this up at {clock}"
        elif not message.noticed or message.since == message.noticed:
            words += ": this problem may be older"
        return replace(message, note="; ".join(filter(None, (words, message.note))))

    def _current_inhibition(self) -> Inhibition:
        """The inhibition for this batch. All observations must have been made before."""
        if self._muting is None:
            self._muting = Inhibition(self._plan.inhibit, self._alerts.values())
        return self._muting

    def _message_note(self, alert: Alert) -> str:
        ack = self._orders.acks.get(alert.id)
        shown = max(at.wall for at in (alert.shown_since, alert.rose) if at)
        newer = " before this" if ack and ack.at.wall < shown else ""
        incident = alert.incident or alert.id
        whose, comment = self._orders.find_assignee(incident), self._orders.last_comment(incident)
        parts = (
            describe_hold(self._find_hold(alert), self._plan.zone),
            f"acknowledged{newer} by {ack.author_text}" if ack else "",
            _describe_flapping(alert),
            f"assigned to {whose}" if whose else "",
            f"{comment.who}: {comment.text}" if comment else "",
            self._incident_story(alert),
        )
        return "; ".join(part for part in parts if part)

    def _incident_story(self, alert: Alert) -> str:
        """A sentence about the rest of the incident. For the cause it names the effects, for an
        effect the cause."""
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


def _is_held_for(alert: Alert, *kinds: HeldKind) -> bool:
    return alert.on_hold is not None and alert.on_hold.kind in kinds


def _describe_flapping(alert: Alert) -> str:
    again = "it dies again and again: each death is told, a recovery only once it lasts"
    settles = "it comes and goes: its end is not told until it has settled"
    return (again if alert.deaths else settles) if alert.flapping else ""


def _mark_news(alert: Alert, now: Instant) -> Alert:
    """The alert, after a message that shows all of its deaths, and all that is not seen."""
    unseen = dict.fromkeys((*alert.unseen_told, *alert.unseen))
    return replace(alert, deaths=mark_told(alert.deaths, now), unseen_told=tuple(unseen))


def _waits_for_pass(alert: Alert) -> bool:
    """Whether the alert waits for the results of other checks of the same pass."""
    return _is_held_for(alert, HeldKind.CHECKS_AT_WORK, HeldKind.FIRST_LOOK)


def _name_alerts(alert: Alert) -> str:
    return (
        f"{alert.key.check} {alert.key.subject}"
        if alert.key.subject
        else f"check {alert.key.check}"
    )


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
