"""The dead man's switch: somebody outside is told that the watcher lives, or hears nothing."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence

from sentinel.core.clock import Instant
from sentinel.core.due import every
from sentinel.core.errors import ChannelError
from sentinel.core.model import Run
from sentinel.core.ports import Pulse
from sentinel.core.settings import CheckConfig
from sentinel.core.text import visible
from sentinel.engine.liveness import troubles

LIMIT = 30.0
_LOG = logging.getLogger("sentinel")


def intervals(checks: Mapping[str, CheckConfig]) -> dict[str, float | None]:
    """Seconds between runs, None for those that a calendar rules."""
    return {name: None if c.common.cron else every(c) for name, c in checks.items()}


async def begin(pulse: Pulse) -> None:
    """Tell the outside that the watcher has begun."""
    await _told(pulse.begin())


async def beat(
    pulse: Pulse, runs: Sequence[Run], checks: Mapping[str, CheckConfig], now: Instant
) -> bool:
    """Tell the outside, if there is something good to tell; whether it was told so.

    A blind watcher must not look healthy. That the outside cannot be reached is only logged:
    it will miss the beat, which is what it is for.
    """
    found = troubles(runs, intervals(checks), now)
    told = await _told(pulse.beat(not found, "\n".join(visible(t) for t in found)))
    return told and not found


async def _told(work: Awaitable[None]) -> bool:
    try:
        await asyncio.wait_for(work, LIMIT)
    except ChannelError as error:
        _LOG.warning("heartbeat not delivered: %s", visible(str(error)))
        return False
    except asyncio.TimeoutError:
        _LOG.warning("heartbeat not delivered within %.0f s", LIMIT)
        return False
    return True
