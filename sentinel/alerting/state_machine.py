"""The life of an alert: pending, firing, clearing, flapping, over. Pure; decisions are named."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.digests import blake2b
from sentinel.core.model import Alert, Finding, Key, Status, Transition


class FlapPolicy(Struct, frozen=True, kw_only=True):
    """Flapping from `changes` changes within `window` seconds on, until at most a third of them
    are left in it. 0 changes: never."""

    changes: int = 6
    window: float = 3600.0


def record_change(alert: Alert, now: Instant, policy: FlapPolicy) -> Alert:
    """The alert after one more firing or end."""
    return replace(alert, changes=(*recent_changes(alert, now, policy), now.wall))


def recent_changes(alert: Alert, now: Instant, policy: FlapPolicy) -> tuple[int, ...]:
    """The changes within the window. Those of a future that a clock jump has undone count too, if
    it is no farther away: else a clock that was a year ahead would silence the alert for a year."""
    window = int(policy.window * SECOND)
    return tuple(at for at in alert.changes if abs(now.wall - at) < window)[-100:]


def starts_flapping(alert: Alert, now: Instant, policy: FlapPolicy) -> bool:
    """Whether one that does not flap begins to."""
    return 0 < policy.changes <= len(recent_changes(alert, now, policy))


def ends_flapping(alert: Alert, now: Instant, policy: FlapPolicy) -> bool:
    """Whether one that flaps has settled, one way or the other: at once where nothing is to flap
    any more."""
    return not policy.changes or len(recent_changes(alert, now, policy)) <= policy.changes // 3


EARLY_SHARE = 0.1
"""Part of the time between two looks by which something may be taken to have lasted: they come as
often as configured, but never to the second (engine.tick has the same for `every`)."""


class AlertPolicy(Struct, frozen=True, kw_only=True):
    """How long a trouble must last. Seconds; `blind_after` in runs. `for_` None: as long as the
    finding itself asks for (`Finding.patience`). `cluster`: the one that the check asks; empty: the
    one at hand. `before`: what stands before the commands that people are told, so that they ask it."""

    kind: str
    for_: float | None = None
    keep_firing_for: float = 0.0
    blind_after: int = 3
    runbook: str = ""
    labels: Mapping[str, str] = {}
    cluster: str = ""
    before: str = ""
    flap: FlapPolicy = FlapPolicy()


class AlertStep(Struct, frozen=True):
    """What became of an alert: None when there is none, and the rule that decided."""

    alert: Alert | None
    transition: Transition | None
    why: str


def advance_alert(
    key: Key,
    alert: Alert | None,
    finding: Finding | None,
    policy: AlertPolicy,
    now: Instant,
    origin: str = "",
) -> AlertStep:
    """One observation of one subject; `finding` None when a good run no longer reports it.
    `origin` names a new episode in place of the moment at which it began.

    Unknown neither opens nor closes an alert about a subject: only the check itself (the
    empty subject) can be alerted on as unknown, when it stays blind.
    """
    raw = _undamped_step(key, alert, finding, policy, now, origin)
    if alert is not None and alert.flapping:
        return _damped_step(alert, raw, policy, now)
    return _count_changes(alert, raw, policy, now)


def announce_again(alert: Alert, reason: str, now: Instant) -> tuple[Alert, Transition]:
    """A firing alert told to somebody who does not know, or not any more (repeat)."""
    return _notify_transition(alert, reason, alert.status, now)


def remaining_patience(alert: Alert, finding: Finding, policy: AlertPolicy, now: Instant) -> float:
    """Seconds that something bad has still to last before it is told.

    An explicit `for` counts from the first sight of any trouble; without one a finding's own
    patience counts from when it became as bad as it is.
    """
    if policy.for_ is not None:
        return policy.for_ - get_elapsed_s(alert.since, now)
    return finding.patience - get_elapsed_s(alert.rose or alert.since, now)


def _look_slack(before: Alert | None, limit: float, now: Instant) -> float:
    """Seconds by which `limit` may be undercut: a look later would be further away from it."""
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
        return _clear_alert(alert, "gone", "no longer reported", policy, now)
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
    """A check is said to see again only where somebody was told that it does not."""
    told = alert is not None and alert.told and not key.subject
    return f"sees again: {summary}" if told else summary


def _count_changes(
    before: Alert | None, raw: AlertStep, policy: AlertPolicy, now: Instant
) -> AlertStep:
    """Remember firings and ends; too many of them are told as flapping instead."""
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
    """What has ended, while its changes may still add up to flapping."""
    left = policy.flap.changes and recent_changes(alert, now, policy.flap)
    return replace(alert, over=True) if left else None


def _end_alert(alert: Alert | None, policy: AlertPolicy, now: Instant) -> Alert | None:
    if alert is None or not policy.flap.changes:
        return None
    done = replace(alert, over=True, firing=False, clear_since=None, held="", last=now)
    return record_change(done, now, policy.flap)


def _damped_step(alert: Alert, raw: AlertStep, policy: AlertPolicy, now: Instant) -> AlertStep:
    """Changes are counted and not told, until there are few of them again, and it is known whether what
    is bad just now lasts."""
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
        commands=tuple(f"{policy.before}{command}" for command in finding.commands),
        values=finding.values,
        tell_once=finding.tell_once,
        labels={**finding.labels, **policy.labels},
        runbook=policy.runbook,
        last=now,
        clear_since=None,
        runs=before.runs + 1,
    )


def _rise_time(before: Alert, finding: Finding, now: Instant) -> Instant:
    """What was worse before and what was as bad go on; only a rise begins anew."""
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
    )


def _fire_alert(alert: Alert, policy: AlertPolicy, waits: bool, now: Instant) -> AlertStep:
    needed = policy.blind_after if not alert.key.subject else 1
    if alert.runs < needed:
        return AlertStep(alert, None, f"blind for {alert.runs} of {needed} runs")
    if waits:
        return AlertStep(alert, None, "pending: not bad for long enough")
    fired = replace(alert, firing=True, fired=now, severity=alert.status)
    return AlertStep(*_notify_transition(fired, "firing", fired.status, now), "bad for long enough")


def _worsen_alert(alert: Alert, policy: AlertPolicy, waits: bool, now: Instant) -> AlertStep:
    """What fires already has lasted for an explicit `for`; a kind's own patience is for each."""
    if alert.status.rank <= alert.severity.rank:
        return AlertStep(alert, None, "still firing")
    if waits and policy.for_ is None:
        return AlertStep(alert, None, "pending: not worse for long enough")
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
