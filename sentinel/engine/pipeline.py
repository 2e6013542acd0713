"""Turns reports into alerts, transitions and outbox rows, in one transaction."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sentinel.alerting.batch_builder import ALL_DONE
from sentinel.alerting.handover import HANDOVER_KEY, Handover, merge_handover
from sentinel.alerting.letters import LETTERS_KEY, SentLetters, write_letters
from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.pending_checks import PendingChecks
from sentinel.alerting.processor import (
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
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import visible
from sentinel.engine.order_log import OrderLog
from sentinel.status import last_seen

if TYPE_CHECKING:
    from sentinel.actions.announcements import ActionPassResult

ACTIONS_KEY = "sentinel/actions"
"""The state stores under this name which actions were reported to people."""

CLUSTER_KEY = "sentinel/cluster"
"""The state stores under this name what the cluster is called. Alerts are stored by this name, and
a Slurm that is down when sentinel starts does not tell it."""

SET_UP_KEY = "sentinel/init"
"""The state stores under this name of which checks a job ran when `init` looked."""

MAX_SECOND_LOOK_WAIT_S = 60.0
"""A second look that is due within this many seconds is part of the same pass."""

_LOG = logging.getLogger("sentinel")


class Pipeline:
    """The leader's copy of the alerts, always the same as in the store. It is for one thread."""

    def __init__(self, store: Store, plan: NotificationPlan, clock: Clock) -> None:
        self._store, self._plan, self._clock = store, plan, clock
        self._alerts: dict[Key, Alert] = {a.key: a for a in store.read_alerts()}
        self._written = {run.check: run.at.wall for run in store.read_runs()}
        self._orders = OrderLog(store, since=max(self._written.values(), default=0))
        self._unkept: Counter[Key] = Counter()
        self.new = not self._written
        """Whether no check has run yet with this state."""
        self.set_up = decode_memory(store.read_memory(SET_UP_KEY), dict[str, int]) or {}
        """Of which checks a job ran when `init` looked; see PendingChecks."""
        self.pending_memory: dict[str, Mapping[str, Any]] = {}
        """Further memories to store with the next runs, by their name in the state."""
        self.pending_checks: PendingChecks = ALL_DONE
        """The checks of the pass that are still running, for the next commit."""
        self.commits = 0
        """The number of writes. If it has changed, a reader has to read the state again."""

    @property
    def active_alerts(self) -> list[Alert]:
        """Pending and firing alerts."""
        return [a for a in self._alerts.values() if not a.over]

    def get_last_notified(self, check: str) -> dict[str, Instant]:
        """When the last message about each alert of this check was sent to any channel, by
        subject."""
        return {
            alert.key.subject: max(
                (told.at for told in alert.told.values()), key=lambda at: at.wall
            )
            for alert in list(self._alerts.values())
            if alert.key.check == check and alert.told
        }

    def get_second_look_wait(self, outcome: RunOutcome, *, asked: bool = True) -> float | None:
        """Seconds until a second run of the check decides something. None if the next scheduled run
        is soon enough.

        Only the kind can request it, by a short patience or in its report. An explicit `for` waits
        for the scheduled runs. If not `asked`, requests in the report are ignored.
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
        """Continue with another configuration. Alerts of checks that are no longer configured
        end."""
        self._plan = plan
        self.pending_memory[CLUSTER_KEY] = {"name": plan.cluster}
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
        """Continue alerts that were reported without the state. They are in `handed`, or in the
        state if other processes handed them over. Returns the messages to send about them."""
        handed = handed or decode_memory(self._store.read_memory(HANDOVER_KEY), Handover)
        if handed is None or handed == Handover():
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
        """Write the results of these runs, in one transaction. Raises StoreError."""
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
        now, pending_memory = self._clock.now(), dict(self.pending_memory)
        said = self._read_and_log_orders(now)
        batch = process_outcomes(
            outcomes,
            self._alerts,
            self._plan,
            now,
            said,
            self._get_alert_origin,
            self.pending_checks,
        )
        batch = self._add_letters(batch, outcomes, now, said)
        memory = {**batch.memory, **last_seen.encode_looks(outcomes, now), **pending_memory}
        self._commit_batch(replace(batch, memory=memory))
        for name, memory_of in pending_memory.items():
            if self.pending_memory.get(name) is memory_of:
                del self.pending_memory[name]
        return batch

    def _add_letters(
        self, batch: Batch, outcomes: Sequence[RunOutcome], now: Instant, orders: Orders
    ) -> Batch:
        """The batch with the letters to authors of wishes, and the memory of them."""
        asked = [(o.check, o.report.letters) for o in outcomes if o.report and o.report.letters]
        if not asked:
            return batch
        sent = decode_memory(self._store.read_memory(LETTERS_KEY), SentLetters) or SentLetters()
        rows, memory = write_letters(asked, self._plan, now, orders, sent)
        if memory is None:
            return batch
        return replace(
            batch,
            outbox=(*batch.outbox, *rows),
            memory={**batch.memory, LETTERS_KEY: memory},
        )

    def announce_actions(self, done: ActionPassResult) -> Batch:
        """Report the actions that were not reported yet. The memory of this is written in the same
        transaction, so a crash neither loses nor repeats a report."""
        from sentinel.actions import announcements  # most checks may not act

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
        """Write messages that are due without a new observation; see
        alerting.processor.review_alerts."""
        more = self.take_over_alerts()
        now = self._clock.now()
        batch = review_alerts(
            self._alerts, self._plan, now, self._read_and_log_orders(now), self.pending_checks
        )
        if batch.alerts or batch.outbox:
            self._commit_batch(batch)
        return replace(batch, outbox=(*more, *batch.outbox))

    def report_week(self) -> bool:
        """Write the weekly report if it is due and somebody hears it now. Returns whether there is a
        message. The memory of it is written in the same transaction, so that it is sent once. A time
        that was set just now is waited for."""
        if self._plan.report is None:
            return False
        from sentinel.alerting import weekly_report  # most configurations send none

        now = self._clock.now()
        stored = self._store.read_memory(weekly_report.WEEKLY_KEY)
        orders = self._read_and_log_orders(now)
        found = weekly_report.make_report(self._plan, now, orders, stored, self._store.read_ledger)
        if found is not None:
            self._commit_batch(found)
        return found is not None and bool(found.outbox)

    def _get_alert_origin(self, key: Key) -> str:
        """The origin of an alert that begins now: the last run of its check that was stored
        durably. Passes that can store nothing all find the same run, and so does the first pass
        that can store again. So one problem has one id in all of them."""
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
                "%s %s: %s: %s",
                t.reason,
                t.status.value,
                " ".join(dict.fromkeys(visible(w) for w in (t.key.check, t.key.subject) if w)),
                visible(t.summary),
                extra={"fields": _make_log_fields(t)},
            )


def _make_log_fields(t: Transition) -> Mapping[str, str]:
    """Further fields of a log line in JSON, besides its words."""
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
