"""Runs the actions that checks request, beside the checks, and only while they can be recorded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sentinel.core.errors import StoreError
from sentinel.core.settings import CheckConfig
from sentinel.proc import threads

if TYPE_CHECKING:  # where no check may act, nothing of the actions is loaded
    from concurrent.futures import Future

    from sentinel.actions.announcements import ActionPassResult
    from sentinel.actions.service import ActionService
    from sentinel.core.clock import Instant
    from sentinel.core.model import ActionRequest

STATE_TIMEOUT_S = 60.0
"""Seconds to read Slurm's nodes and to store the result."""

_LOG = logging.getLogger("sentinel")


class ActionRunner:
    """Runs actions one after the other in a separate thread. Each may take minutes. Writes to the
    state run beside them.

    `leads` says whether this process may act now. `trouble` says why it does not. Empty if all is
    well.
    """

    def __init__(self, service: ActionService | None, leads: Callable[[], bool]) -> None:
        self.service, self.trouble = service, ""
        self._leads, self._ending = leads, False
        self._lost: list[str] = []
        self._stuck: Future[None] | None = None
        self._thread = threads.StoreThread("actions")

    def switch_service(self, service: ActionService | None) -> None:
        """Continue with the actions of another configuration. No action of the old one is started
        any more, and the running one is not waited for."""
        before, self.service, self.trouble = self.service, service, ""
        if before is not None and before is not service:
            self._thread.submit_call(before.close_audit_log)

    async def pause_after_lost_state(self, news: Sequence[str]) -> bool:
        """Pause actions after a state was set aside, because the former actions are not known.
        Returns whether the pause is recorded. Until it is, nothing may be done."""
        self._lost += news
        service, why = self.service, "; ".join(self._lost)
        if service is None or not why:
            return True
        try:
            await self._run_beside_actions(lambda: service.pause_actions(why))
        except Exception as error:
            return self._note_failure(error)
        self._lost = []
        return True

    async def record_nodes(self) -> bool:
        """Write the ledger of nodes, before a check reads it and before any action. Returns whether
        an action may be done."""
        if self.service is None:
            return False
        try:
            await self._run_beside_actions(self.service.record_nodes)
        except Exception as error:
            return self._note_failure(error)
        return True

    async def run_actions(
        self, check: CheckConfig, requests: Sequence[ActionRequest]
    ) -> ActionPassResult | None:
        """Run the actions, and return what was done. None if nothing may be done."""
        service = self.service
        if service is None or not await self.pause_after_lost_state(()):
            return None

        def is_still_wanted() -> bool:
            return self.service is service and self._leads() and not self._ending

        try:
            done = await self._thread.call_async(
                service.act_for_check, check, requests, is_still_wanted
            )
        except Exception as error:
            self._note_failure(error)
            return None
        self.trouble = ""
        return done

    async def prune_audit_log(self, now: Instant) -> None:
        """Remove old records from the log. Raises StoreError."""
        service = self.service
        if service is not None:
            await self._run_beside_actions(lambda: service.prune_audit_log(now))

    def stop_new_actions(self) -> None:
        """Start no further actions."""
        self._ending = True

    async def finish_actions(self) -> None:
        """Wait for the action that is running, and close the log."""
        self.stop_new_actions()
        if self.service is not None:
            await self._thread.call_async(self.service.close_audit_log)
        self._thread.stop_thread()

    async def _run_beside_actions(self, work: Callable[[], None]) -> None:
        """Run the work in a separate thread, because the state may hang. While one call hangs, no
        other is started."""
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


def may_request_actions(check: CheckConfig) -> bool:
    """Whether the check may request actions in this configuration. Only for such checks a log is
    kept. Only the local cluster is ever changed."""
    asks: bool = check.plugin.may_ask
    return asks and not check.common.cluster
