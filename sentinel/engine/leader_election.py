"""Several sentinels share one state. One leads, the others wait until its lease is over."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from sentinel.alerting.state import Store
from sentinel.core.errors import Fenced, StoreBusy, StoreError
from sentinel.engine.sdnotify import notify_systemd

TRIES_PER_TERM = 6
"""How often a standby tries to take over in the term of a lease."""

LOCK_RETRY_S = 2.0
"""Seconds between two attempts if the leader holds a lock of the kernel. Such a lock ends with its
process."""

MAX_SILENT_TERMS = 4
"""For how many terms a leader waits for an answer of its state."""

_LOG = logging.getLogger("sentinel")


async def wait_for_lead(
    lead: Callable[[], Awaitable[None]],
    stopped: Callable[[float], Awaitable[bool]],
    term: float,
) -> bool:
    """Wait until `lead` succeeds. Returns False if it has to stop before. `stopped` waits the given
    seconds for a stop. For systemd, a standby counts as ready.

    Raises StoreError if the state cannot be reached at all and no leader was seen.
    """
    seen = ""
    while True:
        try:
            await lead()
        except StoreBusy as error:
            seen = _report_standby(seen, str(error))
        except StoreError as error:
            if not seen:
                raise
            seen = _report_standby(seen, f"the state cannot be reached: {error}")
        else:
            if seen:
                _LOG.warning("taking over")
            return True
        notify_systemd("WATCHDOG=1")
        if await stopped(term / TRIES_PER_TERM if term else LOCK_RETRY_S):
            return False


async def keep_lease(
    store: Store, call: Callable[..., Awaitable[Any]], term: float, troubled: Callable[[], None]
) -> None:
    """Renew the lease three times a term. `troubled` is called if it could not be renewed, because
    there is time left to report it.

    Raises Fenced if another process leads, or if the state has not answered for MAX_SILENT_TERMS.
    """
    while True:
        await asyncio.sleep(term / 3)
        try:
            await asyncio.wait_for(asyncio.shield(call(store.renew_lease)), MAX_SILENT_TERMS * term)
        except asyncio.TimeoutError:
            raise Fenced(f"the state has not answered for {MAX_SILENT_TERMS * term:.0f}s") from None
        except Fenced:
            raise
        except StoreError as error:
            _LOG.warning("the lease on the state is not renewed: %s", error)
            troubled()


def _report_standby(before: str, now: str) -> str:
    if before != now:
        _LOG.warning("standing by: %s", now)
        notify_systemd(f"READY=1\nSTATUS=standing by: {now}")
    return now
