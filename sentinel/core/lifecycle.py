"""The life of an alert: pending, firing, clearing, over. Pure; every decision is named."""

from collections.abc import Mapping
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import Instant, elapsed
from sentinel.core.model import Alert, Finding, Key, Status, Transition


class Policy(Struct, frozen=True, kw_only=True):
    """How long a trouble must last. Seconds; `blind_after` in runs."""

    kind: str
    for_: float = 0.0
    keep_firing_for: float = 0.0
    blind_after: int = 3
    runbook: str = ""
    labels: Mapping[str, str] = {}


class Step(Struct, frozen=True):
    """What became of an alert: None when there is none, and the rule that decided."""

    alert: Alert | None
    transition: Transition | None
    why: str


def step(
    key: Key, alert: Alert | None, finding: Finding | None, policy: Policy, now: Instant
) -> Step:
    """One observation of one subject; `finding` None when a good run no longer reports it.

    Unknown neither opens nor closes an alert about a subject: only the check itself (the
    empty subject) can be alerted on as unknown, when it stays blind.
    """
    if finding is None:
        return _clear(alert, "gone", "no longer reported", policy, now)
    if finding.status is Status.UNKNOWN and key.subject:
        return Step(alert, None, "cannot tell: nothing changes")
    if finding.status is Status.OK:
        return _clear(alert, "resolved", finding.summary, policy, now)
    seen = _observe(key, alert, finding, policy, now)
    return _worsen(seen, now) if seen.firing else _fire(seen, policy, now)


def repeated(alert: Alert, now: Instant) -> Step:
    """Tell a firing alert again, unchanged."""
    return _tell(alert, "repeat", alert.status, now, "repeat interval passed")


def _observe(
    key: Key, alert: Alert | None, finding: Finding, policy: Policy, now: Instant
) -> Alert:
    before = alert or Alert(
        key=key,
        id=_episode(key, now),
        kind=policy.kind,
        status=finding.status,
        summary=finding.summary,
        since=now,
        last=now,
        runs=0,
    )
    return replace(
        before,
        status=finding.status,
        summary=finding.summary,
        details=finding.details,
        commands=finding.commands,
        values=finding.values,
        labels={**finding.labels, **policy.labels},
        runbook=policy.runbook,
        last=now,
        clear_since=None,
        runs=before.runs + 1,
    )


def _fire(alert: Alert, policy: Policy, now: Instant) -> Step:
    needed = policy.blind_after if not alert.key.subject else 1
    if alert.runs < needed:
        return Step(alert, None, f"blind for {alert.runs} of {needed} runs")
    if elapsed(alert.since, now) < policy.for_:
        return Step(alert, None, "pending: not bad for long enough")
    fired = replace(alert, firing=True, fired=now, severity=alert.status)
    return _tell(fired, "firing", fired.status, now, "bad for long enough")


def _worsen(alert: Alert, now: Instant) -> Step:
    if alert.status.rank <= alert.severity.rank:
        return Step(alert, None, "still firing")
    worse = replace(alert, severity=alert.status)
    return _tell(worse, "worse", worse.status, now, "worse than what was told")


def _clear(alert: Alert | None, reason: str, summary: str, policy: Policy, now: Instant) -> Step:
    if alert is None:
        return Step(None, None, "fine")
    if not alert.firing:
        return Step(None, None, "passed before it fired")
    since = alert.clear_since or now
    if elapsed(since, now) < policy.keep_firing_for:
        return Step(
            replace(alert, clear_since=since, last=now), None, "clear, kept firing for a while"
        )
    told = _tell(
        replace(alert, summary=summary, last=now), reason, Status.OK, now, "clear for long enough"
    )
    return Step(None, told.transition, told.why)


def _tell(alert: Alert, reason: str, status: Status, now: Instant, why: str) -> Step:
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
        since=alert.since,
    )
    return Step(replace(alert, count=count), transition, why)


def _episode(key: Key, since: Instant) -> str:
    parts = (key.cluster, key.check, key.subject, str(since.wall))
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=5).hexdigest()
