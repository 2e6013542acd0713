"""The states of an alert: pending, firing, clearing, flapping, over. Pure. Each step names its
rule."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.deaths import merge_deaths
from sentinel.core.digests import blake2b
from sentinel.core.model import Alert, Finding, Key, Status, Transition, Value


class FlapPolicy(Struct, frozen=True, kw_only=True):
    """An alert flaps after `changes` changes within `window` seconds. It stops when at most a third
    of them are left in the window. 0 changes turn this off."""

    changes: int = 6
    window: float = 3600.0


def record_change(alert: Alert, now: Instant, policy: FlapPolicy) -> Alert:
    """The alert after one more firing or end."""
    return replace(alert, changes=(*recent_changes(alert, now, policy), now.wall))


def recent_changes(alert: Alert, now: Instant, policy: FlapPolicy) -> tuple[int, ...]:
    """The changes within the window.

    Changes in the future count too, if they are not farther away than the window: the clock was set
    back. Changes farther in the future do not count. Otherwise a clock that was a year ahead would
    silence the alert for a year.
    """
    window = int(policy.window * SECOND)
    return tuple(at for at in alert.changes if abs(now.wall - at) < window)[-100:]


def starts_flapping(alert: Alert, now: Instant, policy: FlapPolicy) -> bool:
    """Whether an alert that does not flap begins to flap."""
    return 0 < policy.changes <= len(recent_changes(alert, now, policy))


def ends_flapping(alert: Alert, now: Instant, policy: FlapPolicy) -> bool:
    """Whether a flapping alert has settled, good or bad. True at once if flapping is turned off."""
    return not policy.changes or len(recent_changes(alert, now, policy)) <= policy.changes // 3


EARLY_SHARE = 0.1
"""A problem may count as lasting this share of the check interval too early. Passes are never exact
to the second (engine.tick does the same for `every`)."""


class AlertPolicy(Struct, frozen=True, kw_only=True):
    """How long a problem must last before it is reported. Times are in seconds, `blind_after` in
    runs.

    If `for_` is None, the finding decides (`Finding.patience`). `cluster` is the cluster that the
    check asks, empty for the local one. `host` is the host that runs the check. With `tells_host`,
    messages name it, because the finding is true of that host.
    """

    kind: str  # Kind of the check.
    for_: float | None = None
    keep_firing_for: float = 0.0  # Seconds of good results before the end is reported.
    blind_after: int = 3
    runbook: str = ""  # Page with instructions.
    labels: Mapping[str, str] = {}  # Labels that are added to every alert of the check.
    cluster: str = ""
    host: str = ""
    tells_host: bool = False
    flap: FlapPolicy = FlapPolicy()  # When an alert counts as flapping.


class AlertStep(Struct, frozen=True):
    """The alert after a step (None: there is none), and the rule that decided."""

    alert: Alert | None  # The alert afterwards.
    transition: Transition | None  # What people may be notified of. None: nothing.
    why: str  # The name of the rule that decided.


def advance_alert(
    key: Key,
    alert: Alert | None,
    finding: Finding | None,
    policy: AlertPolicy,
    now: Instant,
    origin: str = "",
) -> AlertStep:
    """Apply one observation of one subject. `finding` is None if a successful run no longer reports
    the subject.

    `origin` is used for the id of a new alert, in place of the time when it began. The status
    unknown neither opens nor closes an alert about a subject. Only the check itself (the empty
    subject) can fire as unknown, if it stays unable to see.
    """
    raw = _undamped_step(key, alert, finding, policy, now, origin)
    if alert is not None and alert.flapping:
        return _damped_step(alert, raw, policy, now)
    return _count_changes(alert, raw, policy, now)


def announce_again(alert: Alert, reason: str, now: Instant) -> tuple[Alert, Transition]:
    """A transition for a firing alert, for a channel that has not been notified yet, or is due for
    a repeat."""
    return _notify_transition(alert, reason, alert.status, now)


def remaining_patience(alert: Alert, finding: Finding, policy: AlertPolicy, now: Instant) -> float:
    """Seconds that a problem must still last before it is reported.

    An explicit `for` counts from the first sight of any problem. Otherwise the finding's own
    patience counts from the time when the status became as bad as it is now.
    """
    if policy.for_ is not None:
        return policy.for_ - get_elapsed_s(alert.since, now)
    return finding.patience - get_elapsed_s(alert.rose or alert.since, now)


def _look_slack(before: Alert | None, limit: float, now: Instant) -> float:
    """Seconds by which the wait may fall short of `limit`. The next run would miss the limit by
    more."""
    between = get_elapsed_s(before.last, now) if before is not None and not before.over else 0.0
    return EARLY_SHARE * min(between, limit)


def _undamped_step(
    key: Key,
    alert: Alert | None,
    finding: Finding | None,
    policy: AlertPolicy,
    now: Instant,
    origin: str,
) -> AlertStep:
    if finding is None:
        return _clear_alert(alert, "gone", "its check no longer finds it", policy, now)
    if finding.status is Status.UNKNOWN and key.subject:
        return AlertStep(alert, None, "cannot tell: nothing changes")
    if finding.status is Status.OK:
        return _clear_alert(
            alert, "resolved", _recovery_summary(key, alert, finding.summary), policy, now
        )
    begun = _new_alert(key, alert, finding, policy, now, origin)
    seen = _update_alert(begun if alert is None or alert.over else alert, finding, policy, now)
    wanted = finding.patience if policy.for_ is None else policy.for_
    waits = remaining_patience(seen, finding, policy, now) > _look_slack(alert, wanted, now)
    return (
        _worsen_alert(seen, policy, waits, now)
        if seen.firing
        else _fire_alert(seen, policy, waits, now)
    )


def _recovery_summary(key: Key, alert: Alert | None, summary: str) -> str:
    """The text for an end. "sees again" is added only if people were notified that the check could
    not see."""
    told = alert is not None and alert.told and not key.subject
    return f"sees again: {summary}" if told else summary


def _count_changes(
    before: Alert | None, raw: AlertStep, policy: AlertPolicy, now: Instant
) -> AlertStep:
    """Count firings and ends. If there are too many of them, report flapping instead."""
    if raw.transition is None or raw.transition.reason == "worse":
        return raw
    if raw.alert is None:
        return AlertStep(_end_alert(before, policy, now), raw.transition, raw.why)
    alert = record_change(raw.alert, now, policy.flap)
    if not starts_flapping(alert, now, policy.flap):
        return AlertStep(alert, raw.transition, raw.why)
    return AlertStep(
        replace(alert, flapping=True),
        replace(raw.transition, reason="flapping"),
        "changes too often",
    )


def _keep_ended(alert: Alert, policy: AlertPolicy, now: Instant) -> Alert | None:
    """The ended alert, while its changes may still count as flapping. Otherwise None."""
    left = policy.flap.changes and recent_changes(alert, now, policy.flap)
    return replace(alert, over=True) if left else None


def _end_alert(alert: Alert | None, policy: AlertPolicy, now: Instant) -> Alert | None:
    if alert is None or not policy.flap.changes:
        return None
    done = replace(alert, over=True, firing=False, clear_since=None, on_hold=None, last=now)
    return record_change(done, now, policy.flap)


def _damped_step(alert: Alert, raw: AlertStep, policy: AlertPolicy, now: Instant) -> AlertStep:
    """Count the changes of a flapping alert without reporting them.

    This ends when few changes are left, and no problem is pending.
    """
    good = replace(alert, firing=False, clear_since=None, runs=0, last=now)
    quiet = raw.alert if raw.alert and not raw.alert.over else good
    if raw.transition is not None and raw.transition.reason != "worse":
        quiet = record_change(replace(quiet, count=alert.count), now, policy.flap)
    pending = quiet.runs > 0 and not quiet.firing
    if pending or not ends_flapping(quiet, now, policy.flap):
        return AlertStep(quiet, None, "flapping: not told")
    return _settle_alert(replace(quiet, flapping=False), raw, policy, now)


def _settle_alert(quiet: Alert, raw: AlertStep, policy: AlertPolicy, now: Instant) -> AlertStep:
    if quiet.firing:
        settled, transition = _notify_transition(quiet, "settled", quiet.status, now)
        return AlertStep(settled, transition, "settled, and still bad")
    summary = raw.transition.summary if raw.transition else "good, and no change for a while"
    settled, transition = _notify_transition(
        replace(quiet, summary=summary), "settled", Status.OK, now
    )
    return AlertStep(_end_alert(settled, policy, now), transition, "settled, and good")


def _update_alert(before: Alert, finding: Finding, policy: AlertPolicy, now: Instant) -> Alert:
    return replace(
        before,
        since=before.since if before.runs else now,
        rose=_rise_time(before, finding, now),
        began=_beginning_time(before, finding, now),
        status=finding.status,
        summary=finding.summary,
        details=finding.details,
        commands=tuple(command.render() for command in finding.commands),
        acts=tuple(command.render() for command in finding.acts),
        values={**_host_value(before.key, finding, policy), **finding.values},
        guidance=finding.guidance,
        tell_once=finding.tell_once,
        owner_muted=finding.owner_muted,
        deaths=merge_deaths(before.deaths, finding.deaths, before.last_told),
        unseen={name: before.unseen.get(name, 0) + 1 for name in finding.unseen},
        labels={**finding.labels, **policy.labels},
        runbook=policy.runbook,
        last=now,
        clear_since=None,
        runs=before.runs + 1,
    )


def _host_value(key: Key, finding: Finding, policy: AlertPolicy) -> Mapping[str, Value]:
    """The host that ran the check, as a value. It is no label, because labels identify an alert at
    Alertmanager, and a chain moves from node to node."""
    is_told = policy.tells_host or not key.subject
    return {"host": policy.host} if policy.host and is_told and "node" not in finding.labels else {}


def _rise_time(before: Alert, finding: Finding, now: Instant) -> Instant:
    """When the status became as bad as it is now. Only a worse status starts this time again."""
    risen = not before.runs or finding.status.rank > before.status.rank
    return now if risen else before.rose or before.since


def _beginning_time(before: Alert, finding: Finding, now: Instant) -> Instant | None:
    if finding.began is None:
        return before.began
    return Instant(wall=min(finding.began * SECOND, now.wall))


def _new_alert(
    key: Key,
    earlier: Alert | None,
    finding: Finding,
    policy: AlertPolicy,
    now: Instant,
    origin: str,
) -> Alert:
    return Alert(
        key=key,
        id=_episode_id(key, origin or str(now.wall)),
        kind=policy.kind,
        status=finding.status,
        summary=finding.summary,
        since=now,
        last=now,
        runs=0,
        changes=earlier.changes if earlier else (),
        deaths=earlier.deaths if earlier else (),
    )


def _fire_alert(alert: Alert, policy: AlertPolicy, waits: bool, now: Instant) -> AlertStep:
    needed = policy.blind_after if not alert.key.subject else 1
    if alert.runs < needed:
        return AlertStep(alert, None, f"blind for {alert.runs} of {needed} runs")
    if waits:
        return AlertStep(alert, None, "pending: it has not been bad for long enough")
    fired = replace(alert, firing=True, fired=now, severity=alert.status)
    return AlertStep(*_notify_transition(fired, "firing", fired.status, now), "bad for long enough")


def _worsen_alert(alert: Alert, policy: AlertPolicy, waits: bool, now: Instant) -> AlertStep:
    """Apply a worse status to a firing alert. An explicit `for` is already over. A finding's own
    patience starts again for each status."""
    if alert.status.rank <= alert.severity.rank:
        return AlertStep(alert, None, "still firing")
    if waits and policy.for_ is None:
        return AlertStep(alert, None, "pending: it has not been worse for long enough")
    worse = replace(alert, severity=alert.status)
    return AlertStep(
        *_notify_transition(worse, "worse", worse.status, now), "worse than what was told"
    )


def _clear_alert(
    alert: Alert | None, reason: str, summary: str, policy: AlertPolicy, now: Instant
) -> AlertStep:
    if alert is None:
        return AlertStep(None, None, "fine")
    if alert.over:
        return AlertStep(_keep_ended(alert, policy, now), None, "over")
    if not alert.firing:
        return AlertStep(_keep_ended(alert, policy, now), None, "passed before it fired")
    since, limit = alert.clear_since or now, policy.keep_firing_for
    if limit - get_elapsed_s(since, now) > _look_slack(alert, limit, now):
        return AlertStep(
            replace(alert, clear_since=since, last=now), None, "clear, kept firing for a while"
        )
    ended = replace(alert, summary=summary, last=now)
    return AlertStep(
        None, _notify_transition(ended, reason, Status.OK, now)[1], "clear for long enough"
    )


def _notify_transition(
    alert: Alert, reason: str, status: Status, now: Instant
) -> tuple[Alert, Transition]:
    count = alert.count + 1
    transition = Transition(
        id=f"{alert.id}-{count}",
        alert=alert.id,
        key=alert.key,
        kind=alert.kind,
        reason=reason,
        status=status,
        severity=alert.severity,
        summary=alert.summary,
        at=now,
        since=alert.shown_since,
    )
    return replace(alert, count=count), transition


def _episode_id(key: Key, origin: str) -> str:
    parts = (key.cluster, key.check, key.subject, origin)
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=5).hexdigest()
