"""Carries out the actions that checks request, one after the other."""

import logging
from collections.abc import Callable, Mapping, Sequence

from sentinel.actions.action_rules import ActionRequester, UnknownActionError
from sentinel.actions.announcements import MAX_RECORDS, ActionPassResult
from sentinel.actions.executor import ActionExecutor
from sentinel.core.action_limits import Limits
from sentinel.core.actions import ActionOutcome, ActionRecord, ActionSwitch
from sentinel.core.clock import Instant
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest
from sentinel.core.ports import AuditLog, Clock, NodeListing
from sentinel.core.settings import CheckConfig
from sentinel.core.turns import interleave

DISTRUST_PAUSE_S = 3600.0
"""Seconds without actions after a state was lost. Caps look back as long."""

EXTRA_RECORDS = 200
"""Besides its own records, a pass reads this many others, to find outcomes that were not reported
yet."""

_LOG = logging.getLogger("sentinel")


class ActionService:
    """The actions of one configuration. It is for one thread. Its writes are safe beside other
    processes."""

    def __init__(
        self, actor: ActionExecutor, audit_log: AuditLog, slurm: NodeListing, clock: Clock
    ) -> None:
        self._actor, self._slurm, self._clock = actor, slurm, clock
        self.audit_log = audit_log

    def pause_actions(self, why: str) -> None:
        """Switch maintenance on for an hour, because the former actions are not known."""
        now = self._clock.now()
        self.audit_log.set_switch(
            "maintenance", ActionSwitch(since=now, seconds=DISTRUST_PAUSE_S, why=why, by="sentinel")
        )

    def record_nodes(self) -> None:
        """Write the ledger of nodes, before a check that reads it. Raises StoreError."""
        try:
            nodes = self._slurm.nodes()
        except CannotTell:
            return  # without an answer nothing is learned, and the check itself reports it
        self.audit_log.record_readings(nodes, self._slurm.nodes_asked() or self._clock.now())

    def act_for_check(
        self,
        check: CheckConfig,
        requests: Sequence[ActionRequest],
        wanted: Callable[[], bool] = lambda: True,
    ) -> ActionPassResult:
        """Resolve open actions, then do what is allowed for this check. No action is started when
        it is no longer `wanted`. The users of the jobs take turns.

        Raises StoreError. An action that cannot be recorded is not done.
        """
        resolved = self._actor.resolve_open_records()
        in_turns = interleave(requests, lambda request: request.params.get("user", ""))
        asked = self._execute_requests(check, in_turns, wanted)
        recent = [*self.audit_log.records(limit=min(MAX_RECORDS, len(requests) + EXTRA_RECORDS))]
        known = {r.id for r in recent}
        # actions that began before the recent ones
        recent += [r for r in reversed(resolved) if r.id not in known]
        return ActionPassResult(recent=tuple(recent), imagined=_filter_imagined(asked, recent))

    def close_audit_log(self) -> None:
        """Close the log."""
        self.audit_log.close()

    def prune_audit_log(self, now: Instant) -> None:
        """Remove old records from the log."""
        self.audit_log.prune(now)

    def _execute_requests(
        self, check: CheckConfig, requests: Sequence[ActionRequest], wanted: Callable[[], bool]
    ) -> list[ActionRecord]:
        records: list[ActionRecord] = []
        scene, granted = None, get_granted_actions(check)
        for request in requests:
            if not wanted():
                break
            scene = scene or self._actor.survey_cluster()
            asker = ActionRequester(
                name=check.name,
                consent=request.action in granted,
                limits=granted.get(request.action),
            )
            try:
                records.append(self._actor.execute_request(request, asker, scene))
            except UnknownActionError as error:
                _LOG.error("check %s: %s", check.name, error)
                continue
            if records[-1].outcome.is_attempted:
                scene = None
        return records


def get_granted_actions(check: CheckConfig) -> Mapping[str, Limits | None]:
    """The actions that the check's own settings switch on."""
    given: Mapping[str, Limits | None] = check.plugin.grants()
    return given


def _filter_imagined(
    asked: Sequence[ActionRecord], stored: Sequence[ActionRecord]
) -> tuple[ActionRecord, ...]:
    known = {r.id for r in stored}
    return tuple(r for r in asked if r.outcome is ActionOutcome.INTENDED and r.id not in known)
