"""What checks ask to be done: beside the watching, and only while it can be written down."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from sentinel.actions.announcements import Done
from sentinel.actions.service import Deeds
from sentinel.core.clock import Instant
from sentinel.core.errors import StoreError
from sentinel.core.model import ActionRequest
from sentinel.core.settings import CheckConfig
from sentinel.proc import threads

LIMIT = 60.0
"""Seconds for a look at Slurm's nodes and what is written down of it."""

_LOG = logging.getLogger("sentinel")


class Errands:
    """Actions are done one after the other in a thread of their own, which may take minutes; what
    is only written is written beside them. `leads`: whether this process may do anything now.
    `trouble` says why nothing is done; empty while all is well."""

    def __init__(self, deeds: Deeds | None, leads: Callable[[], bool]) -> None:
        self.deeds, self.trouble = deeds, ""
        self._leads, self._ending = leads, False
        self._lost: list[str] = []
        self._stuck: Future[None] | None = None
        self._hands = threads.Worker("hands")

    def switch(self, deeds: Deeds | None) -> None:
        """Go on with those of another configuration. Of the old one nothing more is begun, and its
        end is not waited for."""
        before, self.deeds, self.trouble = self.deeds, deeds, ""
        if before is not None and before is not deeds:
            self._hands.submit(before.close)

    async def distrust(self, news: Sequence[str]) -> bool:
        """A state that was set aside took the memory of what was done with it. Whether the pause
        that follows is written down: until it is, nothing may be done either."""
        self._lost += news
        deeds, why = self.deeds, "; ".join(self._lost)
        if deeds is None or not why:
            return True
        try:
            await self._beside(lambda: deeds.distrust(why))
        except Exception as error:
            return self._failed(error)
        self._lost = []
        return True

    async def observe(self) -> bool:
        """Write the ledger of nodes: before a check reads it, and before anything is done. Whether
        anything may be."""
        if self.deeds is None:
            return False
        try:
            await self._beside(self.deeds.observe)
        except Exception as error:
            return self._failed(error)
        return True

    async def do(self, check: CheckConfig, requests: Sequence[ActionRequest]) -> Done | None:
        """What was done of it; None where nothing may be."""
        deeds = self.deeds
        if deeds is None or not await self.distrust(()):
            return None

        def wanted() -> bool:
            return self.deeds is deeds and self._leads() and not self._ending

        try:
            done = await self._hands.call(deeds.after, check, requests, wanted)
        except Exception as error:
            self._failed(error)
            return None
        self.trouble = ""
        return done

    async def prune(self, now: Instant) -> None:
        """Let the log forget what is old; raises StoreError."""
        deeds = self.deeds
        if deeds is not None:
            await self._beside(lambda: deeds.prune(now))

    def end(self) -> None:
        """From now on nothing more is begun."""
        self._ending = True

    async def close(self) -> None:
        """After what is being done just now."""
        self.end()
        if self.deeds is not None:
            await self._hands.call(self.deeds.close)
        self._hands.stop()

    async def _beside(self, work: Callable[[], None]) -> None:
        """In a thread of its own, as the state may hang; nothing more while one still hangs."""
        if self._stuck is not None and not self._stuck.done():
            raise StoreError("the state hangs")
        doing = threads.start("log of actions", work)
        try:
            await asyncio.wait_for(asyncio.wrap_future(doing), LIMIT)
        except asyncio.TimeoutError:
            self._stuck = doing
            raise StoreError(f"the state hangs: no answer within {LIMIT:.0f} s") from None

    def _failed(self, error: Exception) -> bool:
        why = f"the log of actions cannot be written: {error}"
        if not isinstance(error, StoreError):
            _LOG.error("actions failed inside", exc_info=error)
            why = f"internal error: {error!r}"
        self.trouble = f"no action is taken, {why}"
        return False
