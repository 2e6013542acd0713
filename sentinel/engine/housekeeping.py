"""What a sentinel does about itself: hears of its state, forgets what is old, looks at its peer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from sentinel.actions.worker import Errands
from sentinel.alerting.observations import Outcome
from sentinel.core.clock import SECOND
from sentinel.core.errors import Fenced, StoreError
from sentinel.core.model import Batch
from sentinel.core.ports import Clock, Store
from sentinel.engine import selfcheck
from sentinel.engine.peer_check import Look, PeerWatch
from sentinel.engine.runtime import World
from sentinel.engine.selfcheck import Trouble
from sentinel.proc import threads

HOUSEKEEPING = "sentinel/housekeeping"
"""Under this name the state remembers when it was tidied last: a tick does not."""

PAUSE = 3600.0
"""Seconds between two rounds of forgetting: an hour's worth each, so that none takes long."""

_LOG = logging.getLogger("sentinel")
Call = Callable[..., Awaitable[Any]]


class Upkeep:
    """`call` runs a method of the store where it may block; `notices` are news of its start."""

    def __init__(
        self, store: Store, clock: Clock, call: Call, errands: Errands, notices: Sequence[str]
    ) -> None:
        self._store, self._clock, self._call = store, clock, call
        self._errands = errands
        self._notices = selfcheck.Notices(notices, clock.now())

    async def begin(self) -> None:
        """What the start met counts as what comes later."""
        await self._errands.distrust(self._notices.current(self._clock.now()))

    async def hear(self) -> None:
        """What has happened to the state since, before anything rests on what it remembers."""
        news = await self._call(selfcheck.news, self._store)
        self._notices.add(news, self._clock.now())
        await self._errands.distrust(news)

    async def look(
        self, world: World, channels: Mapping[str, Trouble | None], troubles: Iterable[str]
    ) -> Outcome:
        """The run of the check that watches sentinel; `troubles` are those of its host."""
        await self.hear()
        peer = await self._look_at(world.peer) if world.peer else None
        now = self._clock.now()
        own = [self._errands.trouble] if self._errands.trouble else []
        state = [*self._notices.current(now), *troubles, *own, *selfcheck.writing(self._store, now)]
        more, memory = ([peer.finding], peer.memory) if peer else ([], None)
        return selfcheck.outcome(state, channels, world.channels, now, more, memory)

    async def tidy(self, world: World) -> None:
        """Forget what is old, once an hour. What cannot be written (a full disk) is told by the
        self-check, and must hold up nothing."""
        now = self._clock.now()
        last = (await self._call(self._store.memory, HOUSEKEEPING)).get("pruned")
        if isinstance(last, int) and 0 <= now.wall - last < PAUSE * SECOND:
            return
        try:
            memory = {HOUSEKEEPING: {"pruned": now.wall}}  # first: what fails waits for its turn
            await self._call(self._store.commit, Batch(at=now, memory=memory))
            await self._forget(world)
        except Fenced:
            raise
        except StoreError as error:
            _LOG.warning("the state was not pruned: %s", error)

    async def _forget(self, world: World) -> None:
        now = self._clock.now()
        await self._call(self._store.prune, now)
        await self._errands.prune(now)
        if world.gpus is not None:
            await self._call(world.gpus.prune, now)

    async def _look_at(self, watch: PeerWatch) -> Look:
        memory = await self._call(self._store.memory, selfcheck.NAME)
        now = self._clock.now()
        return await asyncio.wrap_future(threads.start("peer", lambda: watch.look(memory, now)))
