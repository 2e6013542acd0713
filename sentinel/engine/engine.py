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

from sentinel.actions.service import concerned
from sentinel.actions.worker import Errands
from sentinel.alerting.handover import Handed
from sentinel.alerting.observations import Outcome
from sentinel.alerting.processor import Rest
from sentinel.alerting.routing import lookback
from sentinel.alerting.signed_links import Signer
from sentinel.alerting.silences import Ack, Orders, Silence
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import CannotTell, Fenced, StoreError
from sentinel.core.model import Alert, Run
from sentinel.core.ports import Clock, Context
from sentinel.core.settings import CheckConfig
from sentinel.engine import heartbeat, leader_election, pulse_log
from sentinel.engine.delivery import Delivery
from sentinel.engine.external_events import Hearing
from sentinel.engine.housekeeping import Upkeep
from sentinel.engine.pipeline import Pipeline
from sentinel.engine.runner import Runner, conclude, is_due
from sentinel.engine.runtime import World as World
from sentinel.proc import threads
from sentinel.status import last_seen

if TYPE_CHECKING:
    from sentinel.core.gpu_ledger import Gpus

CONCURRENT = 32
"""Checks at work at once; each may hold a child process or two."""

LOOKS = 3
"""Second looks within one pass: while the first is waited for, others may begin to need one."""

HEARING_LIMIT = 40.0
STATE_LIMIT = 10.0
Result = TypeVar("Result")
History = Callable[[str, str, float], Sequence[tuple[Instant, float]]]
_LOG = logging.getLogger("sentinel")


class Engine:
    """Owns the store (through one thread) and everything that is in flight."""

    def __init__(
        self, world: World, store: Store, clock: Clock, notices: Sequence[str] = ()
    ) -> None:
        self.world = world
        self.committed, self.troubled = asyncio.Event(), asyncio.Event()
        self._store, self._clock = store, clock
        self._db = threads.Worker("state")
        self._errands = Errands(world.deeds, lambda: store.lease_left() > 0)
        self._upkeep = Upkeep(store, clock, self._db.call, self._errands, notices)
        self._runner = Runner()
        self._delivery = Delivery(store, world.channels, clock, self._db.call, self.committed.set)
        self._delivery.common = world.common
        self._hearing = Hearing(store, clock, self._db.call)
        self._finished: list[Outcome] = []
        self._commits = asyncio.Lock()
        self._slots = asyncio.Semaphore(CONCURRENT)
        self._busy: set[str] = set()
        self._looking_again: set[str] = set()
        self.asked: dict[str, tuple[Outcome, float]] = {}
        """Checks whose report asks for a run that is left to `check_again`, with when the first began."""
        self._at_work: set[str] = set()
        self._unseen: set[str] = set()
        self._keeping: asyncio.Future[None] | None = None
        self._started = False

    async def start(self, holder: str) -> None:
        """Become the leader of the state and read it; raises StoreBusy when another leads."""
        await self._db.call(self._store.lead, holder, self._clock.now())
        if self._store.term and (self._keeping is None or self._keeping.done()):
            keeping = leader_election.keep(
                self._store, self._db.call, self._store.term, self.troubled.set
            )
            self._keeping = asyncio.ensure_future(keeping)
            self._keeping.add_done_callback(lambda f: f.cancelled() or f.exception())
        self._pipeline = await self._db.call(Pipeline, self._store, self.world.plan, self._clock)
        self._started = True
        await self.take_over()
        await self._db.call(self._pipeline.replan, self.world.plan)
        await self._delivery.recall(lookback(self.world.plan.routes))
        await self._upkeep.begin()

    async def take_over(self, handed: Handed | None = None) -> None:
        """See Pipeline.take_over."""
        if await self._db.call(self._pipeline.take_over, handed):
            self.committed.set()

    def first_look(self, names: Iterable[str]) -> None:
        """Of a new state all that these find is told as one message, when each was `looked` at."""
        if self._pipeline.new:
            self._pipeline.new, self._unseen = False, set(names)

    def looked(self, name: str) -> None:
        """What the check has to say is there, or will not come."""
        self._at_work.discard(name)
        self._unseen.discard(name)

    async def lost_lead(self) -> None:
        """Ends, by raising Fenced, when this engine can no longer lead; else never."""
        if self._keeping is not None:
            await asyncio.shield(self._keeping)

    async def switch(self, world: World) -> None:
        """Go on with another configuration; a standby will begin with it."""
        gpus, self.world = self.world.gpus, world
        self._unseen.intersection_update(world.checks)
        self._delivery.channels, self._delivery.common = world.channels, world.common
        self._errands.switch(world.deeds)
        if gpus is not None and gpus is not world.gpus:
            await self._db.call(gpus.close)
        if self._started:
            await self._db.call(self._pipeline.replan, world.plan)

    async def check(self, name: str, *, asked: bool = True) -> None:
        """One run of a check, committed, then what it asks for; none while one is at work. Where
        a second look soon decides something, that is part of it; not `asked`: one for which only
        the report asks is left to `check_again`."""
        began = time.monotonic()
        outcome = await self._once(name)
        if name in self._looking_again:
            return
        self._looking_again.add(name)
        try:
            for _ in range(LOOKS):
                wait = self._pipeline.again(outcome, asked=asked) if outcome else None
                if wait is None:
                    return
                await asyncio.sleep(wait)
                outcome = await self._once(name, began)
        finally:
            self._looking_again.discard(name)
            if outcome and outcome.report and outcome.report.again and not asked:
                self.asked[name] = outcome, began

    async def check_again(self, name: str, until: float) -> None:
        """The runs for which the last report of a check asks, those that will have ended by `until`
        (of time.monotonic) if they take as long as the one before."""
        outcome, began = self.asked.pop(name, (None, 0.0))
        for _ in range(LOOKS):
            wait = self._pipeline.again(outcome) if outcome else None
            if outcome is None or wait is None or time.monotonic() + wait + outcome.seconds > until:
                return
            await asyncio.sleep(wait)
            outcome = await self._once(name, began)

    async def _once(self, name: str, began: float | None = None) -> Outcome | None:
        """`began`: when the first run of the pass did, of which this is a further one."""
        config = self.world.checks.get(name)
        if config is None or name in self._busy:
            return None
        self._busy.add(name)
        self._at_work.add(name)
        try:
            async with self._slots:
                may_act = concerned(config) and await self._errands.observe()
                after = time.monotonic() - began if began is not None else 0.0
                outcome = replace(await self._look(config, first=not after), after=after)
            self._finished.append(outcome)
            self.looked(name)
            await self.commit()
            if may_act:
                await self._act(config, outcome)
            return outcome
        finally:
            self._busy.discard(name)
            self.looked(name)

    async def commit(self) -> None:
        """Write all runs that have ended in one transaction; several callers share one."""
        async with self._commits:
            outcomes, self._finished = self._finished, []
            if not outcomes:
                return
            self._pipeline.rest = self._rest()
            batch = await self._db.call(self._pipeline.absorb, outcomes)
        if batch.outbox:
            self.committed.set()

    async def deliver(self) -> float | None:
        """One round of sending; seconds until the next is due, None when all is sent."""
        self.committed.clear()
        return await self._delivery.round()

    async def begin_delivery(self) -> float | None:
        """As `deliver`, but waits for no channel; `committed` is set when one has ended."""
        self.committed.clear()
        return await self._delivery.begin()

    async def drain(self, seconds: float) -> bool:
        """Send all that can be sent within the limit; whether nothing is left."""
        return await self._delivery.drain(seconds)

    async def look_at_self(self) -> None:
        """Commit what sentinel has to say about its own state and channels; `troubled` is set when
        that should not wait."""
        self.troubled.clear()
        seen = await self._upkeep.look(self.world, self._delivery.trouble)
        self._finished.append(seen)
        await self.commit()

    async def tidy(self) -> None:
        """Forget what is old, where that was not done within the hour."""
        await self._upkeep.tidy(self.world)

    async def look_around(self) -> None:
        """Keep what Slurm's nodes and jobs are like, for whoever shows it; see engine.sight."""
        sight = self.world.sight
        if sight is None or sight.busy:
            return
        now = self._clock.now()
        work = asyncio.wrap_future(threads.start("sight", lambda: sight.look(now)))
        with contextlib.suppress(asyncio.TimeoutError):
            seen = await asyncio.wait_for(work, HEARING_LIMIT)
            if seen is not None:
                self._pipeline.aside[last_seen.NODES] = seen

    @property
    def troubled_state(self) -> bool:
        """Whether the state cannot be written just now."""
        return self._store.trouble is not None

    @property
    def commits(self) -> int:
        """Grows whenever something was written."""
        return self._pipeline.commits

    async def read(self, reading: Callable[[Store], Result]) -> Result:
        """What somebody reads from the state, in its own thread."""
        return await self._db.call(reading, self._store)

    async def review(self) -> None:
        """Commit what is owed although nothing new was seen: repeats, a silence that ended."""
        async with self._commits:
            self._pipeline.rest = self._rest()
            batch = await self._db.call(self._pipeline.review)
        if batch.outbox:
            self.committed.set()

    async def hear(self) -> None:
        """Take in what others say: maintenance in Slurm, acknowledgements given elsewhere."""
        world = self.world
        whose = world.plan.cluster if world.clusters else ""
        work = self._hearing.round(world.calendar, world.channels, await self.alerts(), whose)
        with contextlib.suppress(asyncio.TimeoutError):
            if await asyncio.wait_for(work, HEARING_LIMIT):
                await self.review()

    def sign(self, signer: Signer) -> None:
        """From now on messages to people hold links by which they can answer."""
        self._delivery.signer = signer

    async def orders(self) -> Orders:
        """What people have said."""
        return await self._db.call(self._store.orders)

    async def order(self, order: Ack | Silence) -> None:
        """Write what a person has said, and tell those whom it concerns."""
        if isinstance(order, Ack):
            await self._db.call(self._store.acknowledge, order)
        else:
            await self._db.call(self._store.silence, order)
        await self.review()

    async def beat(self) -> None:
        """Tell the dead man's switch, where there is one, that all checks run and see."""
        if self.world.pulse is not None and self._store.lease_left() > 0:
            now = self._clock.now()
            await heartbeat.beat(self.world.pulse, await self.runs(), self.world.checks, now)

    async def begin(self) -> None:
        """Tell the dead man's switch that the watching begins."""
        if self.world.pulse is not None:
            await heartbeat.begin(self.world.pulse)

    async def runs(self) -> list[Run]:
        """The last run of every check."""
        return await self._db.call(self._store.runs)

    async def alerts(self) -> list[Alert]:
        """Pending and firing alerts."""
        return self._pipeline.alerts

    def stop_acting(self) -> None:
        """From now on nothing more is done for any check; what is being done is finished."""
        self._errands.end()

    async def close(self) -> None:
        """Stop leading. What hangs is left behind in daemon threads."""
        self.stop_acting()
        if self._keeping is not None:
            self._keeping.cancel()
        closed = self._db.call(_close, self._store, self.world.gpus)
        await _ended(closed, "the state was not closed in order")
        await _ended(self._errands.close(), "an action was cut short; the next start looks at it")
        self._db.stop()

    def _rest(self) -> Rest:
        checks = self.world.checks
        at_work = {name: checks[name].common.kind for name in self._at_work if name in checks}
        return Rest(checks=at_work, first=bool(self._unseen))

    async def _act(self, config: CheckConfig, outcome: Outcome) -> None:
        """Only what has been committed is acted upon: who does not lead has failed there. And only
        while the check is configured as it was: that may be what a person has just changed."""
        if self.world.checks.get(config.name) != config or self._store.lease_left() <= 0:
            return
        await self._upkeep.hear()
        requests = outcome.report.requests if outcome.report else ()
        done = await self._errands.do(config, requests)
        if done is None:
            return
        batch = await self._db.call(self._pipeline.announce, done)
        if batch.outbox:
            self.committed.set()

    async def _look(self, config: CheckConfig, *, first: bool) -> Outcome:
        """A run that cannot even be started (no thread is left) is a blind one, not none."""
        try:
            return await self._run(config, first=first)
        except Fenced:
            raise
        except Exception as error:
            _LOG.exception("check %s: its run could not be started", config.name)
            why = f"internal error: its run could not be started: {error!r}"
            return conclude(config, None, why, 0.0)

    async def _run(self, config: CheckConfig, *, first: bool) -> Outcome:
        world, cluster = self.world, config.common.cluster
        # Nodes, what was done to them and their GPUs are known by names: they are those at hand.
        ctx = Context(
            name=config.name,
            now=self._clock.now(),
            limit=config.limit,
            slurm=world.clusters[cluster] if cluster else world.slurm,
            memory=await self._db.call(self._store.memory, config.name),
            history=self._history(config.name),
            remote=None if cluster else world.remote,
            logbook=world.deeds.books if world.deeds and not cluster else None,
            gpus=None if cluster else world.gpus,
            due=first and is_due(config, self._clock.now(), world.zone),
            told=self._pipeline.last_told(config.name),
            for_=config.common.for_,
            zone=world.zone,
        )
        work = threads.start(f"run {config.name}", lambda: self._runner.run(config, ctx))
        outcome = await asyncio.wrap_future(work)
        pulse_log.leave(config, outcome, ctx.now)
        return outcome

    def _history(self, check: str) -> History:
        def samples(subject: str, name: str, seconds: float) -> list[tuple[Instant, float]]:
            since = self._clock.now().wall - int(seconds * SECOND)
            try:
                return self._db.wait(STATE_LIMIT, self._store.samples, check, subject, name, since)
            except (StoreError, TimeoutError) as error:
                why = str(error) or f"no answer within {STATE_LIMIT:.0f}s"
                raise CannotTell(f"its history cannot be read: {why}") from error

        return samples


def _close(store: Store, gpus: Gpus | None) -> None:
    store.release()
    store.close()
    if gpus is not None:
        gpus.close()


async def _ended(work: Awaitable[Any], otherwise: str) -> None:
    try:
        await asyncio.wait_for(work, STATE_LIMIT)
    except (asyncio.TimeoutError, StoreError) as error:
        _LOG.warning("%s%s", otherwise, f": {error}" if str(error) else "")
