"""Turns reports of checks into alerts, transitions and outbox rows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sentinel.alerting.batch_builder import ALL_DONE, NO_ORDERS, BatchBuilder
from sentinel.alerting.notifications import (
    NotificationPlan,
)
from sentinel.alerting.observations import RunOutcome, observed_findings
from sentinel.alerting.pending_checks import PendingChecks
from sentinel.alerting.silences import (
    Orders,
)
from sentinel.alerting.state_machine import AlertPolicy, FlapPolicy
from sentinel.core.clock import Instant
from sentinel.core.model import (
    Alert,
    Batch,
    Key,
)

if TYPE_CHECKING:
    from sentinel.actions.announcements import ActionBulletin


def process_outcomes(
    outcomes: Sequence[RunOutcome],
    alerts: Mapping[Key, Alert],
    plan: NotificationPlan,
    now: Instant,
    orders: Orders = NO_ORDERS,
    origin: Callable[[Key], str] = lambda _: "",
    pending: PendingChecks = ALL_DONE,
) -> Batch:
    """The batch for one transaction about these runs. For `origin` see state_machine.advance_alert."""
    work = BatchBuilder(alerts, plan, now, orders, pending)
    for outcome in outcomes:
        for key, finding in observed_findings(outcome, alerts, plan.cluster_of(outcome.check)):
            work.observe_finding(key, finding, plan.policies[outcome.check], origin(key))
    work.notify_channels({outcome.check for outcome in outcomes})
    return work.build_batch(outcomes)


def review_alerts(
    alerts: Mapping[Key, Alert],
    plan: NotificationPlan,
    now: Instant,
    orders: Orders = NO_ORDERS,
    pending: PendingChecks = ALL_DONE,
) -> Batch:
    """Messages that are due without a new observation: repeats, escalation, and alerts whose
    silence has ended."""
    work = BatchBuilder(alerts, plan, now, orders, pending)
    work.notify_channels({key.check for key in alerts})
    return work.build_batch(())


def forget_checks(
    keys: Iterable[Key],
    alerts: Mapping[Key, Alert],
    plan: NotificationPlan,
    now: Instant,
    orders: Orders = NO_ORDERS,
) -> Batch:
    """End the alerts whose check is no longer configured, and notify those who knew of them."""
    work = BatchBuilder(alerts, plan, now, orders)
    for key in keys:
        work.observe_finding(
            key, None, AlertPolicy(kind=alerts[key].kind, flap=FlapPolicy(changes=0))
        )
    work.notify_channels(())
    return work.build_batch(())


def announce_actions(
    bulletins: Sequence[ActionBulletin],
    alerts: Mapping[Key, Alert],
    plan: NotificationPlan,
    now: Instant,
    orders: Orders = NO_ORDERS,
) -> Batch:
    """Queue messages about sentinel's own actions. If there is an alert about the same subject,
    they refer to it."""
    work = BatchBuilder(alerts, plan, now, orders)
    for bulletin in bulletins:
        work.announce_action(bulletin)
    return work.build_batch(())
