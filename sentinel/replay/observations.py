"""What checks saw in the past, as far as the kept changes of alerts and samples tell it. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.state_machine import AlertPolicy
from sentinel.core.clock import SECOND, Instant
from sentinel.core.guidance import NO_GUIDANCE
from sentinel.core.model import Alert, Finding, Notification, Status, Transition

MAX_WARM_UP_US = 7 * 86_400 * SECOND
"""How long before the replay an alert may have begun to be played from its beginning, in µs. Of an
older one its last message before the replay counts as its beginning."""

AlertName = tuple[str, str]
"""The name of the check and the subject."""

ALERTS, LIMITS = "alerts", "limits"
"""The sources of observations: kept changes of alerts, and samples against limits."""


class PastObservation(Struct, frozen=True, kw_only=True):
    """From this moment on the subject is seen so. `finding` None: the check no longer reports it.
    `alert`: the id that its alert had."""

    at: int  # µs UTC.
    name: AlertName
    finding: Finding | None
    source: str = ALERTS
    alert: str = ""


class PastAlerts(Struct, frozen=True, kw_only=True):
    """Observations of the kept alerts, and how many alerts could not be played.

    explained: They were told with their cause.
    unlabelled: They were told to nobody, so that their labels are not known, and rules ask for labels.
    """

    observations: tuple[PastObservation, ...]
    explained: int = 0
    unlabelled: int = 0


class _Facts(Struct, frozen=True):
    """What is known of one alert beside its changes."""

    labels: Mapping[str, str]
    message: Notification | None = None  # Its first message.


class AlertHistory(Struct, frozen=True, kw_only=True):
    """What the state keeps of alerts, with what it takes to read it.

    policies: How long a problem had to last, by check, under the configuration of that time.
    by_labels: Whether a rule of either configuration asks for labels.
    since: Beginning of the replay, µs UTC.
    """

    transitions: Sequence[Transition]
    alerts: Sequence[Alert]
    messages: Sequence[Notification]
    policies: Mapping[str, AlertPolicy]
    by_labels: bool
    since: int


def observe_past_alerts(history: AlertHistory) -> PastAlerts:
    """The observations that led to the kept changes of alerts, the oldest first."""
    facts = _collect_facts(history)
    found, explained, unlabelled = list[PastObservation](), set[str](), set[str]()
    for changes in _group_episodes(history.transitions):
        first = changes[0]
        if first.alert not in facts and first.incident not in ("", first.alert):
            explained.add(first.alert)
        elif first.alert not in facts and history.by_labels and first.key.subject:
            unlabelled.add(first.alert)
        else:
            known = facts.get(first.alert, _Facts({}))
            found += _observe_episode(changes, known, history)
    return PastAlerts(
        observations=tuple(sorted(found, key=lambda one: one.at)),
        explained=len(explained),
        unlabelled=len(unlabelled),
    )


def observe_limits(
    name: AlertName,
    samples: Iterable[tuple[Instant, Mapping[str, float]]],
    judge: Callable[[Mapping[str, float]], Status],
) -> Iterator[PastObservation]:
    """An observation for each change of what these limits say of the samples."""
    before = Status.OK
    for at, numbers in samples:
        status = judge(numbers)
        if status is not before and status is not Status.UNKNOWN:
            bad = Finding(subject=name[1], status=status, summary="by its limits")
            yield PastObservation(at=at.wall, name=name, finding=bad, source=LIMITS)
            before = status


def _collect_facts(history: AlertHistory) -> dict[str, _Facts]:
    facts = {alert.id: _Facts(alert.labels) for alert in history.alerts}
    told = dict[str, Notification]()
    for message in history.messages:
        told.setdefault(message.alert, message)
    facts |= {alert: _Facts(message.labels, message) for alert, message in told.items()}
    return facts


def _group_episodes(transitions: Iterable[Transition]) -> Iterator[list[Transition]]:
    """The changes of each alert, in the order in which they were written. What is no change of an
    alert (a note about an action) is left out."""
    by_alert = dict[str, list[Transition]]()
    for one in transitions:
        if one.reason not in ("ack", "action", "test", "digest"):
            by_alert.setdefault(one.alert, []).append(one)
    yield from by_alert.values()


def _observe_episode(
    changes: Sequence[Transition], known: _Facts, history: AlertHistory
) -> Iterator[PastObservation]:
    policy = history.policies.get(changes[0].key.check, AlertPolicy(kind=changes[0].kind))
    changes = _skip_long_past(changes, history.since)
    for number, change in enumerate(changes):
        if change.reason in ("again", "repeat") and number:
            continue
        at, patience = change.at.wall, 0.0
        if change.reason in ("resolved", "gone"):
            at -= int(policy.keep_firing_for * SECOND)
        elif not number and change.status is not Status.OK:
            at = _find_first_sight(change, known, policy)
            patience = (change.at.wall - at) / SECOND if policy.for_ is None else 0.0
        finding = replace(_make_finding(change, known, policy), patience=patience)
        yield PastObservation(
            at=at,
            name=(change.key.check, change.key.subject),
            finding=None if change.reason == "gone" else finding,
            alert=change.alert,
        )


def _skip_long_past(changes: Sequence[Transition], since: int) -> Sequence[Transition]:
    """The changes of an alert that was open long before the replay, from its last one before it."""
    before = [n for n, change in enumerate(changes) if change.at.wall < since]
    old = changes[0].at.wall < since - MAX_WARM_UP_US
    return changes[before[-1] :] if old and before else changes


def _find_first_sight(change: Transition, known: _Facts, policy: AlertPolicy) -> int:
    """When the problem was first seen. Its message says it, to the second; else `for` does, since it
    fired then."""
    if known.message is not None and known.message.noticed and change.reason == "firing":
        noticed = int(datetime.fromisoformat(known.message.noticed).timestamp()) * SECOND
        return min(noticed + SECOND - 1, change.at.wall)
    return change.at.wall - int((policy.for_ or 0.0) * SECOND)


def _make_finding(change: Transition, known: _Facts, policy: AlertPolicy) -> Finding:
    own = {k: v for k, v in known.labels.items() if policy.labels.get(k) != v}
    return Finding(
        subject=change.key.subject,
        status=change.status,
        summary=change.summary,
        labels=own,
        values=known.message.values if known.message else {},
        guidance=known.message.guidance if known.message else NO_GUIDANCE,
    )
