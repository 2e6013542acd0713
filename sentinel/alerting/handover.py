"""Alerts that were told while nothing could be written to the state, and how its leader goes on with
them. Pure.

A leader that is cut off tells from its journal until its lease is over; a sentinel that cannot start
tells that much. Whoever leads later has not heard of it, and nobody would tell the end.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.outbox import is_beginning, is_ending
from sentinel.alerting.processor import NotificationPlan, forget_checks
from sentinel.alerting.silences import Orders
from sentinel.core.clock import Instant
from sentinel.core.model import Alert, Batch, Key, LastNotified, Outgoing, Status, Transition

HANDOVER_KEY = "sentinel/handover"
"""Under this name the state remembers what was handed over and not taken up yet."""


_AlertChannel = tuple[str, str]
"""An alert's id and a channel."""


class Handover(Struct, frozen=True):
    """Open alerts with what each channel was told of them, all that had become of alerts, and the
    ends that nobody has heard yet."""

    alerts: tuple[Alert, ...] = ()
    transitions: tuple[Transition, ...] = ()
    ends: tuple[Outgoing, ...] = ()


def export_handover(
    alerts: Iterable[Alert], past: Iterable[Transition], unsent: Sequence[Outgoing]
) -> Handover:
    """What somebody has heard of, and its end. Whoever leads tells the rest itself, under ids of its
    own: in the history it would be an alert of which nobody ever heard."""
    unheard = {_alert_and_channel(row) for row in unsent if is_beginning(row.notification)}
    worse = {_alert_and_channel(row) for row in unsent if row.notification.reason == "worse"}
    over = tuple(
        r for r in unsent if is_ending(r.notification) and _alert_and_channel(r) not in unheard
    )
    untold = {r.notification.key for r in unsent} - {r.notification.key for r in over}
    heard = (_drop_unheard_channels(alert, unheard, worse) for alert in alerts if not alert.over)
    return Handover(
        alerts=tuple(alert for alert in heard if alert.told),
        transitions=tuple(transition for transition in past if transition.id not in untold),
        ends=over,
    )


def _drop_unheard_channels(
    alert: Alert, unheard: Container[_AlertChannel], worse: Container[_AlertChannel]
) -> Alert:
    """Without the channels that have heard nothing; those that wait to hear that it is worse have
    not."""
    told = {
        name: replace(told, severity=Status.WARNING) if (alert.id, name) in worse else told
        for name, told in alert.told.items()
        if (alert.id, name) not in unheard
    }
    return replace(alert, told=told)


def _alert_and_channel(row: Outgoing) -> _AlertChannel:
    return row.notification.alert, row.channel


def merge_handover(
    handed: Handover,
    known: Callable[[str], bool],
    alerts: Mapping[Key, Alert],
    plan: NotificationPlan,
    now: Instant,
    orders: Orders,
) -> Batch:
    """What to write; `known` says of an alert's id whether it has a past here. An alert that is
    unknown here goes on under its id. Where it is open already, who was told counts. Where it was
    seen to its end here, nothing is left to do. Where another episode of the same trouble fires,
    this one ends. The end of one that is known is told here, if it was not."""
    kept: list[Alert] = []
    news = {
        _alert_and_channel(row): row for row in handed.ends if not known(row.notification.alert)
    }
    outbox = [replace(row, seq=0) for row in news.values()]
    others = {r.notification.key for r in handed.ends} - {r.notification.key for r in outbox}
    transitions = [t for t in handed.transitions if t.id not in others]
    for alert in handed.alerts:
        here = alerts.get(alert.key)
        if here is not None and here.id == alert.id:
            base = here if here.firing or here.over else alert
            count = max(alert.count, here.count)
            kept.append(replace(base, told=_later_instant(here.told, alert.told), count=count))
        elif known(alert.id):
            continue
        elif here is not None and here.firing and not here.over:
            batch = forget_checks([alert.key], {alert.key: alert}, plan, now, orders)
            transitions += batch.transitions
            outbox += batch.outbox
        else:
            kept.append(alert)
    return Batch(
        at=now,
        alerts=tuple(kept),
        transitions=tuple(transitions),
        outbox=tuple(outbox),
        memory={HANDOVER_KEY: {}},
    )


def _later_instant(
    one: Mapping[str, LastNotified], other: Mapping[str, LastNotified]
) -> dict[str, LastNotified]:
    """By channel, what it was given last."""
    both = [*one.items(), *other.items()]
    return dict(sorted(both, key=lambda item: item[1].at.wall))
