"""The hands of an engine: what checks ask for, carried out one after the other."""

import logging
from collections.abc import Callable, Mapping, Sequence

from sentinel.actions.announcements import MOST, Done
from sentinel.actions.executor import Actor, Asker, NoSuchAction
from sentinel.core.action_limits import Limits
from sentinel.core.actions import ActionRecord, Outcome, Switch
from sentinel.core.clock import Instant
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest
from sentinel.core.ports import Books, Clock, Listing
from sentinel.core.settings import CheckConfig

DISTRUST = 3600.0
"""Seconds without actions after a state was lost: as long as caps look back."""

RECENT = 200
"""Records beside its own that a pass looks through for what nobody has heard of yet."""

_LOG = logging.getLogger("sentinel")


class Deeds:
    """One per configuration. For one thread; what it writes is safe beside other processes."""

    def __init__(self, actor: Actor, books: Books, slurm: Listing, clock: Clock) -> None:
        self._actor, self._slurm, self._clock = actor, slurm, clock
        self.books = books

    def distrust(self, why: str) -> None:
        """Throw the maintenance switch for an hour: nobody knows what was done before."""
        now = self._clock.now()
        self.books.switch(
            "maintenance", Switch(since=now, seconds=DISTRUST, why=why, by="sentinel")
        )

    def observe(self) -> None:
        """Keep the ledger of nodes: before a check that reads it. Raises StoreError."""
        try:
            nodes = self._slurm.nodes()
        except CannotTell:
            return  # who is blind learns nothing; the check says so itself
        self.books.observe(nodes, self._slurm.nodes_asked() or self._clock.now())

    def after(
        self,
        check: CheckConfig,
        requests: Sequence[ActionRequest],
        wanted: Callable[[], bool] = lambda: True,
    ) -> Done:
        """Find out about open actions, do what may be done for this check; nothing more is begun
        when it is no longer `wanted`.

        Raises StoreError: what cannot be written down is not done.
        """
        resolved = self._actor.resolve()
        asked = self._act_on(check, requests, wanted)
        recent = [*self.books.records(limit=min(MOST, len(requests) + RECENT))]
        known = {r.id for r in recent}
        recent += [r for r in reversed(resolved) if r.id not in known]  # begun long ago
        return Done(recent=tuple(recent), imagined=_imagined(asked, recent))

    def close(self) -> None:
        """Let go of the log."""
        self.books.close()

    def prune(self, now: Instant) -> None:
        """Let the log forget what is old."""
        self.books.prune(now)

    def _act_on(
        self, check: CheckConfig, requests: Sequence[ActionRequest], wanted: Callable[[], bool]
    ) -> list[ActionRecord]:
        records: list[ActionRecord] = []
        scene, granted = None, grants(check)
        for request in requests:
            if not wanted():
                break
            scene = scene or self._actor.survey()
            asker = Asker(
                name=check.name,
                consent=request.action in granted,
                limits=granted.get(request.action),
            )
            try:
                records.append(self._actor.act(request, asker, scene))
            except NoSuchAction as error:
                _LOG.error("check %s: %s", check.name, error)
                continue
            if records[-1].outcome.tried:
                scene = None
        return records


def grants(check: CheckConfig) -> Mapping[str, Limits | None]:
    """The actions that the check's own settings switch on."""
    given: Mapping[str, Limits | None] = check.plugin.grants()
    return given


def concerned(check: CheckConfig) -> bool:
    """Whether the check may ask for actions, as it is configured: else no log of them is kept. Only the
    cluster at hand is ever changed."""
    asks: bool = check.plugin.may_ask
    return asks and not check.common.cluster


def _imagined(
    asked: Sequence[ActionRecord], stored: Sequence[ActionRecord]
) -> tuple[ActionRecord, ...]:
    known = {r.id for r in stored}
    return tuple(r for r in asked if r.outcome is Outcome.INTENDED and r.id not in known)
