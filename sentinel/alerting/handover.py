"""Hands over alerts that were reported while the state could not be written. Pure.

A leader that loses the state sends messages from its journal until its lease ends. A sentinel that
cannot start sends a message about that. The next leader knows nothing of these messages. Without
the handover, nobody would report the end of these alerts.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.outbox import is_beginning, is_ending
from sentinel.alerting.processor import forget_checks
from sentinel.alerting.silences import Orders
from sentinel.core.clock import Instant
from sentinel.core.model import Alert, Batch, Key, LastNotified, Outgoing, Status, Transition

HANDOVER_KEY = "sentinel/handover"
"""The state stores handed-over alerts under this name until a leader has merged them."""


_AlertChannel = tuple[str, str]
"""The id of an alert and the name of a channel."""


class Handover(Struct, frozen=True):
    """Open alerts with the last message of each channel, all changes of alerts, and the ends that
    have not been sent yet."""

    alerts: tuple[Alert, ...] = ()  # Open alerts.
    transitions: tuple[Transition, ...] = ()
    """Changes of alerts since the state could not be written."""
    ends: tuple[Outgoing, ...] = ()  # Messages about ends that have not been sent yet.


def export_handover(
    alerts: Iterable[Alert], past: Iterable[Transition], unsent: Sequence[Outgoing]
) -> Handover:
    """The alerts that were reported to somebody, and their ends.

    The next leader reports all other alerts itself, under its own ids. In the history, an
    unreported one would only confuse.
    """
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
    """Remove the channels that got no message. A channel whose message about a worse status still
    waits counts as one of them."""
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
    """The batch to write. `known` says whether the history here has an alert with this id.

    If the id is unknown here, the alert continues under its id. If the alert is open already, the
    last messages of the channels are merged. If the history here has its end, nothing is done. If a
    newer alert about the same problem fires, the handed-over one ends. If a known alert has ended
    elsewhere, its end is reported, unless it was reported already.
    """
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
    """The later of the two last messages of each channel, by the channel's name."""
    both = [*one.items(), *other.items()]
    return dict(sorted(both, key=lambda item: item[1].at.wall))
