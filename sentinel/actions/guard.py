"""Whether sentinel may do what was asked of it. Pure; the first rule that objects decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from sentinel.core.action_limits import Limits
from sentinel.core.actions import ActionRecord, Past, Reading, Situation, Verdict
from sentinel.core.clock import Instant, elapsed
from sentinel.core.hostlist import shown
from sentinel.core.model import ActionRequest
from sentinel.core.text import visible
from sentinel.core.values import Duration, Share, duration_text

HOUR = 3600.0
ALWAYS = frozenset({"slurm", "unresolved", "state"})
"""The rules that no person can set aside: they say that nobody knows what would happen."""

PREPARING = frozenset({"clean_up", "test"})
"""What only makes another action possible; that one need not wait for a cooldown of it."""

SEEN_LATER = 600.0
"""Seconds by which a node that was returned may be seen to be back: a look that came late."""

OTHERS = 600.0
"""Seconds after a return that nobody of this state made: who returned it may go on. Two sentinels
that cannot see each other's intents thus never work at the same time for longer than one change."""


class Case(Struct, frozen=True):
    """All that a verdict rests on."""

    request: ActionRequest
    past: Past
    limits: Limits
    situation: Situation
    now: Instant


def judge(
    request: ActionRequest, past: Past, limits: Limits, situation: Situation, now: Instant
) -> Verdict:
    """The verdict on one request.

    Ages are `core.clock.elapsed`: a wall clock that jumps within one boot changes nothing, and
    a record of the future counts as one of this moment.
    """
    case = Case(request, past, limits, situation, now)
    for name, objection in RULES.items():
        if situation.forced and name not in ALWAYS:
            continue
        why = objection(case)
        if why:
            return Verdict(False, why, name)
    return Verdict(
        True, "forced: caps and switches were set aside" if situation.forced else _room(case)
    )


def trip(situation: Situation, past: Past, now: Instant) -> str:
    """Why the breaker has to open; empty while all is calm."""
    if situation.unwell:
        return f"Slurm is unwell: {situation.unwell}"
    if not situation.nodes:
        return ""  # the request is about no node, and nobody has looked at any
    breaker = situation.breaker
    left = {r.node for r in past.left if r.left and elapsed(r.left, now) < breaker.within}
    most = min(breaker.nodes, _part(breaker.share, situation.nodes))
    if len(left) <= most:
        return ""
    return (
        f"{len(left)} of {situation.nodes} nodes left service within "
        f"{duration_text(breaker.within)} (more than {most} opens the breaker)"
    )


def _disabled(case: Case) -> str:
    if case.situation.enabled:
        return ""
    kind = case.request.action
    return f"{kind} is not switched on (actions: {{{kind}: {{enabled: true}}}})"


def _maintenance(case: Case) -> str:
    if case.situation.maintenance:
        return "maintenance (guard: {maintenance: true} in the configuration)"
    switch = case.past.maintenance
    if switch is None or not switch.left(case.now):
        return ""
    return f"maintenance {_still(switch.left(case.now))}: {switch.why}"


def _breaker(case: Case) -> str:
    switch = case.past.breaker
    if switch and switch.left(case.now):
        return f"the breaker is open {_still(switch.left(case.now))}: {switch.why}"
    return "" if case.situation.unwell else trip(case.situation, case.past, case.now)


def _slurm(case: Case) -> str:
    return trip(case.situation, case.past, case.now) if case.situation.unwell else ""


def _unresolved(case: Case) -> str:
    """Whatever may still happen to the target is waited for, by whomever it was begun."""
    for record in _about(case.past.records, case.request.target):
        if record.outcome.open:
            return (
                f"{record.action} of {record.target} by {visible(record.by)}, begun "
                f"{_ago(record, case.now)}, is {record.outcome.value}: its end is waited for"
            )
    return ""


def _state(case: Case) -> str:
    return case.situation.not_ready


def _suspect(case: Case) -> str:
    """A node that needs the same help again and again is broken: a person has to look."""
    rate, kind = case.limits.per_node, case.request.action
    before = _recent(_alike(case.past.records, kind), case.now, rate.window)
    times = sum(r.outcome.effective for r in _about(before, case.request.target))
    if times < rate.times:
        return ""
    return (
        f"suspect: {kind} {times} times within {Duration(rate.window)} "
        f"(at most {rate}); a person has to look at {case.request.target}"
    )


def _cooldown(case: Case) -> str:
    about = _about(case.past.records, case.request.target)
    tried = (r for r in about if r.outcome.tried and not _prepares(r, case.request))
    recent = _recent(tried, case.now, case.limits.cooldown)
    if not recent:
        return ""
    last = recent[-1]
    return f"cooldown of {case.limits.cooldown}: {last.action} {_ago(last, case.now)}"


def _prepares(record: ActionRecord, request: ActionRequest) -> bool:
    return record.action in PREPARING and record.action != request.action


def _others(case: Case) -> str:
    """A state of its own knows nothing of what another sentinel, or a person, is about to do."""
    if not case.situation.waits or case.request.action not in case.situation.returning:
        return ""
    lately = {r.node for r in returned_by_others(case.past, case.situation, case.now, OTHERS)}
    if not lately:
        return ""
    return (
        f"{shown(lately)}: returned to service within the last {duration_text(OTHERS)}, not by this "
        "sentinel; whoever did it may go on, and the caps hold for all together, so it waits"
    )


def crowded(case: Case) -> str:
    """What the caps say of others and of this hour; `past` without the request's own record."""
    return _others(case) or _per_hour(case) or _share(case)


def _per_hour(case: Case) -> str:
    done, most = _counted(case), case.limits.per_hour
    if len(done) < most:
        return ""
    return f"{len(done)} within the last hour, at most {most}{_by_others(case)}"


def _share(case: Case) -> str:
    """A node without a partition is measured against all nodes."""
    done, share = _counted(case), case.limits.share
    for name, members in case.situation.partitions.items():
        here, most = sum(target in members for target in done), _part(share, len(members))
        if here >= most:
            return (
                f"{here} of {len(members)} nodes of partition {visible(name)} within the last "
                f"hour, at most {most} ({share}){_by_others(case)}"
            )
    most = _part(share, case.situation.nodes)
    if not case.situation.partitions and case.situation.nodes and len(done) >= most:
        return (
            f"{len(done)} of all {case.situation.nodes} nodes within the last hour, at most {most}"
        )
    return ""


RULES: dict[str, Callable[[Case], str]] = {
    "disabled": _disabled,
    "maintenance": _maintenance,
    "breaker": _breaker,
    "slurm": _slurm,
    "unresolved": _unresolved,
    "state": _state,
    "suspect": _suspect,
    "cooldown": _cooldown,
    "others": _others,
    "per_hour": _per_hour,
    "share": _share,
}


def _room(case: Case) -> str:
    return f"{len(_counted(case)) + 1} of {case.limits.per_hour} in this hour"


def returned_by_others(
    past: Past, situation: Situation, now: Instant, window: float = HOUR
) -> list[Reading]:
    """The returns to service within the window that no record of this state explains, one for each
    return that was tried."""
    mine = Counter(
        r.target
        for r in _recent(past.records, now, HOUR + SEEN_LATER)
        if r.action in situation.returning and r.outcome.effective
    )
    found = []
    for reading in past.returned:
        if not reading.returned or elapsed(reading.returned, now) >= HOUR + SEEN_LATER:
            continue
        mine[reading.node] -= 1
        if mine[reading.node] < 0 and elapsed(reading.returned, now) < window:
            found.append(reading)
    return found


def _foreign(case: Case) -> set[str]:
    """Nodes that others returned to service within the hour: seen, or marked by them."""
    if case.request.action not in case.situation.returning:
        return set()
    mine = {r.target for r in _last_hour(case)}
    seen = {r.node for r in returned_by_others(case.past, case.situation, case.now)}
    return (seen | case.situation.marked) - mine - {case.request.target}


def _by_others(case: Case) -> str:
    foreign = _foreign(case)
    return f"; {len(foreign)} of them not by this sentinel: {shown(foreign)}" if foreign else ""


def _counted(case: Case) -> list[str]:
    """The targets of the last hour, those of others too."""
    return [*(r.target for r in _last_hour(case)), *sorted(_foreign(case))]


def _last_hour(case: Case) -> list[ActionRecord]:
    alike = (r for r in _alike(case.past.records, case.request.action) if r.outcome.tried)
    return _recent(alike, case.now, HOUR)


def _alike(records: Iterable[ActionRecord], action: str) -> list[ActionRecord]:
    return [r for r in records if r.action == action]


def _about(records: Iterable[ActionRecord], target: str) -> list[ActionRecord]:
    return [r for r in records if r.target == target]


def _recent(records: Iterable[ActionRecord], now: Instant, seconds: float) -> list[ActionRecord]:
    return [r for r in records if elapsed(r.at, now) < seconds]


def _part(share: Share, whole: int) -> int:
    """A share of a small partition is at least one."""
    return max(1, int(whole * share / 100))


def _still(seconds: float) -> str:
    return (
        "until it is switched off" if seconds == float("inf") else f"for {duration_text(seconds)}"
    )


def _ago(record: ActionRecord, now: Instant) -> str:
    return f"{duration_text(elapsed(record.at, now))} ago"


def newest(records: Sequence[ActionRecord], action: str, target: str) -> ActionRecord | None:
    """The last record about that wish; `records` are in the order in which they were begun."""
    fitting = _alike(_about(records, target), action)
    return fitting[-1] if fitting else None
