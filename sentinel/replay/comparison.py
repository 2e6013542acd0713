"""Compares what the present configuration and another one would have told in the same past."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.outbox import is_status_news
from sentinel.alerting.owners import OWNER_LABEL
from sentinel.alerting.routing import matching_routes
from sentinel.alerting.silences import Orders
from sentinel.config.settings import Settings
from sentinel.core.clock import SECOND, Instant
from sentinel.core.kinds import Check
from sentinel.core.model import Alert, Key, Notification, Status
from sentinel.core.settings import CheckConfig
from sentinel.replay.changes import (
    CheckChange,
    compare_checks,
    damps_less,
    list_unplayed_sections,
    uses_labels,
)
from sentinel.replay.observations import (
    MAX_WARM_UP_US,
    AlertHistory,
    PastAlerts,
    PastObservation,
    observe_limits,
    observe_past_alerts,
)
from sentinel.replay.player import (
    ReplayedMessage,
    ReplayedWorld,
    ReplayOutcome,
    play_observations,
)
from sentinel.store.kept_history import HistoryReader, KeptHistory, SentMessage
from sentinel.store.retention import DEFAULT_RETENTION

Recipient = tuple[str, str]
"""A channel, and the user if it writes to each user alone."""


class ComparedSide(Struct, frozen=True):
    """A configuration with the parts that a replay needs."""

    settings: Settings
    world: ReplayedWorld


class ComparedRule(Struct, frozen=True, kw_only=True):
    """How many messages a rule of the file was part of. `wanted` None: it cannot be known.

    reasons: Why it cannot be known, or why it is `at_least` so many.
    """

    rule: str
    present: int | None
    wanted: int | None
    at_least: bool = False
    reasons: tuple[str, ...] = ()


class ComparedRecipient(Struct, frozen=True, kw_only=True):
    """How many messages somebody got, and would have got."""

    channel: str
    user: str
    sent: int
    present: int
    wanted: int


class Comparison(Struct, frozen=True, kw_only=True):
    """All of it. `since` and `until`: what was played, µs UTC. `is_whole`: False where messages of a
    check are left out or may be missing, so that sums are at least so many."""

    since: int
    until: int
    rules: tuple[ComparedRule, ...]
    recipients: tuple[ComparedRecipient, ...]
    is_whole: bool
    notes: tuple[str, ...]


def compare_configurations(
    reader: HistoryReader, history: KeptHistory, present: ComparedSide, wanted: ComparedSide,
    since: int, until: int,
) -> Comparison:  # fmt: skip
    """Play the past through both. Raises StoreError."""
    since = max(since, history.first or until)
    changes = compare_checks(present.settings, wanted.settings)
    past = observe_past_alerts(
        AlertHistory(
            transitions=history.transitions,
            alerts=history.alerts,
            messages=[m.notification for m in history.sent]
            + [row.notification for row in history.waiting],
            policies=present.world.plan.policies,
            by_labels=uses_labels(present.settings) or uses_labels(wanted.settings),
            since=since,
        )
    )
    changes, foreseen = _rewrite_observations(
        reader, past.observations, present, wanted, changes, since
    )
    before = _play_since(present, past.observations, history.orders, since, until)
    after = _play_since(wanted, foreseen, history.orders, since, until)
    sent = _group_sent_messages(history.sent, present, since)
    both = present.settings, wanted.settings
    partly = any(c.unknown or c.at_least for c in changes) or damps_less(*both)
    unplayed = list_unplayed_sections(*both)
    return Comparison(
        since=since,
        until=until,
        rules=(
            *_compare_rules(before, after, present, wanted, changes),
            *(ComparedRule(rule=s, present=None, wanted=None) for s in unplayed),
        ),
        recipients=tuple(_compare_recipients(sent, before.messages, after.messages)),
        is_whole=not partly and not unplayed,
        notes=tuple(_list_notes(past, present, wanted, since)),
    )


def _play_since(
    side: ComparedSide, observations: Sequence[PastObservation], orders: Orders, since: int, until: int
) -> ReplayOutcome:  # fmt: skip
    played = play_observations(side.world, observations, orders, until)
    return replace(played, messages=tuple(m for m in played.messages if m.at >= since))


def _rewrite_observations(
    reader: HistoryReader, observations: Sequence[PastObservation], present: ComparedSide,
    wanted: ComparedSide, changes: Sequence[CheckChange], since: int,
) -> tuple[list[CheckChange], list[PastObservation]]:  # fmt: skip
    """What the checks of the wanted file would have seen: under their new names, with their own
    limits, and nothing of those of which nothing can be known. With the changes, as far as they
    then are known."""
    old = {check.name: check for check in present.settings.checks}
    new = {check.name: check for check in wanted.settings.checks}
    names = {change.before: change.name for change in changes if change.before}
    own = set(present.world.plan.policies) - set(old)
    found, known = list[PastObservation](), list[CheckChange]()
    for change in changes:
        mine = [one for one in observations if one.name[0] == change.before]
        if change.limits and not change.unknown:
            change, mine = _judge_by_samples(
                reader, change, mine, old[change.before], new[change.name], since
            )
        known.append(change)
        if not change.unknown:
            found += [replace(one, name=(names[change.before], one.name[1])) for one in mine]
    found += [one for one in observations if one.name[0] in own]
    return known, sorted(found, key=lambda one: one.at)


def _judge_by_samples(
    reader: HistoryReader, change: CheckChange, observations: Sequence[PastObservation],
    old: CheckConfig, new: CheckConfig, since: int,
) -> tuple[CheckChange, list[PastObservation]]:  # fmt: skip
    """The observations under other limits: those of samples, and what had other reasons."""
    plugin: Check = new.plugin
    samples = reader.read_check_samples(old.name, plugin.LIMIT_SAMPLES, since - MAX_WARM_UP_US)
    if not any(samples.values()):
        return replace(change, unknown=("its limits: no numbers are kept",)), []
    found = list[PastObservation]()
    for subject, several in samples.items():
        name = (old.name, subject)
        found += observe_limits(name, several, plugin.judge_samples)
        by_limits = list(observe_limits(name, several, old.plugin.judge_samples))
        mine = [one for one in observations if one.name == name]
        found += _drop_limit_episodes(mine, by_limits, several[0][0].wall if several else 0)
    found += [one for one in observations if one.name[1] not in samples]
    reasons = list(change.at_least)
    newest = max(moments[-1][0].wall for moments in samples.values() if moments)
    if since < newest - DEFAULT_RETENTION.fine * SECOND:
        reasons.append("its limits: of numbers older than a week the last of each hour is kept")
    return replace(change, at_least=tuple(reasons)), found


def _drop_limit_episodes(
    observations: Sequence[PastObservation], by_limits: Sequence[PastObservation], first: int
) -> list[PastObservation]:
    """Without those alerts that the present limits explain: at their beginning a limit was crossed.
    `first`: the time of the first sample."""
    kept, dropped = list[PastObservation](), set[str]()
    seen = set[str]()
    for one in observations:
        if one.alert not in seen:
            seen.add(one.alert)
            if _status_at(by_limits, max(one.at, first) + SECOND).bad:
                dropped.add(one.alert)
        if one.alert not in dropped:
            kept.append(one)
    return kept


def _status_at(changes: Iterable[PastObservation], at: int) -> Status:
    status = Status.OK
    for one in changes:
        if one.at > at:
            break
        status = one.finding.status if one.finding else Status.OK
    return status


def _group_sent_messages(
    sent: Iterable[SentMessage], present: ComparedSide, since: int
) -> list[ReplayedMessage]:
    """The messages about alerts that were really sent."""
    groups = dict[tuple[str, str, int], list[SentMessage]]()
    channels = present.world.channels
    for number, one in enumerate(sent):
        if one.at.wall < since or not is_status_news(one.notification):
            continue
        channel = channels.get(one.channel)
        user = one.notification.labels.get(OWNER_LABEL, "") if channel and channel.personal else ""
        alone = channel is not None and not channel.groups
        groups.setdefault((one.channel, user, -number if alone else one.message), []).append(one)
    return [
        ReplayedMessage(name, user, several[0].at.wall, tuple(m.notification for m in several))
        for (name, user, _), several in groups.items()
    ]


def _compare_recipients(
    *sides: Iterable[ReplayedMessage],
) -> list[ComparedRecipient]:
    sent, present, wanted = (Counter[Recipient]((m.channel, m.user) for m in s) for s in sides)
    return [
        ComparedRecipient(
            channel=who[0], user=who[1], sent=sent[who], present=present[who], wanted=wanted[who]
        )
        for who in sorted({*sent, *present, *wanted})
    ]


def _compare_rules(
    before: ReplayOutcome, after: ReplayOutcome, present: ComparedSide, wanted: ComparedSide,
    changes: Sequence[CheckChange],
) -> list[ComparedRule]:  # fmt: skip
    old, new = _count_by_rule(before, present), _count_by_rule(after, wanted)
    partly = tuple(
        f"without checks.{c.name}: {', '.join(c.unknown)}" for c in changes if c.unknown
    ) + tuple(f"checks.{c.name}: {why}" for c in changes for why in c.at_least)
    rows = [
        ComparedRule(
            rule=f"checks.{c.name}",
            present=old[f"checks.{c.before}"] if c.before else None,
            wanted=None if c.unknown else new[f"checks.{c.name}"],
            at_least=bool(c.at_least) and not c.unknown,
            reasons=(*c.unknown, *c.at_least, *_tell_former_name(c)),
        )
        for c in changes
    ]
    kept = {c.before for c in changes}
    rows += [
        ComparedRule(rule=f"checks.{c.name}", present=old[f"checks.{c.name}"], wanted=0,
                     reasons=("the file has no such check",))
        for c in present.settings.checks
        if c.name not in kept
    ]  # fmt: skip
    lists = [
        f"{section}[{n}]"
        for section in ("routes", "silences")
        for n in range(max(len(getattr(s.settings, section)) for s in (present, wanted)))
    ]
    rows += [
        ComparedRule(rule=r, present=old[r], wanted=new[r], at_least=bool(partly), reasons=partly)
        for r in lists
    ]
    return rows


def _tell_former_name(change: CheckChange) -> tuple[str, ...]:
    renamed = change.before and change.before != change.name
    return (f"it was called {change.before}",) if renamed else ()


def _count_by_rule(played: ReplayOutcome, side: ComparedSide) -> Counter[str]:
    """Messages by check and by route, and alerts held back by silence."""
    counts = Counter[str]()
    for message in played.messages:
        rules = {f"checks.{n.check}" for n in message.notifications}
        for one in message.notifications:
            rules |= _find_routes(one, message.channel, side.world.plan)
        counts.update(rules)
    counts.update({f"silences[{n}]": len(ids) for n, ids in played.silenced.items()})
    return counts


def _find_routes(one: Notification, channel: str, plan: NotificationPlan) -> set[str]:
    """The first route by which the channel hears of this alert."""
    alert = Alert(
        key=Key(one.cluster, one.check, one.subject),
        id=one.alert,
        kind=one.kind,
        status=one.status,
        severity=one.severity,
        summary=one.summary,
        since=Instant(0),
        last=Instant(0),
        labels=one.labels,
    )
    for number, route in matching_routes(alert, plan.routes):
        if channel in (*route.to, *(route.escalate.to if route.escalate else ())):
            return {f"routes[{number}]"}
    return set()


def _list_notes(
    past: PastAlerts, present: ComparedSide, wanted: ComparedSide, since: int
) -> list[str]:
    notes = []
    if past.explained:
        notes.append(f"{_count(past.explained)} told with their cause, and are not played alone")
    if past.unlabelled:
        notes.append(
            f"{_count(past.unlabelled)} told to nobody, so their labels are not kept; rules ask for "
            "labels, so these alerts are left out"
        )
    if damps_less(present.settings, wanted.settings):
        notes.append("flapping: changes that were not told are not kept, so it is at least so many")
    if present.settings.inhibit != wanted.settings.inhibit:
        notes.append("inhibit: alerts that were muted then are played without their labels")
    return notes


def _count(alerts: int) -> str:
    return "1 alert was" if alerts == 1 else f"{alerts} alerts were"
