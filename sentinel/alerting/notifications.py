"""A change of an alert, or an action, as the message about it. Pure."""

from datetime import datetime, timedelta, timezone, tzinfo

from msgspec.structs import replace

from sentinel.actions.announcements import Bulletin
from sentinel.alerting.policy import Plan
from sentinel.core.clock import Instant
from sentinel.core.model import Alert, Key, Notification, Status, Transition

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST = 253_402_214_400_000_000  # 9999-12-31 UTC: datetime ends a day later


def notification(alert: Alert, transition: Transition, plan: Plan, note: str = "") -> Notification:
    """The message about a transition, with times as the reader's clock shows them."""
    over = transition.status is Status.OK and transition.reason != "action"
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
        details=alert.details if not over else "",
        commands=alert.commands if not over else (),
        labels=alert.labels,
        values=alert.values if not over else {},
        runbook=alert.runbook,
        note=note,
        dry_run=plan.dry_run,
    )


def iso(moment: Instant, zone: tzinfo) -> str:
    """ISO 8601 to the second with the zone's offset; what lies behind the calendar's end is on its
    last day (`until: 9999-12-31` in the file is later than that in some zones)."""
    at = _EPOCH + timedelta(microseconds=min(moment.wall, _LAST))
    return at.astimezone(zone).isoformat(timespec="seconds")


def stand_in(bulletin: Bulletin, key: Key, alert: Alert | None, plan: Plan, now: Instant) -> Alert:
    """The alert that a bulletin belongs to, or one that stands in for it, with its words."""
    if alert is None:
        alert = Alert(
            key=key,
            id=bulletin.id.partition(":")[0],
            kind=plan.policies[bulletin.check].kind,
            status=bulletin.status,
            summary=bulletin.summary,
            since=now,
            last=now,
            labels=plan.policies[bulletin.check].labels,
        )
    return replace(alert, details=bulletin.details, commands=bulletin.commands, values={})


def deed(bulletin: Bulletin, alert: Alert, now: Instant) -> Transition:
    """What a bulletin tells, as a change of its alert."""
    return Transition(
        id=bulletin.id,
        alert=alert.id,
        key=alert.key,
        kind=alert.kind,
        reason="action",
        status=bulletin.status,
        severity=alert.severity,
        summary=bulletin.summary,
        at=now,
        since=alert.since,
    )
