"""The dead man's switch: somebody outside is told that the watcher lives, or hears nothing."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence

from sentinel.core.clock import Instant
from sentinel.core.due import get_interval_s
from sentinel.core.errors import ChannelError
from sentinel.core.model import CheckRun
from sentinel.core.ports import Pulse
from sentinel.core.settings import CheckConfig
from sentinel.core.text import visible
from sentinel.engine.liveness import find_unhealthy_checks

HEARTBEAT_TIMEOUT_S = 30.0
_LOG = logging.getLogger("sentinel")


def get_run_intervals(checks: Mapping[str, CheckConfig]) -> dict[str, float | None]:
    """Seconds between runs, None for those that a calendar rules."""
    return {name: None if c.common.cron else get_interval_s(c) for name, c in checks.items()}


async def send_start_signal(pulse: Pulse) -> None:
    """Tell the outside that the watcher has begun."""
    await _send_signal(pulse.announce_start())


async def send_heartbeat(
    pulse: Pulse, runs: Sequence[CheckRun], checks: Mapping[str, CheckConfig], now: Instant
) -> bool:
    """Tell the outside, if there is something good to tell; whether it was told so.

    A blind watcher must not look healthy. That the outside cannot be reached is only logged:
    it will miss the beat, which is what it is for.
    """
    found = find_unhealthy_checks(runs, get_run_intervals(checks), now)
    told = await _send_signal(pulse.send_heartbeat(not found, "\n".join(visible(t) for t in found)))
    return told and not found


async def _send_signal(work: Awaitable[None]) -> bool:
    try:
        await asyncio.wait_for(work, HEARTBEAT_TIMEOUT_S)
    except ChannelError as error:
        _LOG.warning("heartbeat not delivered: %s", visible(str(error)))
        return False
    except asyncio.TimeoutError:
        _LOG.warning("heartbeat not delivered within %.0f s", HEARTBEAT_TIMEOUT_S)
        return False
    return True
