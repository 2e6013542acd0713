"""The dead man's switch: a program outside is told regularly that the watcher works, and notices if
it is told nothing."""

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
    """Seconds between the runs of each check. None for a check with a calendar."""
    return {name: None if c.common.cron else get_interval_s(c) for name, c in checks.items()}


async def send_start_signal(pulse: Pulse) -> None:
    """Tell the program outside that the watcher has started."""
    await _send_signal(pulse.announce_start())


async def send_heartbeat(
    pulse: Pulse, runs: Sequence[CheckRun], checks: Mapping[str, CheckConfig], now: Instant
) -> bool:
    """Send the sign of life if all is well. Otherwise send what is wrong. Returns whether the sign
    of life was sent.

    A blind watcher must not look healthy. If the program outside cannot be reached, that is only
    logged, because it will miss the sign of life and notify people.
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
