"""Closes an engine, within a time limit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from sentinel.alerting.state import Store
from sentinel.core.errors import StoreError

if TYPE_CHECKING:
    from sentinel.core.gpu_ledger import GpuLedger

STATE_TIMEOUT_S = 10.0  # seconds for one question to the state

_LOG = logging.getLogger("sentinel")


def close_stores(store: Store, gpus: GpuLedger | None) -> None:
    """Close the stores. The lease is given back first, so that a standby may lead at once."""
    store.release_lead()
    store.close()
    if gpus is not None:
        gpus.close()


async def wait_or_warn(work: Awaitable[Any], otherwise: str) -> None:
    """Wait for `work`, for STATE_TIMEOUT_S at most. If it fails or takes longer, log
    `otherwise`."""
    try:
        await asyncio.wait_for(work, STATE_TIMEOUT_S)
    except (asyncio.TimeoutError, StoreError) as error:
        _LOG.warning("%s%s", otherwise, f": {error}" if str(error) else "")
