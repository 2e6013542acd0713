"""Decides whom to notify of what, and writes the message about a transition. Pure."""

from collections.abc import Container, Mapping, Sequence
from datetime import datetime, timedelta, timezone, tzinfo

from msgspec import Struct

from sentinel.alerting.routing import Listener
from sentinel.alerting.settings import Inhibit, ReportSettings, Route, SilenceWindow
from sentinel.alerting.state_machine import AlertPolicy
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.deaths import find_first_end, find_noticed
from sentinel.core.guidance import NO_GUIDANCE, name_config
from sentinel.core.holds import Held, HeldKind
from sentinel.core.model import Alert, LastNotified, Notification, Status, Transition
from sentinel.core.text import visible
from sentinel.core.values import age_text, duration_text


class NotificationPlan(Struct, frozen=True, kw_only=True):
    """The parts of a configuration that decide whom to notify of what.

    `personal` are the channels that notify each user about their own jobs.
    """

    cluster: str  # Name of the local cluster.
    policies: Mapping[str, AlertPolicy]  # How long a problem must last, by check.
    channels: Sequence[str]  # Names of all channels.
    personal: Container[str] = ()
    routes: Sequence[Route] = ()  # Routes, in the order of the file.
    inhibit: Sequence[Inhibit] = ()  # Which alerts mute which.
    windows: Sequence[SilenceWindow] = ()  # Silences of the file.
    zone: tzinfo = timezone.utc  # Time zone of the file.
    report: ReportSettings | None = None  # When the weekly report is sent, if it is.
    dry_run: bool = False  # Whether messages only say what would be done.
    setup_place: str = ""  # Where and as whom the commands of sentinel itself are run.
    config: str = ""  # The file that those commands name; empty: they find it.

    def cluster_of(self, check: str) -> str:
        """The cluster in whose name the check's alerts are reported."""
        policy = self.policies.get(check)
        return (policy.cluster if policy else "") or self.cluster


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST_MICROSECOND = 253_402_214_400_000_000  # 9999-12-31 UTC: datetime's range ends one day later


def make_notification(
    alert: Alert, transition: Transition, plan: NotificationPlan, note: str = ""
) -> Notification:
    """The message about a transition. Times are in the reader's time zone."""
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
        since=format_iso(find_first_end(alert) if over else alert.shown_since, plan.zone),
        noticed=format_iso(find_noticed(alert), plan.zone),
        key=transition.id,
        alert=alert.id,
        incident=alert.incident or alert.id,
        details=alert.details if not over else "",
        commands=tuple(name_config(c, plan.config) for c in alert.commands if not over),
        acts=tuple(name_config(c, plan.config) for c in alert.acts if not over),
        labels=alert.labels,
        values=alert.values if not over else {},
        guidance=alert.guidance if not over else NO_GUIDANCE,
        runbook=alert.runbook,
        note=note,
        dry_run=plan.dry_run,
        setup_place=plan.setup_place,
        config=plan.config,
    )


def format_iso(moment: Instant, zone: tzinfo) -> str:
    """ISO 8601 to the second, with the offset of the zone.

    A time beyond the calendar's end becomes its last day. `until: 9999-12-31` in the configuration
    is beyond it in some zones.
    """
    at = _EPOCH + timedelta(microseconds=min(moment.wall, _LAST_MICROSECOND))
    return at.astimezone(zone).isoformat(timespec="seconds")


def due_notifications(
    alert: Alert, heard: Mapping[str, Listener], now: Instant, *, acked: bool = False
) -> dict[str, list[str]]:
    """The channels to notify, by reason (firing, flapping, worse, repeat).

    Empty if the alert does not fire, or if it is good again and only waits for `keep_firing_for`. A
    flapping alert is reported to channels that do not know it, and when it gets worse. It is not
    repeated.
    """
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


def describe_alert(alert: Alert, now: Instant) -> str:
    """Its summary, in one line. How long a training has stood still is told as of now, as the age of its
    alert is, and not as of the last look."""
    summary, quiet = visible(alert.summary), alert.values.get("quiet_seconds")
    age = get_elapsed_s(alert.shown_since, now)
    if not isinstance(quiet, float) or abs(quiet + get_elapsed_s(alert.last, now) - age) > 2:
        return summary
    return advance_age(summary, quiet, age)


def advance_age(text: str, before: float, now: float) -> str:
    """A sentence that says how long something has lasted, in seconds, some time later."""
    return text.replace(f"for {duration_text(before)}", f"for {age_text(now)}", 1)


def describe_hold(held: Held | None, zone: tzinfo) -> str:
    """Why no message is sent now, in words. Empty if messages are sent."""
    if held is None:
        return ""
    until = format_iso(held.until, zone) if held.until else ""
    return {
        HeldKind.SILENCED: f"silenced until {until} by {held.cause}",
        HeldKind.MUTED: f"muted while {held.cause} fires",
        HeldKind.EXPLAINED: f"told with its cause: {held.cause}",
        HeldKind.CHECKS_AT_WORK: f"waits until {held.cause} has run: it may find the cause",
        HeldKind.FIRST_LOOK: "waits for the first look to end",
        HeldKind.SETTLING: "its cause is over; muted until it has been looked at again",
    }[held.kind]
