"""What checks ask to be done: beside the watching, and only while it can be written down."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from sentinel.actions.announcements import ActionPassResult
from sentinel.actions.service import ActionService
from sentinel.core.clock import Instant
from sentinel.core.errors import StoreError
from sentinel.core.model import ActionRequest
from sentinel.core.settings import CheckConfig
from sentinel.proc import threads

STATE_TIMEOUT_S = 60.0
"""Seconds for a look at Slurm's nodes and what is written down of it."""

_LOG = logging.getLogger("sentinel")


class ActionRunner:
    """Actions are done one after the other in a thread of their own, which may take minutes; what
    is only written is written beside them. `leads`: whether this process may do anything now.
    `trouble` says why nothing is done; empty while all is well."""

    def __init__(self, deeds: ActionService | None, leads: Callable[[], bool]) -> None:
        self.deeds, self.trouble = deeds, ""
        self._leads, self._ending = leads, False
        self._lost: list[str] = []
        self._stuck: Future[None] | None = None
        self._hands = threads.StoreThread("hands")

    def switch_service(self, deeds: ActionService | None) -> None:
        """Go on with those of another configuration. Of the old one nothing more is begun, and its
        end is not waited for."""
        before, self.deeds, self.trouble = self.deeds, deeds, ""
        if before is not None and before is not deeds:
            self._hands.submit_call(before.close_audit_log)

    async def pause_after_lost_state(self, news: Sequence[str]) -> bool:
        """A state that was set aside took the memory of what was done with it. Whether the pause
        that follows is written down: until it is, nothing may be done either."""
        self._lost += news
        deeds, why = self.deeds, "; ".join(self._lost)
        if deeds is None or not why:
            return True
        try:
            await self._run_beside_actions(lambda: deeds.pause_actions(why))
        except Exception as error:
            return self._note_failure(error)
        self._lost = []
        return True

    async def record_nodes(self) -> bool:
        """Write the ledger of nodes: before a check reads it, and before anything is done. Whether
        anything may be."""
        if self.deeds is None:
            return False
        try:
            await self._run_beside_actions(self.deeds.record_nodes)
        except Exception as error:
            return self._note_failure(error)
        return True

    async def run_actions(
        self, check: CheckConfig, requests: Sequence[ActionRequest]
    ) -> ActionPassResult | None:
        """What was done of it; None where nothing may be."""
        deeds = self.deeds
        if deeds is None or not await self.pause_after_lost_state(()):
            return None

        def is_still_wanted() -> bool:
            return self.deeds is deeds and self._leads() and not self._ending

        try:
            done = await self._hands.call_async(
                deeds.act_for_check, check, requests, is_still_wanted
            )
        except Exception as error:
            self._note_failure(error)
            return None
        self.trouble = ""
        return done

    async def prune_audit_log(self, now: Instant) -> None:
        """Let the log forget what is old; raises StoreError."""
        deeds = self.deeds
        if deeds is not None:
            await self._run_beside_actions(lambda: deeds.prune_audit_log(now))

    def stop_new_actions(self) -> None:
        """From now on nothing more is begun."""
        self._ending = True

    async def finish_actions(self) -> None:
        """After what is being done just now."""
        self.stop_new_actions()
        if self.deeds is not None:
            await self._hands.call_async(self.deeds.close_audit_log)
        self._hands.stop_thread()

    async def _run_beside_actions(self, work: Callable[[], None]) -> None:
        """In a thread of its own, as the state may hang; nothing more while one still hangs."""
        if self._stuck is not None and not self._stuck.done():
            raise StoreError("the state hangs")
        doing = threads.run_in_thread("log of actions", work)
        try:
            await asyncio.wait_for(asyncio.wrap_future(doing), STATE_TIMEOUT_S)
        except asyncio.TimeoutError:
            self._stuck = doing
            raise StoreError(f"the state hangs: no answer within {STATE_TIMEOUT_S:.0f} s") from None

    def _note_failure(self, error: Exception) -> bool:
        why = f"the log of actions cannot be written: {error}"
        if not isinstance(error, StoreError):
            _LOG.error("actions failed inside", exc_info=error)
            why = f"internal error: {error!r}"
        self.trouble = f"no action is taken, {why}"
        return False
