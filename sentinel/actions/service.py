"""The hands of an engine: what checks ask for, carried out one after the other."""

import logging
from collections.abc import Callable, Mapping, Sequence

from sentinel.actions.announcements import MAX_RECORDS, ActionPassResult
from sentinel.actions.executor import ActionExecutor, ActionRequester, UnknownActionError
from sentinel.core.action_limits import Limits
from sentinel.core.actions import ActionOutcome, ActionRecord, ActionSwitch
from sentinel.core.clock import Instant
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest
from sentinel.core.ports import AuditLog, Clock, NodeListing
from sentinel.core.settings import CheckConfig

DISTRUST_PAUSE_S = 3600.0
"""Seconds without actions after a state was lost: as long as caps look back."""

EXTRA_RECORDS = 200
"""Records beside its own that a pass looks through for what nobody has heard of yet."""

_LOG = logging.getLogger("sentinel")


class ActionService:
    """One per configuration. For one thread; what it writes is safe beside other processes."""

    def __init__(
        self, actor: ActionExecutor, books: AuditLog, slurm: NodeListing, clock: Clock
    ) -> None:
        self._actor, self._slurm, self._clock = actor, slurm, clock
        self.books = books

    def pause_actions(self, why: str) -> None:
        """Throw the maintenance switch for an hour: nobody knows what was done before."""
        now = self._clock.now()
        self.books.set_switch(
            "maintenance", ActionSwitch(since=now, seconds=DISTRUST_PAUSE_S, why=why, by="sentinel")
        )

    def record_nodes(self) -> None:
        """Keep the ledger of nodes: before a check that reads it. Raises StoreError."""
        try:
            nodes = self._slurm.nodes()
        except CannotTell:
            return  # who is blind learns nothing; the check says so itself
        self.books.record_readings(nodes, self._slurm.nodes_asked() or self._clock.now())

    def act_for_check(
        self,
        check: CheckConfig,
        requests: Sequence[ActionRequest],
        wanted: Callable[[], bool] = lambda: True,
    ) -> ActionPassResult:
        """Find out about open actions, do what may be done for this check; nothing more is begun
        when it is no longer `wanted`.

        Raises StoreError: what cannot be written down is not done.
        """
        resolved = self._actor.resolve_open_records()
        asked = self._execute_requests(check, requests, wanted)
        recent = [*self.books.records(limit=min(MAX_RECORDS, len(requests) + EXTRA_RECORDS))]
        known = {r.id for r in recent}
        recent += [r for r in reversed(resolved) if r.id not in known]  # begun long ago
        return ActionPassResult(recent=tuple(recent), imagined=_filter_imagined(asked, recent))

    def close_audit_log(self) -> None:
        """Let go of the log."""
        self.books.close()

    def prune_audit_log(self, now: Instant) -> None:
        """Let the log forget what is old."""
        self.books.prune(now)

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


def may_request_actions(check: CheckConfig) -> bool:
    """Whether the check may ask for actions, as it is configured: else no log of them is kept. Only the
    cluster at hand is ever changed."""
    asks: bool = check.plugin.may_ask
    return asks and not check.common.cluster


def _filter_imagined(
    asked: Sequence[ActionRecord], stored: Sequence[ActionRecord]
) -> tuple[ActionRecord, ...]:
    known = {r.id for r in stored}
    return tuple(r for r in asked if r.outcome is ActionOutcome.INTENDED and r.id not in known)
