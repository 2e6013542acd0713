"""The life of an alert: pending, firing, clearing, flapping, over. Pure; decisions are named."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.digests import blake2b
from sentinel.core.model import Alert, Finding, Key, Status, Transition


class FlapPolicy(Struct, frozen=True, kw_only=True):
    """Flapping from `changes` changes within `window` seconds on, until at most a third of them
    are left in it. 0 changes: never."""

    changes: int = 6
    window: float = 3600.0


def changed(alert: Alert, now: Instant, policy: FlapPolicy) -> Alert:
    """The alert after one more firing or end."""
    return replace(alert, changes=(*recent(alert, now, policy), now.wall))


def recent(alert: Alert, now: Instant, policy: FlapPolicy) -> tuple[int, ...]:
    """The changes within the window. Those of a future that a clock jump has undone count too, if
    it is no farther away: else a clock that was a year ahead would silence the alert for a year."""
    window = int(policy.window * SECOND)
    return tuple(at for at in alert.changes if abs(now.wall - at) < window)[-100:]


def starts(alert: Alert, now: Instant, policy: FlapPolicy) -> bool:
    """Whether one that does not flap begins to."""
    return 0 < policy.changes <= len(recent(alert, now, policy))


def ends(alert: Alert, now: Instant, policy: FlapPolicy) -> bool:
    """Whether one that flaps has settled, one way or the other: at once where nothing is to flap
    any more."""
    return not policy.changes or len(recent(alert, now, policy)) <= policy.changes // 3


EARLY = 0.1
"""Part of the time between two looks by which something may be taken to have lasted: they come as
often as configured, but never to the second (engine.tick has the same for `every`)."""


class Policy(Struct, frozen=True, kw_only=True):
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


class Step(Struct, frozen=True):
    """What became of an alert: None when there is none, and the rule that decided."""

    alert: Alert | None
    transition: Transition | None
    why: str


def step(
    key: Key,
    alert: Alert | None,
    finding: Finding | None,
    policy: Policy,
    now: Instant,
    origin: str = "",
) -> Step:
    """One observation of one subject; `finding` None when a good run no longer reports it.
    `origin` names a new episode in place of the moment at which it began.

    Unknown neither opens nor closes an alert about a subject: only the check itself (the
    empty subject) can be alerted on as unknown, when it stays blind.
    """
    raw = _raw(key, alert, finding, policy, now, origin)
    if alert is not None and alert.flapping:
        return _damped(alert, raw, policy, now)
    return _counted(alert, raw, policy, now)


def announced(alert: Alert, reason: str, now: Instant) -> tuple[Alert, Transition]:
    """A firing alert told to somebody who does not know, or not any more (repeat)."""
    return _told(alert, reason, alert.status, now)


def remaining(alert: Alert, finding: Finding, policy: Policy, now: Instant) -> float:
    """Seconds that something bad has still to last before it is told.

    An explicit `for` counts from the first sight of any trouble; without one a finding's own
    patience counts from when it became as bad as it is.
    """
    if policy.for_ is not None:
        return policy.for_ - elapsed(alert.since, now)
    return finding.patience - elapsed(alert.rose or alert.since, now)


def _slack(before: Alert | None, limit: float, now: Instant) -> float:
    """Seconds by which `limit` may be undercut: a look later would be further away from it."""
    between = elapsed(before.last, now) if before is not None and not before.over else 0.0
    return EARLY * min(between, limit)


def _raw(
    key: Key,
    alert: Alert | None,
    finding: Finding | None,
    policy: Policy,
    now: Instant,
    origin: str,
) -> Step:
    if finding is None:
        return _clear(alert, "gone", "no longer reported", policy, now)
    if finding.status is Status.UNKNOWN and key.subject:
        return Step(alert, None, "cannot tell: nothing changes")
    if finding.status is Status.OK:
        return _clear(alert, "resolved", _good(key, alert, finding.summary), policy, now)
    begun = _begun(key, alert, finding, policy, now, origin)
    seen = _observe(begun if alert is None or alert.over else alert, finding, policy, now)
    wanted = finding.patience if policy.for_ is None else policy.for_
    waits = remaining(seen, finding, policy, now) > _slack(alert, wanted, now)
    return _worsen(seen, policy, waits, now) if seen.firing else _fire(seen, policy, waits, now)


def _good(key: Key, alert: Alert | None, summary: str) -> str:
    """A check is said to see again only where somebody was told that it does not."""
    told = alert is not None and alert.told and not key.subject
    return f"sees again: {summary}" if told else summary


def _counted(before: Alert | None, raw: Step, policy: Policy, now: Instant) -> Step:
    """Remember firings and ends; too many of them are told as flapping instead."""
    if raw.transition is None or raw.transition.reason == "worse":
        return raw
    if raw.alert is None:
        return Step(_over(before, policy, now), raw.transition, raw.why)
    alert = changed(raw.alert, now, policy.flap)
    if not starts(alert, now, policy.flap):
        return Step(alert, raw.transition, raw.why)
    return Step(
        replace(alert, flapping=True),
        replace(raw.transition, reason="flapping"),
        "changes too often",
    )


def _kept(alert: Alert, policy: Policy, now: Instant) -> Alert | None:
    """What has ended, while its changes may still add up to flapping."""
    left = policy.flap.changes and recent(alert, now, policy.flap)
    return replace(alert, over=True) if left else None


def _over(alert: Alert | None, policy: Policy, now: Instant) -> Alert | None:
    if alert is None or not policy.flap.changes:
        return None
    done = replace(alert, over=True, firing=False, clear_since=None, held="", last=now)
    return changed(done, now, policy.flap)


def _damped(alert: Alert, raw: Step, policy: Policy, now: Instant) -> Step:
    """Changes are counted and not told, until there are few of them again, and it is known whether what
    is bad just now lasts."""
    good = replace(alert, firing=False, clear_since=None, runs=0, last=now)
    quiet = raw.alert if raw.alert and not raw.alert.over else good
    if raw.transition is not None and raw.transition.reason != "worse":
        quiet = changed(replace(quiet, count=alert.count), now, policy.flap)
    pending = quiet.runs > 0 and not quiet.firing
    if pending or not ends(quiet, now, policy.flap):
        return Step(quiet, None, "flapping: not told")
    return _settled(replace(quiet, flapping=False), raw, policy, now)


def _settled(quiet: Alert, raw: Step, policy: Policy, now: Instant) -> Step:
    if quiet.firing:
        settled, transition = _told(quiet, "settled", quiet.status, now)
        return Step(settled, transition, "settled, and still bad")
    summary = raw.transition.summary if raw.transition else "good, and no change for a while"
    settled, transition = _told(replace(quiet, summary=summary), "settled", Status.OK, now)
    return Step(_over(settled, policy, now), transition, "settled, and good")


def _observe(before: Alert, finding: Finding, policy: Policy, now: Instant) -> Alert:
    return replace(
        before,
        since=before.since if before.runs else now,
        rose=_rose(before, finding, now),
        began=_beginning(before, finding, now),
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


def _rose(before: Alert, finding: Finding, now: Instant) -> Instant:
    """What was worse before and what was as bad go on; only a rise begins anew."""
    risen = not before.runs or finding.status.rank > before.status.rank
    return now if risen else before.rose or before.since


def _beginning(before: Alert, finding: Finding, now: Instant) -> Instant | None:
    if finding.began is None:
        return before.began
    return Instant(wall=min(finding.began * SECOND, now.wall))


def _begun(
    key: Key,
    earlier: Alert | None,
    finding: Finding,
    policy: Policy,
    now: Instant,
    origin: str,
) -> Alert:
    return Alert(
        key=key,
        id=_episode(key, origin or str(now.wall)),
        kind=policy.kind,
        status=finding.status,
        summary=finding.summary,
        since=now,
        last=now,
        runs=0,
        changes=earlier.changes if earlier else (),
    )


def _fire(alert: Alert, policy: Policy, waits: bool, now: Instant) -> Step:
    needed = policy.blind_after if not alert.key.subject else 1
    if alert.runs < needed:
        return Step(alert, None, f"blind for {alert.runs} of {needed} runs")
    if waits:
        return Step(alert, None, "pending: not bad for long enough")
    fired = replace(alert, firing=True, fired=now, severity=alert.status)
    return Step(*_told(fired, "firing", fired.status, now), "bad for long enough")


def _worsen(alert: Alert, policy: Policy, waits: bool, now: Instant) -> Step:
    """What fires already has lasted for an explicit `for`; a kind's own patience is for each."""
    if alert.status.rank <= alert.severity.rank:
        return Step(alert, None, "still firing")
    if waits and policy.for_ is None:
        return Step(alert, None, "pending: not worse for long enough")
    worse = replace(alert, severity=alert.status)
    return Step(*_told(worse, "worse", worse.status, now), "worse than what was told")


def _clear(alert: Alert | None, reason: str, summary: str, policy: Policy, now: Instant) -> Step:
    if alert is None:
        return Step(None, None, "fine")
    if alert.over:
        return Step(_kept(alert, policy, now), None, "over")
    if not alert.firing:
        return Step(_kept(alert, policy, now), None, "passed before it fired")
    since, limit = alert.clear_since or now, policy.keep_firing_for
    if limit - elapsed(since, now) > _slack(alert, limit, now):
        return Step(
            replace(alert, clear_since=since, last=now), None, "clear, kept firing for a while"
        )
    ended = replace(alert, summary=summary, last=now)
    return Step(None, _told(ended, reason, Status.OK, now)[1], "clear for long enough")


def _told(alert: Alert, reason: str, status: Status, now: Instant) -> tuple[Alert, Transition]:
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
        since=alert.beginning,
    )
    return replace(alert, count=count), transition


def _episode(key: Key, origin: str) -> str:
    parts = (key.cluster, key.check, key.subject, origin)
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=5).hexdigest()
