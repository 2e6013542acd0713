"""Decides whether sentinel may carry out a request. Pure. The first rule that forbids it decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from sentinel.core.action_limits import Limits
from sentinel.core.actions import ActionHistory, ActionRecord, GuardVerdict, NodeReading, Situation
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.hostlist import fold_for_people
from sentinel.core.model import ActionRequest
from sentinel.core.text import visible
from sentinel.core.values import Duration, Share, duration_text

HOUR_S = 3600.0
UNFORCEABLE_RULES = frozenset({"slurm", "unresolved", "state"})
"""The rules that no person can set aside, because without them nobody knows what would happen."""

PREPARING_ACTIONS = frozenset({"clean_up", "test"})
"""Actions that only make another action possible. That one need not wait for their cooldown."""

LATE_SIGHTING_S = 600.0
"""A node that was returned to service may be seen this many seconds later, if an observation came
late."""

OTHERS_WAIT_S = 600.0
"""Seconds to wait after somebody else returned a node to service, because that person or sentinel
may continue. So two sentinels that cannot see each other's intents never work at the same time for
longer than one change."""


class GuardCase(Struct, frozen=True):
    """Everything that a verdict depends on."""

    request: ActionRequest  # The requested action.
    past: ActionHistory  # The actions before it.
    limits: Limits  # Limits of the action.
    situation: Situation  # What is observed now.
    now: Instant  # When it is judged.


def judge_request(
    request: ActionRequest, past: ActionHistory, limits: Limits, situation: Situation, now: Instant
) -> GuardVerdict:
    """The verdict about one request.

    Ages come from `core.clock.get_elapsed_s`. So a jump of the wall clock within one boot changes
    nothing, and a record from the future counts as one from now.
    """
    case = GuardCase(request, past, limits, situation, now)
    for name, objection in GUARD_RULES.items():
        if situation.forced and name not in UNFORCEABLE_RULES:
            continue
        why = objection(case)
        if why:
            return GuardVerdict(False, why, name)
    return GuardVerdict(
        True,
        "forced: caps and switches were set aside" if situation.forced else _describe_room(case),
    )


def explain_breaker_trip(situation: Situation, past: ActionHistory, now: Instant) -> str:
    """Why the breaker has to open. Empty if it need not."""
    if situation.unwell:
        return f"Slurm is unwell: {situation.unwell}"
    if not situation.nodes:
        return ""  # the request is not about a node, or no node was read
    breaker = situation.breaker
    left = {r.node for r in past.left if r.left and get_elapsed_s(r.left, now) < breaker.within}
    most = min(breaker.nodes, _count_share(breaker.share, situation.nodes))
    if len(left) <= most:
        return ""
    return (
        f"{len(left)} of {situation.nodes} nodes left service within "
        f"{duration_text(breaker.within)} (more than {most} opens the breaker)"
    )


def _explain_disabled(case: GuardCase) -> str:
    if case.situation.enabled:
        return ""
    kind = case.request.action
    return f"{kind} is not switched on (actions: {{{kind}: {{enabled: true}}}})"


def _explain_maintenance(case: GuardCase) -> str:
    if case.situation.maintenance:
        return "maintenance (guard: {maintenance: true} in the configuration)"
    switch = case.past.maintenance
    if switch is None or not switch.get_seconds_left(case.now):
        return ""
    return f"maintenance {_describe_time_left(switch.get_seconds_left(case.now))}: {switch.why}"


def _explain_open_breaker(case: GuardCase) -> str:
    switch = case.past.breaker
    if switch and switch.get_seconds_left(case.now):
        return f"the breaker is open {_describe_time_left(switch.get_seconds_left(case.now))}: {switch.why}"
    return (
        "" if case.situation.unwell else explain_breaker_trip(case.situation, case.past, case.now)
    )


def _explain_unwell_slurm(case: GuardCase) -> str:
    return (
        explain_breaker_trip(case.situation, case.past, case.now) if case.situation.unwell else ""
    )


def _explain_unresolved(case: GuardCase) -> str:
    """Why an action that may still happen to the target forbids another one, whoever has begun it.
    Empty if there is none."""
    for record in _filter_by_target(case.past.records, case.request.target):
        if record.outcome.is_open:
            return (
                f"{record.action} of {record.target} by {visible(record.by)}, begun "
                f"{_describe_record_age(record, case.now)}, is {record.outcome.value}: its end is waited for"
            )
    return ""


def _explain_not_ready(case: GuardCase) -> str:
    return case.situation.not_ready


def _explain_suspect(case: GuardCase) -> str:
    """Why the target is suspect: it needed the same action too often, so a person has to look at
    it. Empty if it is not."""
    rate, kind = case.limits.per_node, case.request.action
    before = _filter_recent(_filter_by_action(case.past.records, kind), case.now, rate.window)
    times = sum(r.outcome.has_effect for r in _filter_by_target(before, case.request.target))
    if times < rate.times:
        return ""
    return (
        f"suspect: {kind} {times} times within {Duration(rate.window)} "
        f"(at most {rate}); a person has to look at {case.request.target}"
    )


def _explain_cooldown(case: GuardCase) -> str:
    about = _filter_by_target(case.past.records, case.request.target)
    tried = (r for r in about if r.outcome.is_attempted and not _is_preparing(r, case.request))
    recent = _filter_recent(tried, case.now, case.limits.cooldown)
    if not recent:
        return ""
    last = recent[-1]
    return (
        f"cooldown of {case.limits.cooldown}: {last.action} {_describe_record_age(last, case.now)}"
    )


def _is_preparing(record: ActionRecord, request: ActionRequest) -> bool:
    return record.action in PREPARING_ACTIONS and record.action != request.action


def _explain_other_returns(case: GuardCase) -> str:
    """Why a node that somebody else returned to service forbids the request. This state does not
    know what another sentinel, or a person, is about to do. Empty if there is none."""
    if not case.situation.waits or case.request.action not in case.situation.returning:
        return ""
    lately = {
        r.node for r in list_foreign_returns(case.past, case.situation, case.now, OTHERS_WAIT_S)
    }
    if not lately:
        return ""
    return (
        f"{fold_for_people(lately)}: returned to service within the last {duration_text(OTHERS_WAIT_S)}, not by this "
        "sentinel; whoever did it may go on, and the caps hold for all together, so it waits"
    )


def explain_full_caps(case: GuardCase) -> str:
    """Why the caps forbid the request: returns by others, the cap of this hour, or the share. Empty
    if they do not. `case.past` is without the request's own record."""
    return _explain_other_returns(case) or _explain_hourly_cap(case) or _explain_share_cap(case)


def _explain_hourly_cap(case: GuardCase) -> str:
    done, most = _list_counted_targets(case), case.limits.per_hour
    if len(done) < most:
        return _explain_user_cap(case)
    return f"{len(done)} within the last hour, at most {most}{_describe_foreign_nodes(case)}"


def _explain_user_cap(case: GuardCase) -> str:
    """Why the cap for one user forbids the request. The jobs of one user get at most half of the
    hour's actions, because anybody can submit jobs that hang. Empty if it does not."""
    user, most = case.request.params.get("user", ""), max(1, case.limits.per_hour // 2)
    if not (user and case.situation.shared):
        return ""
    done = sum(record.params.get("user") == user for record in _filter_last_hour(case))
    if done < most:
        return ""
    return (
        f"{done} for jobs of {visible(user)} within the last hour, at most {most} for one user "
        f"(half of per_hour: {case.limits.per_hour})"
    )


def _explain_share_cap(case: GuardCase) -> str:
    """Why the share of a partition forbids the request. If the node is in no partition, it is the
    share of all nodes. Empty if it does not."""
    done, share = _list_counted_targets(case), case.limits.share
    for name, members in case.situation.partitions.items():
        here, most = sum(target in members for target in done), _count_share(share, len(members))
        if here >= most:
            return (
                f"{here} of {len(members)} nodes of partition {visible(name)} within the last "
                f"hour, at most {most} ({share}){_describe_foreign_nodes(case)}"
            )
    most = _count_share(share, case.situation.nodes)
    if not case.situation.partitions and case.situation.nodes and len(done) >= most:
        return (
            f"{len(done)} of all {case.situation.nodes} nodes within the last hour, at most {most}"
        )
    return ""


GUARD_RULES: dict[str, Callable[[GuardCase], str]] = {
    "disabled": _explain_disabled,
    "maintenance": _explain_maintenance,
    "breaker": _explain_open_breaker,
    "slurm": _explain_unwell_slurm,
    "unresolved": _explain_unresolved,
    "state": _explain_not_ready,
    "suspect": _explain_suspect,
    "cooldown": _explain_cooldown,
    "others": _explain_other_returns,
    "per_hour": _explain_hourly_cap,
    "share": _explain_share_cap,
}


def _describe_room(case: GuardCase) -> str:
    return f"{len(_list_counted_targets(case)) + 1} of {case.limits.per_hour} in this hour"


def list_foreign_returns(
    past: ActionHistory, situation: Situation, now: Instant, window: float = HOUR_S
) -> list[NodeReading]:
    """The returns to service within the window that no record of this state explains. One record
    explains one return."""
    mine = Counter(
        r.target
        for r in _filter_recent(past.records, now, HOUR_S + LATE_SIGHTING_S)
        if r.action in situation.returning and r.outcome.has_effect
    )
    found = []
    for reading in past.returned:
        if not reading.returned or get_elapsed_s(reading.returned, now) >= HOUR_S + LATE_SIGHTING_S:
            continue
        mine[reading.node] -= 1
        if mine[reading.node] < 0 and get_elapsed_s(reading.returned, now) < window:
            found.append(reading)
    return found


def _find_foreign_nodes(case: GuardCase) -> set[str]:
    """Nodes that others returned to service within the hour. They were seen to return, or are
    marked."""
    if case.request.action not in case.situation.returning:
        return set()
    mine = {r.target for r in _filter_last_hour(case)}
    seen = {r.node for r in list_foreign_returns(case.past, case.situation, case.now)}
    return (seen | case.situation.marked) - mine - {case.request.target}


def _describe_foreign_nodes(case: GuardCase) -> str:
    foreign = _find_foreign_nodes(case)
    return (
        f"; {len(foreign)} of them not by this sentinel: {fold_for_people(foreign)}"
        if foreign
        else ""
    )


def _list_counted_targets(case: GuardCase) -> list[str]:
    """The targets of the last hour's actions, including those of others."""
    return [*(r.target for r in _filter_last_hour(case)), *sorted(_find_foreign_nodes(case))]


def _filter_last_hour(case: GuardCase) -> list[ActionRecord]:
    alike = (
        r
        for r in _filter_by_action(case.past.records, case.request.action)
        if r.outcome.is_attempted
    )
    return _filter_recent(alike, case.now, HOUR_S)


def _filter_by_action(records: Iterable[ActionRecord], action: str) -> list[ActionRecord]:
    return [r for r in records if r.action == action]


def _filter_by_target(records: Iterable[ActionRecord], target: str) -> list[ActionRecord]:
    return [r for r in records if r.target == target]


def _filter_recent(
    records: Iterable[ActionRecord], now: Instant, seconds: float
) -> list[ActionRecord]:
    return [r for r in records if get_elapsed_s(r.at, now) < seconds]


def _count_share(share: Share, whole: int) -> int:
    """The number for a share. In a small partition it is at least one."""
    return max(1, int(whole * share / 100))


def _describe_time_left(seconds: float) -> str:
    return (
        "until it is switched off" if seconds == float("inf") else f"for {duration_text(seconds)}"
    )


def _describe_record_age(record: ActionRecord, now: Instant) -> str:
    return f"{duration_text(get_elapsed_s(record.at, now))} ago"


def find_newest_record(
    records: Sequence[ActionRecord], action: str, target: str
) -> ActionRecord | None:
    """The newest record about this action and target. None if there is none. `records` are in the
    order in which they were begun."""
    fitting = _filter_by_action(_filter_by_target(records, target), action)
    return fitting[-1] if fitting else None
