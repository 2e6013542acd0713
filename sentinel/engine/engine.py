"""The one way through sentinel: run checks, commit what they saw, deliver what is due.

`run` calls it from the scheduler, `tick` once; there is no third path.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from sentinel.actions.runner import ActionRunner
from sentinel.actions.service import may_request_actions
from sentinel.alerting.handover import Handover
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.processor import PendingChecks
from sentinel.alerting.routing import lookback_s
from sentinel.alerting.signed_links import LinkSigner
from sentinel.alerting.silences import Ack, Orders, Silence
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import CannotTell, Fenced, StoreError
from sentinel.core.model import Alert, CheckRun
from sentinel.core.ports import Clock, Context
from sentinel.core.settings import CheckConfig
from sentinel.engine import heartbeat, leader_election, pulse_log
from sentinel.engine.delivery import Delivery
from sentinel.engine.external_events import ExternalEvents
from sentinel.engine.housekeeping import SelfCheck
from sentinel.engine.pipeline import Pipeline
from sentinel.engine.runner import CheckRunner, is_scheduled_run, make_outcome
from sentinel.engine.runtime import RuntimeConfig as RuntimeConfig
from sentinel.proc import threads
from sentinel.status import last_seen

if TYPE_CHECKING:
    from sentinel.core.gpu_ledger import GpuLedger

MAX_CONCURRENT_CHECKS = 32
"""Checks at work at once; each may hold a child process or two."""

MAX_SECOND_LOOKS = 3
"""Second looks within one pass: while the first is waited for, others may begin to need one."""

HEARING_TIMEOUT_S = 40.0
STATE_TIMEOUT_S = 10.0
Result = TypeVar("Result")
HistoryReader = Callable[[str, str, float], Sequence[tuple[Instant, float]]]
_LOG = logging.getLogger("sentinel")


class Engine:
    """Owns the store (through one thread) and everything that is in flight."""

    def __init__(
        self, world: RuntimeConfig, store: Store, clock: Clock, notices: Sequence[str] = ()
    ) -> None:
        self.world = world
        self.committed, self.troubled = asyncio.Event(), asyncio.Event()
        self._store, self._clock = store, clock
        self._db = threads.StoreThread("state")
        self._errands = ActionRunner(world.deeds, lambda: store.get_lease_left_s() > 0)
        self._upkeep = SelfCheck(store, clock, self._db.call_async, self._errands, notices)
        self._runner = CheckRunner()
        self._delivery = Delivery(
            store, world.channels, clock, self._db.call_async, self.committed.set
        )
        self._delivery.common = world.common
        self._hearing = ExternalEvents(store, clock, self._db.call_async)
        self._finished: list[RunOutcome] = []
        self._commits = asyncio.Lock()
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_CHECKS)
        self._busy: set[str] = set()
        self._looking_again: set[str] = set()
        self.asked: dict[str, tuple[RunOutcome, float]] = {}
        """Checks whose report asks for a run that is left to `run_rechecks`, with when the first began."""
        self._at_work: set[str] = set()
        self._unseen: set[str] = set()
        self._keeping: asyncio.Future[None] | None = None
        self._started = False

    async def start_leading(self, holder: str) -> None:
        """Become the leader of the state and read it; raises StoreBusy when another leads."""
        await self._db.call_async(self._store.take_lead, holder, self._clock.now())
        if self._store.term and (self._keeping is None or self._keeping.done()):
            keeping = leader_election.keep_lease(
                self._store, self._db.call_async, self._store.term, self.troubled.set
            )
            self._keeping = asyncio.ensure_future(keeping)
            self._keeping.add_done_callback(lambda f: f.cancelled() or f.exception())
        self._pipeline = await self._db.call_async(
            Pipeline, self._store, self.world.plan, self._clock
        )
        self._started = True
        await self.take_over_alerts()
        await self._db.call_async(self._pipeline.replace_plan, self.world.plan)
        await self._delivery.recall_earlier_sends(lookback_s(self.world.plan.routes))
        await self._upkeep.take_start_notices()

    async def take_over_alerts(self, handed: Handover | None = None) -> None:
        """See Pipeline.take_over_alerts."""
        if await self._db.call_async(self._pipeline.take_over_alerts, handed):
            self.committed.set()

    def expect_first_look(self, names: Iterable[str]) -> None:
        """Of a new state all that these find is told as one message, when each was looked at."""
        if self._pipeline.new:
            self._pipeline.new, self._unseen = False, set(names)

    def mark_looked(self, name: str) -> None:
        """What the check has to say is there, or will not come."""
        self._at_work.discard(name)
        self._unseen.discard(name)

    async def wait_for_lost_lead(self) -> None:
        """Ends, by raising Fenced, when this engine can no longer lead; else never."""
        if self._keeping is not None:
            await asyncio.shield(self._keeping)

    async def switch_config(self, world: RuntimeConfig) -> None:
        """Go on with another configuration; a standby will begin with it."""
        gpus, self.world = self.world.gpus, world
        self._unseen.intersection_update(world.checks)
        self._delivery.channels, self._delivery.common = world.channels, world.common
        self._errands.switch_service(world.deeds)
        if gpus is not None and gpus is not world.gpus:
            await self._db.call_async(gpus.close)
        if self._started:
            await self._db.call_async(self._pipeline.replace_plan, world.plan)

    async def run_check(self, name: str, *, asked: bool = True) -> None:
        """One run of a check, committed, then what it asks for; none while one is at work. Where
        a second look soon decides something, that is part of it; not `asked`: one for which only
        the report asks is left to `run_rechecks`."""
        began = time.monotonic()
        outcome = await self._run_and_commit(name)
        if name in self._looking_again:
            return
        self._looking_again.add(name)
        try:
            for _ in range(MAX_SECOND_LOOKS):
                wait = (
                    self._pipeline.get_second_look_wait(outcome, asked=asked) if outcome else None
                )
                if wait is None:
                    return
                await asyncio.sleep(wait)
                outcome = await self._run_and_commit(name, began)
        finally:
            self._looking_again.discard(name)
            if outcome and outcome.report and outcome.report.again and not asked:
                self.asked[name] = outcome, began

    async def run_rechecks(self, name: str, until: float) -> None:
        """The runs for which the last report of a check asks, those that will have ended by `until`
        (of time.monotonic) if they take as long as the one before."""
        outcome, began = self.asked.pop(name, (None, 0.0))
        for _ in range(MAX_SECOND_LOOKS):
            wait = self._pipeline.get_second_look_wait(outcome) if outcome else None
            if outcome is None or wait is None or time.monotonic() + wait + outcome.seconds > until:
                return
            await asyncio.sleep(wait)
            outcome = await self._run_and_commit(name, began)

    async def _run_and_commit(self, name: str, began: float | None = None) -> RunOutcome | None:
        """`began`: when the first run of the pass did, of which this is a further one."""
        config = self.world.checks.get(name)
        if config is None or name in self._busy:
            return None
        self._busy.add(name)
        self._at_work.add(name)
        try:
            async with self._slots:
                may_act = may_request_actions(config) and await self._errands.record_nodes()
                after = time.monotonic() - began if began is not None else 0.0
                outcome = replace(await self._run_or_blind(config, first=not after), after=after)
            self._finished.append(outcome)
            self.mark_looked(name)
            await self.commit_finished()
            if may_act:
                await self._perform_requests(config, outcome)
            return outcome
        finally:
            self._busy.discard(name)
            self.mark_looked(name)

    async def commit_finished(self) -> None:
        """Write all runs that have ended in one transaction; several callers share one."""
        async with self._commits:
            outcomes, self._finished = self._finished, []
            if not outcomes:
                return
            self._pipeline.rest = self._get_pending_checks()
            batch = await self._db.call_async(self._pipeline.absorb_outcomes, outcomes)
        if batch.outbox:
            self.committed.set()

    async def deliver_due(self) -> float | None:
        """One round of sending; seconds until the next is due, None when all is sent."""
        self.committed.clear()
        return await self._delivery.send_due()

    async def begin_delivery(self) -> float | None:
        """As `deliver_due`, but waits for no channel; `committed` is set when one has ended."""
        self.committed.clear()
        return await self._delivery.begin_sending()

    async def drain_outbox(self, seconds: float) -> bool:
        """Send all that can be sent within the limit; whether nothing is left."""
        return await self._delivery.drain_outbox(seconds)

    async def check_self(self) -> None:
        """Commit what sentinel has to say about its own state and channels; `troubled` is set when
        that should not wait."""
        self.troubled.clear()
        seen = await self._upkeep.check_self(self.world, self._delivery.trouble)
        self._finished.append(seen)
        await self.commit_finished()

    async def prune_state(self) -> None:
        """Forget what is old, where that was not done within the hour."""
        await self._upkeep.prune_hourly(self.world)

    async def poll_cluster(self) -> None:
        """Keep what Slurm's nodes and jobs are like, for whoever shows it; see engine.sight."""
        sight = self.world.sight
        if sight is None or sight.busy:
            return
        now = self._clock.now()
        work = asyncio.wrap_future(threads.run_in_thread("sight", lambda: sight.poll_nodes(now)))
        with contextlib.suppress(asyncio.TimeoutError):
            seen = await asyncio.wait_for(work, HEARING_TIMEOUT_S)
            if seen is not None:
                self._pipeline.aside[last_seen.NODES_KEY] = seen

    @property
    def is_state_failing(self) -> bool:
        """Whether the state cannot be written just now."""
        return self._store.trouble is not None

    @property
    def commits(self) -> int:
        """Grows whenever something was written."""
        return self._pipeline.commits

    async def read(self, reading: Callable[[Store], Result]) -> Result:
        """What somebody reads from the state, in its own thread."""
        return await self._db.call_async(reading, self._store)

    async def review_alerts(self) -> None:
        """Commit what is owed although nothing new was seen: repeats, a silence that ended."""
        async with self._commits:
            self._pipeline.rest = self._get_pending_checks()
            batch = await self._db.call_async(self._pipeline.review_alerts)
        if batch.outbox:
            self.committed.set()

    async def poll_external_events(self) -> None:
        """Take in what others say: maintenance in Slurm, acknowledgements given elsewhere."""
        world = self.world
        whose = world.plan.cluster if world.clusters else ""
        work = self._hearing.poll_events(world.calendar, world.channels, await self.alerts(), whose)
        with contextlib.suppress(asyncio.TimeoutError):
            if await asyncio.wait_for(work, HEARING_TIMEOUT_S):
                await self.review_alerts()

    def set_link_signer(self, signer: LinkSigner) -> None:
        """From now on messages to people hold links by which they can answer."""
        self._delivery.signer = signer

    async def orders(self) -> Orders:
        """What people have said."""
        return await self._db.call_async(self._store.read_orders)

    async def order(self, order: Ack | Silence) -> None:
        """Write what a person has said, and tell those whom it concerns."""
        if isinstance(order, Ack):
            await self._db.call_async(self._store.put_ack, order)
        else:
            await self._db.call_async(self._store.put_silence, order)
        await self.review_alerts()

    async def send_heartbeat(self) -> None:
        """Tell the dead man's switch, where there is one, that all checks run and see."""
        if self.world.pulse is not None and self._store.get_lease_left_s() > 0:
            now = self._clock.now()
            await heartbeat.send_heartbeat(
                self.world.pulse, await self.read_runs(), self.world.checks, now
            )

    async def announce_start(self) -> None:
        """Tell the dead man's switch that the watching begins."""
        if self.world.pulse is not None:
            await heartbeat.send_start_signal(self.world.pulse)

    async def read_runs(self) -> list[CheckRun]:
        """The last run of every check."""
        return await self._db.call_async(self._store.read_runs)

    async def alerts(self) -> list[Alert]:
        """Pending and firing alerts."""
        return self._pipeline.active_alerts

    def stop_acting(self) -> None:
        """From now on nothing more is done for any check; what is being done is finished."""
        self._errands.stop_new_actions()

    async def close(self) -> None:
        """Stop leading. What hangs is left behind in daemon threads."""
        self.stop_acting()
        if self._keeping is not None:
            self._keeping.cancel()
        closed = self._db.call_async(_close_stores, self._store, self.world.gpus)
        await _wait_or_warn(closed, "the state was not closed in order")
        await _wait_or_warn(
            self._errands.finish_actions(), "an action was cut short; the next start looks at it"
        )
        self._db.stop_thread()

    def _get_pending_checks(self) -> PendingChecks:
        checks = self.world.checks
        at_work = {name: checks[name].common.kind for name in self._at_work if name in checks}
        return PendingChecks(checks=at_work, first=bool(self._unseen))

    async def _perform_requests(self, config: CheckConfig, outcome: RunOutcome) -> None:
        """Only what has been committed is acted upon: who does not lead has failed there. And only
        while the check is configured as it was: that may be what a person has just changed."""
        if self.world.checks.get(config.name) != config or self._store.get_lease_left_s() <= 0:
            return
        await self._upkeep.take_new_notices()
        requests = outcome.report.requests if outcome.report else ()
        done = await self._errands.run_actions(config, requests)
        if done is None:
            return
        batch = await self._db.call_async(self._pipeline.announce_actions, done)
        if batch.outbox:
            self.committed.set()

    async def _run_or_blind(self, config: CheckConfig, *, first: bool) -> RunOutcome:
        """A run that cannot even be started (no thread is left) is a blind one, not none."""
        try:
            return await self._run_in_thread(config, first=first)
        except Fenced:
            raise
        except Exception as error:
            _LOG.exception("check %s: its run could not be started", config.name)
            why = f"internal error: its run could not be started: {error!r}"
            return make_outcome(config, None, why, 0.0)

    async def _run_in_thread(self, config: CheckConfig, *, first: bool) -> RunOutcome:
        world, cluster = self.world, config.common.cluster
        # Nodes, what was done to them and their GPUs are known by names: they are those at hand.
        ctx = Context(
            name=config.name,
            now=self._clock.now(),
            limit=config.timeout_s,
            slurm=world.clusters[cluster] if cluster else world.slurm,
            memory=await self._db.call_async(self._store.read_memory, config.name),
            history=self._make_history_reader(config.name),
            remote=None if cluster else world.remote,
            logbook=world.deeds.books if world.deeds and not cluster else None,
            gpus=None if cluster else world.gpus,
            due=first and is_scheduled_run(config, self._clock.now(), world.zone),
            told=self._pipeline.get_last_notified(config.name),
            for_=config.common.for_,
            zone=world.zone,
        )
        work = threads.run_in_thread(f"run {config.name}", lambda: self._runner.run(config, ctx))
        outcome = await asyncio.wrap_future(work)
        pulse_log.write_pulse_line(config, outcome, ctx.now)
        return outcome

    def _make_history_reader(self, check: str) -> HistoryReader:
        def read_recent_samples(
            subject: str, name: str, seconds: float
        ) -> list[tuple[Instant, float]]:
            since = self._clock.now().wall - int(seconds * SECOND)
            try:
                return self._db.call_and_wait(
                    STATE_TIMEOUT_S, self._store.read_samples, check, subject, name, since
                )
            except (StoreError, TimeoutError) as error:
                why = str(error) or f"no answer within {STATE_TIMEOUT_S:.0f}s"
                raise CannotTell(f"its history cannot be read: {why}") from error

        return read_recent_samples


def _close_stores(store: Store, gpus: GpuLedger | None) -> None:
    store.release_lead()
    store.close()
    if gpus is not None:
        gpus.close()


async def _wait_or_warn(work: Awaitable[Any], otherwise: str) -> None:
    try:
        await asyncio.wait_for(work, STATE_TIMEOUT_S)
    except (asyncio.TimeoutError, StoreError) as error:
        _LOG.warning("%s%s", otherwise, f": {error}" if str(error) else "")
