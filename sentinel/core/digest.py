"""From what checks saw to what is written: alerts, transitions and outbox rows. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone, tzinfo

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import Instant
from sentinel.core.lifecycle import Policy, Step, repeated, step
from sentinel.core.model import (
    Alert,
    Batch,
    Finding,
    Key,
    Notification,
    Outgoing,
    Run,
    Status,
    Transition,
)
from sentinel.core.outcome import Outcome
from sentinel.core.routing import audience, recipients, repeats_due
from sentinel.core.settings import Route

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Plan(Struct, frozen=True, kw_only=True):
    """What the configuration says about telling people."""

    cluster: str
    policies: Mapping[str, Policy]
    channels: Sequence[str]
    routes: Sequence[Route] = ()
    zone: tzinfo = timezone.utc
    dry_run: bool = False


def digest(
    outcomes: Sequence[Outcome], alerts: Mapping[Key, Alert], plan: Plan, now: Instant
) -> Batch:
    """What one transaction has to write about these runs."""
    work = _Work(plan, now)
    for outcome in outcomes:
        policy = plan.policies[outcome.check]
        for key, finding in _observations(outcome, alerts, plan.cluster):
            work.observe(alerts.get(key), step(key, alerts.get(key), finding, policy, now), key)
    return work.batch(outcomes)


def forget(keys: Iterable[Key], alerts: Mapping[Key, Alert], plan: Plan, now: Instant) -> Batch:
    """End alerts whose check is no longer configured; those who were told hear of it."""
    work = _Work(plan, now)
    for key in keys:
        policy = Policy(kind=alerts[key].kind)
        work.observe(alerts[key], step(key, alerts[key], None, policy, now), key)
    return work.batch(())


def notification(alert: Alert, transition: Transition, plan: Plan) -> Notification:
    """The message about a transition, with times as the reader's clock shows them."""
    return Notification(
        at=iso(transition.at, plan.zone),
        cluster=alert.key.cluster,
        check=alert.key.check,
        kind=alert.kind,
        subject=alert.key.subject,
        severity=alert.severity,
        status=transition.status,
        reason=transition.reason,
        summary=transition.summary,
        since=iso(alert.since, plan.zone),
        key=transition.id,
        alert=alert.id,
        details=alert.details if transition.status is not Status.OK else "",
        commands=alert.commands if transition.status is not Status.OK else (),
        labels=alert.labels,
        values=alert.values if transition.status is not Status.OK else {},
        runbook=alert.runbook,
        dry_run=plan.dry_run,
    )


def iso(moment: Instant, zone: tzinfo) -> str:
    """ISO 8601 to the second with the zone's offset."""
    at = _EPOCH + timedelta(microseconds=moment.wall)
    return at.astimezone(zone).isoformat(timespec="seconds")


def _observations(
    outcome: Outcome, alerts: Mapping[Key, Alert], cluster: str
) -> Iterable[tuple[Key, Finding | None]]:
    yield Key(cluster, outcome.check), outcome.itself
    if outcome.report is None:
        return
    seen = {Key(cluster, outcome.check, f.subject): f for f in outcome.report.findings}
    yield from seen.items()
    for key in alerts:
        if (
            key.check == outcome.check
            and key.cluster == cluster
            and key.subject
            and key not in seen
        ):
            yield key, None


class _Work:
    """Collects one batch."""

    def __init__(self, plan: Plan, now: Instant) -> None:
        self._plan, self._now = plan, now
        self._alerts: dict[Key, Alert] = {}
        self._closed: list[Key] = []
        self._transitions: list[Transition] = []
        self._outbox: list[Outgoing] = []

    def observe(self, before: Alert | None, what: Step, key: Key) -> None:
        alert = self._announce(before, what)
        if alert is None:
            if before is not None:
                self._closed.append(key)
            return
        alert = self._repeat(alert) if what.transition is None else alert
        if alert != before:
            self._alerts[key] = alert

    def batch(self, outcomes: Sequence[Outcome]) -> Batch:
        reports = [(o.check, o.report) for o in outcomes if o.report is not None]
        return Batch(
            at=self._now,
            alerts=tuple(self._alerts.values()),
            closed=tuple(self._closed),
            transitions=tuple(self._transitions),
            outbox=tuple(self._outbox),
            memory={check: r.memory for check, r in reports if r.memory is not None},
            samples={check: r.samples for check, r in reports if r.samples},
            runs=tuple(_run(o, self._now) for o in outcomes),
        )

    def _announce(self, before: Alert | None, what: Step) -> Alert | None:
        about = what.alert or before
        if what.transition is None or about is None:
            return what.alert
        heard = audience(about, self._plan.routes, self._plan.channels)
        told = self._tell(about, what.transition, recipients(about, what.transition, heard))
        return told if what.alert else None

    def _repeat(self, alert: Alert) -> Alert:
        heard = audience(alert, self._plan.routes, self._plan.channels)
        due = repeats_due(alert, heard, self._now)
        again = repeated(alert, self._now) if due else None
        if again is None or again.alert is None or again.transition is None:
            return alert
        return self._tell(again.alert, again.transition, due)

    def _tell(self, alert: Alert, transition: Transition, channels: Sequence[str]) -> Alert:
        message = notification(alert, transition, self._plan)
        self._transitions.append(transition)
        self._outbox += [
            Outgoing(channel=name, notification=message, created=self._now) for name in channels
        ]
        return replace(alert, told={**alert.told, **dict.fromkeys(channels, self._now)})


def _run(outcome: Outcome, now: Instant) -> Run:
    findings = (*(outcome.report.findings if outcome.report else ()), outcome.itself)
    worst = max(findings, key=lambda f: f.status.rank)
    return Run(
        check=outcome.check,
        kind=outcome.kind,
        at=now,
        status=worst.status,
        summary=_headline(worst, len(findings) - 1),
        duration=outcome.seconds,
    )


def _headline(worst: Finding, subjects: int) -> str:
    if worst.status is Status.OK and subjects > 1:
        return f"{subjects} subjects, all ok"
    return f"{worst.subject}: {worst.summary}" if worst.subject else worst.summary
