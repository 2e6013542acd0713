"""Alerts that were told while nothing could be written to the state, and how its leader goes on with
them. Pure.

A leader that is cut off tells from its journal until its lease is over; a sentinel that cannot start
tells that much. Whoever leads later has not heard of it, and nobody would tell the end.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.processor import Plan, forget
from sentinel.alerting.silences import Orders
from sentinel.core.clock import Instant
from sentinel.core.model import Alert, Batch, Key, Outgoing, Told, Transition

HANDED = "sentinel/handover"
"""Under this name the state remembers what was handed over and not taken up yet."""


class Handed(Struct, frozen=True):
    """Open alerts with what each channel was told of them, and all that had become of alerts."""

    alerts: tuple[Alert, ...] = ()
    transitions: tuple[Transition, ...] = ()


def told(alerts: Iterable[Alert], unsent: Iterable[Outgoing]) -> tuple[Alert, ...]:
    """Those of which somebody has heard, with nothing that waits to be sent."""
    waits = {(row.notification.alert, row.channel) for row in unsent}
    heard = (
        replace(a, told={n: t for n, t in a.told.items() if (a.id, n) not in waits}) for a in alerts
    )
    return tuple(alert for alert in heard if alert.told and not alert.over)


def heard(past: Iterable[Transition], unsent: Iterable[Outgoing]) -> tuple[Transition, ...]:
    """What does not wait to be told. Whoever leads tells the rest itself, under ids of its own: in the
    history it would be an alert of which nobody ever heard."""
    waits = {row.notification.key for row in unsent}
    return tuple(transition for transition in past if transition.id not in waits)


def taken_over(
    handed: Handed,
    ended: Callable[[Alert], bool],
    alerts: Mapping[Key, Alert],
    plan: Plan,
    now: Instant,
    orders: Orders,
) -> Batch:
    """What to write. An alert that is unknown here goes on under its id. Where it is open already,
    who was told counts. Where it was seen to its end here (`ended`), nothing is left to do. Where
    another episode of the same trouble fires, this one ends."""
    kept: list[Alert] = []
    transitions, outbox = list(handed.transitions), list[Outgoing]()
    for alert in handed.alerts:
        here = alerts.get(alert.key)
        if here is not None and here.id == alert.id:
            base = here if here.firing or here.over else alert
            count = max(alert.count, here.count)
            kept.append(replace(base, told=_later(here.told, alert.told), count=count))
        elif ended(alert):
            continue
        elif here is not None and here.firing and not here.over:
            batch = forget([alert.key], {alert.key: alert}, plan, now, orders)
            transitions += batch.transitions
            outbox += batch.outbox
        else:
            kept.append(alert)
    return Batch(
        at=now,
        alerts=tuple(kept),
        transitions=tuple(transitions),
        outbox=tuple(outbox),
        memory={HANDED: {}},
    )


def _later(one: Mapping[str, Told], other: Mapping[str, Told]) -> dict[str, Told]:
    """By channel, what it was given last."""
    both = [*one.items(), *other.items()]
    return dict(sorted(both, key=lambda item: item[1].at.wall))
