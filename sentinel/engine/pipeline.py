"""Reports become alerts, transitions and outbox rows, in one transaction."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from sentinel.actions import announcements
from sentinel.actions.announcements import ActionPassResult
from sentinel.alerting.handover import HANDOVER_KEY, Handover, merge_handover
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.processor import (
    ALL_DONE,
    NotificationPlan,
    PendingChecks,
    announce_actions,
    forget_checks,
    process_outcomes,
    review_alerts,
)
from sentinel.alerting.silences import Orders
from sentinel.alerting.state import Store
from sentinel.alerting.state_machine import remaining_patience
from sentinel.core.clock import Instant
from sentinel.core.errors import Fenced
from sentinel.core.model import Alert, Batch, Finding, Key, Outgoing, Status, Transition
from sentinel.core.ports import Clock
from sentinel.core.text import visible
from sentinel.engine.order_log import OrderLog
from sentinel.status import last_seen

ACTIONS_KEY = "sentinel/actions"
"""Under this name the state remembers which actions people have heard of."""

CLUSTER_KEY = "sentinel/cluster"
"""Under this name it remembers what the cluster is called: alerts are kept by that, and a Slurm
that is down when sentinel starts does not say."""

MAX_SECOND_LOOK_WAIT_S = 60.0
"""Seconds within which a second look is part of the same pass."""

_LOG = logging.getLogger("sentinel")


class Pipeline:
    """The leader's view of the alerts, kept in step with the store. For one thread."""

    def __init__(self, store: Store, plan: NotificationPlan, clock: Clock) -> None:
        self._store, self._plan, self._clock = store, plan, clock
        self._alerts: dict[Key, Alert] = {a.key: a for a in store.read_alerts()}
        self._written = {run.check: run.at.wall for run in store.read_runs()}
        self._orders = OrderLog(store, since=max(self._written.values(), default=0))
        self._unkept: Counter[Key] = Counter()
        self.new = not self._written
        """Whether nobody has looked at anything yet in this state."""
        self.aside: dict[str, Mapping[str, Any]] = {}
        """What else to remember with the next runs, by its name in the state."""
        self.rest: PendingChecks = ALL_DONE
        """What of the pass is still to come, at the next look or review."""
        self.commits = 0
        """Counts what was written: whoever shows it looks anew when this has changed."""

    @property
    def active_alerts(self) -> list[Alert]:
        """Pending and firing alerts."""
        return [a for a in self._alerts.values() if not a.over]

    def get_last_notified(self, check: str) -> dict[str, Instant]:
        """When any channel was last given an alert of this check, by subject."""
        return {
            alert.key.subject: max(
                (told.at for told in alert.told.values()), key=lambda at: at.wall
            )
            for alert in list(self._alerts.values())
            if alert.key.check == check and alert.told
        }

    def get_second_look_wait(self, outcome: RunOutcome, *, asked: bool = True) -> float | None:
        """Seconds until a second look at what a run saw decides something; None: at the next run.

        Only where the kind itself asks for it, by a short patience or by its report: an explicit
        `for` is waited for by the runs as configured. Not `asked`: reports are not listened to.
        """
        policy, now = self._plan.policies.get(outcome.check), self._clock.now()
        if policy is None or outcome.report is None:
            return None
        left = [(outcome.report.again or 0.0) if asked else 0.0]
        for finding in outcome.report.findings if policy.for_ is None else ():
            cluster = self._plan.cluster_of(outcome.check)
            alert = self._alerts.get(Key(cluster, outcome.check, finding.subject))
            told = alert is not None and alert.firing and alert.severity is alert.status
            if finding.status.bad and alert is not None and not (told or alert.over):
                left.append(remaining_patience(alert, finding, policy, now))
        return min((s for s in left if 0 < s <= MAX_SECOND_LOOK_WAIT_S), default=None)

    def replace_plan(self, plan: NotificationPlan) -> None:
        """Go on with another configuration; alerts of checks that are gone end."""
        self._plan = plan
        self.aside[CLUSTER_KEY] = {"name": plan.cluster}
        stale = [
            k
            for k in self._alerts
            if k.check not in plan.policies or k.cluster != plan.cluster_of(k.check)
        ]
        if stale:
            now = self._clock.now()
            self._commit_batch(
                forget_checks(stale, self._alerts, plan, now, self._read_and_log_orders(now))
            )

    def take_over_alerts(self, handed: Handover | None = None) -> tuple[Outgoing, ...]:
        """Go on with alerts that were told without the state: these, or those that others handed
        over. What there is to send of it."""
        handed = handed or convert(self._store.read_memory(HANDOVER_KEY), Handover)
        if handed == Handover():
            return ()
        now = self._clock.now()
        batch = merge_handover(
            handed,
            self._is_known_alert,
            self._alerts,
            self._plan,
            now,
            self._read_and_log_orders(now),
        )
        self._commit_batch(batch)
        return batch.outbox

    def _is_known_alert(self, alert: str) -> bool:
        return bool(self._store.read_transitions(1, alert))

    def absorb_outcomes(self, outcomes: Sequence[RunOutcome]) -> Batch:
        """Write what these runs mean, in one transaction; raises StoreError.

        One that cannot be written costs the others nothing, and counts as blind. A run that was
        at work while a reload took its check away means nothing any more.
        """
        known = [outcome for outcome in outcomes if outcome.check in self._plan.policies]
        try:
            return self._absorb_together(known)
        except Fenced:
            raise
        except Exception:
            batches = [self._absorb_alone(outcome) for outcome in known]
            if not batches:
                raise
            return replace(batches[-1], outbox=tuple(row for b in batches for row in b.outbox))

    def _absorb_alone(self, outcome: RunOutcome) -> Batch:
        try:
            return self._absorb_together([outcome])
        except Fenced:
            raise
        except Exception as error:
            _LOG.exception("check %s: what it saw cannot be written", outcome.check)
            why = visible(f"internal error: what it saw cannot be written: {error!r}")
            itself = Finding(subject="", status=Status.UNKNOWN, summary=why)
            return self._absorb_together([replace(outcome, report=None, itself=itself)])

    def _absorb_together(self, outcomes: Sequence[RunOutcome]) -> Batch:
        now, aside = self._clock.now(), dict(self.aside)
        said = self._read_and_log_orders(now)
        batch = process_outcomes(
            outcomes, self._alerts, self._plan, now, said, self._get_alert_origin, self.rest
        )
        memory = {**batch.memory, **last_seen.encode_looks(outcomes, now), **aside}
        self._commit_batch(replace(batch, memory=memory))
        for name, memory_of in aside.items():
            if self.aside.get(name) is memory_of:
                del self.aside[name]
        return batch

    def announce_actions(self, done: ActionPassResult) -> Batch:
        """Tell of those actions of which nobody has heard yet, in one transaction with the
        memory of what was told: a crash neither loses nor repeats one."""
        told: list[str] = self._store.read_memory(ACTIONS_KEY).get("told", [])
        fresh = [*done.imagined, *announcements.find_unannounced(done.recent, told)]
        messages = announcements.make_bulletins(fresh, self._plan.policies)
        now = self._clock.now()
        batch = announce_actions(
            messages, self._alerts, self._plan, now, self._read_and_log_orders(now)
        )
        if fresh:
            self._commit_batch(
                replace(
                    batch,
                    memory={
                        ACTIONS_KEY: {"told": announcements.list_announced_tokens(told, fresh)}
                    },
                )
            )
        return batch

    def review_alerts(self) -> Batch:
        """Write what is owed although nothing new was seen; see core.digest.review."""
        more = self.take_over_alerts()
        now = self._clock.now()
        batch = review_alerts(
            self._alerts, self._plan, now, self._read_and_log_orders(now), self.rest
        )
        if batch.alerts or batch.outbox:
            self._commit_batch(batch)
        return replace(batch, outbox=(*more, *batch.outbox))

    def _get_alert_origin(self, key: Key) -> str:
        """Names an alert that begins now by the last run of its check that was kept. Passes that
        cannot keep anything find the same run each, and so does the first that can again: one
        trouble has one id for all of them."""
        ended = self._unkept[key]
        return f"{self._written.get(key.check, 0)}" + (f" {ended}" if ended else "")

    def _note_durable_runs(self, batch: Batch) -> None:
        if self._store.is_durable:
            self._written |= {run.check: run.at.wall for run in batch.runs}
            self._unkept.clear()
        else:
            self._unkept.update(t.key for t in batch.transitions if t.status is Status.OK)

    def _read_and_log_orders(self, now: Instant) -> Orders:
        return self._orders.read_and_log(self._alerts.values(), now)

    def _commit_batch(self, batch: Batch) -> None:
        self._store.commit(batch)
        self._note_durable_runs(batch)
        self.commits += 1
        self._alerts.update({a.key: a for a in batch.alerts})
        for key in batch.closed:
            self._alerts.pop(key, None)
        for t in batch.transitions:
            _LOG.info(
                "%s %s: %s %s: %s",
                t.reason,
                t.status.value,
                visible(t.key.check),
                visible(t.key.subject),
                visible(t.summary),
                extra={"fields": _make_log_fields(t)},
            )


def _make_log_fields(t: Transition) -> Mapping[str, str]:
    """What a log in JSON has of it besides the words."""
    return {
        "event": "alert",
        "reason": t.reason,
        "status": t.status.value,
        "severity": t.severity.value,
        "cluster": t.key.cluster,
        "check": t.key.check,
        "subject": t.key.subject,
        "alert": t.alert,
        "key": t.id,
    }
