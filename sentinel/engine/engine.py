"""The one way through sentinel: run checks, commit what they saw, deliver what is due.

`run` calls it from the scheduler, `tick` once; there is no third path.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import TypeVar

from msgspec import Struct

from sentinel.core import looks
from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.digest import Plan
from sentinel.core.errors import CannotTell, Fenced, StoreError
from sentinel.core.gpus import Gpus
from sentinel.core.links import Signer
from sentinel.core.model import Alert, Batch, Report, Run
from sentinel.core.mute import Ack, Orders, Silence
from sentinel.core.outcome import Outcome
from sentinel.core.ports import Calendar, Channel, Clock, Context, Pulse, Slurm, Store
from sentinel.core.remote import Remote
from sentinel.core.routing import lookback
from sentinel.core.settings import ChannelCommon, CheckConfig
from sentinel.core.values import duration_text
from sentinel.engine import heartbeat, selfcheck, standby, threads
from sentinel.engine.deeds import Deeds, concerned
from sentinel.engine.delivery import Delivery
from sentinel.engine.hearing import Hearing
from sentinel.engine.peer import Look, PeerWatch
from sentinel.engine.pipeline import Pipeline
from sentinel.engine.runner import Runner, is_due, limit
from sentinel.engine.sight import Sight
from sentinel.proc.appending import append_line

CONCURRENT = 32
"""Checks at work at once; each may hold a child process or two."""

HEARING_LIMIT = 40.0
HOUSEKEEPING, DAY = "sentinel/housekeeping", 86400
STATE_LIMIT = 10.0
PULSE_LIMIT = 5.0
Result = TypeVar("Result")
History = Callable[[str, str, float], Sequence[tuple[Instant, float]]]
_LOG = logging.getLogger("sentinel")


class World(Struct, kw_only=True):
    """All that a configuration turns into; a reload replaces it as a whole."""

    checks: Mapping[str, CheckConfig]
    channels: Mapping[str, Channel]
    plan: Plan
    slurm: Slurm
    zone: tzinfo
    common: Mapping[str, ChannelCommon] = {}
    pulse: Pulse | None = None
    pulse_every: float = 300.0
    remote: Remote | None = None
    deeds: Deeds | None = None
    calendar: Calendar | None = None
    peer: PeerWatch | None = None
    gpus: Gpus | None = None
    sight: Sight | None = None


class Engine:
    """Owns the store (through one thread) and everything that is in flight."""

    def __init__(
        self, world: World, store: Store, clock: Clock, notices: Sequence[str] = ()
    ) -> None:
        self.world = world
        self.committed = asyncio.Event()
        self._store, self._clock = store, clock
        self._notices = selfcheck.Notices(notices, clock.now())
        self._db, self._hands = threads.Worker("state"), threads.Worker("hands")
        self._unable = ""
        self._runner = Runner()
        self._delivery = Delivery(store, world.channels, clock, self._db.call, self.committed.set)
        self._delivery.common = world.common
        self._hearing = Hearing(store, clock, self._db.call)
        self._finished: list[Outcome] = []
        self._commits = asyncio.Lock()
        self._slots = asyncio.Semaphore(CONCURRENT)
        self._busy: set[str] = set()
        self._keeping: asyncio.Future[None] | None = None

    async def start(self, holder: str) -> None:
        """Become the leader of the state and read it; raises StoreBusy when another leads."""
        await self._db.call(self._store.lead, holder, self._clock.now())
        if self._store.term:
            keeping = standby.keep(self._store, self._db.call, self._store.term)
            self._keeping = asyncio.ensure_future(keeping)
            self._keeping.add_done_callback(lambda f: f.cancelled() or f.exception())
        self._pipeline = await self._db.call(Pipeline, self._store, self.world.plan, self._clock)
        await self._db.call(self._pipeline.replan, self.world.plan)
        await self._delivery.recall(lookback(self.world.plan.routes))
        await self._distrust(self._notices.current(self._clock.now()))

    async def lost_lead(self) -> None:
        """Ends, by raising Fenced, when this engine can no longer lead; else never."""
        if self._keeping is not None:
            await asyncio.shield(self._keeping)

    async def switch(self, world: World) -> None:
        """Go on with another configuration."""
        before, gpus, self.world = self.world.deeds, self.world.gpus, world
        if before is not None and before is not world.deeds:
            await self._hands.call(before.close)
        if gpus is not None and gpus is not world.gpus:
            await self._db.call(gpus.close)
        self._delivery.channels, self._delivery.common = world.channels, world.common
        await self._db.call(self._pipeline.replan, world.plan)

    async def check(self, name: str) -> None:
        """One run of one check, committed, and then what it asks for; a check that is still at
        work is not started again."""
        config = self.world.checks.get(name)
        if config is None or name in self._busy:
            return
        self._busy.add(name)
        try:
            async with self._slots:
                may_act = concerned(config) and await self._observe()
                outcome = await self._look(config)
            self._finished.append(outcome)
            await self.commit()
            if may_act:
                await self._act(config, outcome)
        finally:
            self._busy.discard(name)

    async def commit(self) -> None:
        """Write all runs that have ended in one transaction; several callers share one."""
        async with self._commits:
            outcomes, self._finished = self._finished, []
            if not outcomes:
                return
            try:
                batch = await self._db.call(self._pipeline.absorb, outcomes)
            except StoreError:
                self._finished = outcomes + self._finished
                raise
        if batch.outbox:
            self.committed.set()

    async def deliver(self) -> float | None:
        """One round of sending; seconds until the next is due, None when all is sent."""
        self.committed.clear()
        return await self._delivery.round()

    async def begin_delivery(self) -> float | None:
        """As `deliver`, but no channel is waited for: a slow one holds up no other. `committed`
        is set when one has ended."""
        self.committed.clear()
        return await self._delivery.begin()

    async def drain(self, seconds: float) -> bool:
        """Send all that can be sent within the limit; whether nothing is left."""
        return await self._delivery.drain(seconds)

    async def look_at_self(self, troubles: Iterable[str] = ()) -> None:
        """Commit what sentinel has to say about its own state and channels."""
        news = await self._db.call(_news, self._store)
        self._notices.add(news, self._clock.now())
        await self._distrust(news)
        peer = await self._look_at_peer()
        own = [self._unable] if self._unable else []
        now = self._clock.now()
        state = [*self._notices.current(now), *troubles, *own, *_store_trouble(self._store, now)]
        more, memory = ([peer.finding], peer.memory) if peer else ([], None)
        channels = self._delivery.trouble
        self._finished.append(
            selfcheck.outcome(state, channels, self.world.channels, now, more, memory)
        )
        await self.commit()

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
                self._pipeline.aside[looks.NODES] = seen

    @property
    def commits(self) -> int:
        """Grows whenever something was written."""
        return self._pipeline.commits

    async def read(self, reading: Callable[[Store], Result]) -> Result:
        """What somebody reads from the state, in its own thread."""
        return await self._db.call(reading, self._store)

    async def _look_at_peer(self) -> Look | None:
        watch = self.world.peer
        if watch is None:
            return None
        memory = await self._db.call(self._store.memory, selfcheck.NAME)
        now = self._clock.now()
        return await asyncio.wrap_future(threads.start("peer", lambda: watch.look(memory, now)))

    async def review(self) -> None:
        """Commit what is owed although nothing new was seen: repeats, a silence that ended."""
        async with self._commits:
            batch = await self._db.call(self._pipeline.review)
        if batch.outbox:
            self.committed.set()

    async def hear(self) -> None:
        """Take in what others say: maintenance in Slurm, acknowledgements given elsewhere."""
        world = self.world
        work = self._hearing.round(world.calendar, world.channels, await self.alerts())
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

    async def prune_daily(self) -> None:
        """Forget what is old, once a day: the state knows when that was, for a tick does not."""
        now = self._clock.now()
        last = (await self._db.call(self._store.memory, HOUSEKEEPING)).get("pruned")
        if isinstance(last, int) and 0 <= now.wall - last < DAY * SECOND:
            return
        try:
            await self.prune()
            memory = {HOUSEKEEPING: {"pruned": now.wall}}
            await self._db.call(self._store.commit, Batch(at=now, memory=memory))
        except Fenced:
            raise
        except (
            StoreError
        ) as error:  # a full disk is told by the self-check, and must hold up nothing
            _LOG.warning("the state was not pruned: %s", error)

    async def prune(self) -> None:
        """Let the store forget what is old."""
        await self._db.call(self._store.prune, self._clock.now())
        if self.world.deeds is not None:
            await self._hands.call(self.world.deeds.prune, self._clock.now())
        if self.world.gpus:
            await self._db.call(self.world.gpus.prune, self._clock.now())

    async def runs(self) -> list[Run]:
        """The last run of every check."""
        return await self._db.call(self._store.runs)

    async def alerts(self) -> list[Alert]:
        """Pending and firing alerts."""
        return self._pipeline.alerts

    async def close(self) -> None:
        """Stop leading. What hangs is left behind in daemon threads."""
        if self._keeping is not None:
            self._keeping.cancel()
        try:
            await asyncio.wait_for(self._db.call(self._store.release), STATE_LIMIT)
            await asyncio.wait_for(self._db.call(self._store.close), STATE_LIMIT)
            if self.world.deeds is not None:
                await asyncio.wait_for(self._hands.call(self.world.deeds.close), STATE_LIMIT)
            if self.world.gpus is not None:
                await asyncio.wait_for(self._db.call(self.world.gpus.close), STATE_LIMIT)
        except (asyncio.TimeoutError, StoreError) as error:
            _LOG.warning("state not closed: %r", error)
        self._db.stop()
        self._hands.stop()

    async def _distrust(self, news: Sequence[str]) -> None:
        """A state that was set aside took the memory of what was done with it."""
        deeds = self.world.deeds
        if not news or deeds is None:
            return
        try:
            await self._hands.call(deeds.distrust, "; ".join(news))
        except StoreError as error:
            _LOG.warning("maintenance could not be switched on: %s", error)

    async def _act(self, config: CheckConfig, outcome: Outcome) -> None:
        """Only what has been committed is acted upon: who does not lead has failed there."""
        deeds = self.world.deeds
        if deeds is None or self._store.lease_left() <= 0:
            return
        requests = outcome.report.requests if outcome.report else ()
        try:
            done = await self._hands.call(deeds.after, config, requests)
        except StoreError as error:
            self._unable = f"no action is taken, the log of actions cannot be written: {error}"
            return
        self._unable = ""
        batch = await self._db.call(self._pipeline.announce, done)
        if batch.outbox:
            self.committed.set()

    async def _observe(self) -> bool:
        """The ledger of nodes is written before a check reads it, and before anything is done."""
        if self.world.deeds is None:
            return False
        try:
            await self._hands.call(self.world.deeds.observe)
        except StoreError as error:
            self._unable = f"no action is taken, the log of actions cannot be written: {error}"
            return False
        return True

    async def _look(self, config: CheckConfig) -> Outcome:
        ctx = Context(
            name=config.name,
            now=self._clock.now(),
            limit=limit(config),
            slurm=self.world.slurm,
            memory=await self._db.call(self._store.memory, config.name),
            history=self._history(config.name),
            remote=self.world.remote,
            logbook=self.world.deeds.books if self.world.deeds else None,
            gpus=self.world.gpus,
            due=is_due(config, self._clock.now(), self.world.zone),
        )
        work = threads.start(f"run {config.name}", lambda: self._run(config, ctx))
        return await asyncio.wrap_future(work)

    def _run(self, config: CheckConfig, ctx: Context) -> Outcome:
        outcome = self._runner.run(config, ctx)
        pulse = getattr(config.plugin, "pulse", None)
        line = (
            pulse(outcome.report or Report(findings=outcome.findings), ctx.now) if pulse else None
        )
        if line:
            threading.Thread(target=_append, args=line, name="pulse", daemon=True).start()
        return outcome

    def _history(self, check: str) -> History:
        def samples(subject: str, name: str, seconds: float) -> list[tuple[Instant, float]]:
            since = self._clock.now().wall - int(seconds * SECOND)
            return self._db.wait(STATE_LIMIT, self._store.samples, check, subject, name, since)

        return samples


def _append(path: str, line: str) -> None:
    text = line.rstrip("\n").encode("utf-8", "backslashreplace")
    try:
        done = append_line(path, text, limit=PULSE_LIMIT)
    except CannotTell as error:
        _LOG.warning("pulse_log %s: %s", path, error)
        return
    if done.code:
        _LOG.warning("pulse_log %s: %s", path, done.err.decode("utf-8", "replace").strip())


def _news(store: Store) -> tuple[str, ...]:
    """What a store that mends itself has to tell; harmless for one that does not."""
    take = getattr(store, "take_notices", tuple)
    news: tuple[str, ...] = take()
    return news


def _store_trouble(store: Store, now: Instant) -> list[str]:
    trouble = getattr(store, "trouble", None)
    if trouble is None:
        return []
    age = duration_text(elapsed(trouble.since, now))
    lost = "; so many that samples are lost" if trouble.lost_detail else ""
    waiting = f"{trouble.waiting} writes wait in memory{lost}"
    return [f"{trouble.why}; not written for {age}, {waiting}"]
