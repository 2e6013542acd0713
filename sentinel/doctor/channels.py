"""The channels: whether their servers answer, without sending anything."""

import asyncio
from collections.abc import AsyncIterator, Iterable

from sentinel.core.errors import ChannelError
from sentinel.core.settings import ChannelConfig
from sentinel.core.text import visible
from sentinel.doctor import Item, bad, ok, unknown

LIMIT = 30.0
"""Seconds for one channel, whatever its own limits are."""


async def reach(channels: Iterable[ChannelConfig]) -> AsyncIterator[Item]:
    """Channels that can be tried without a message (`reach`); others say how to test them."""
    for channel in channels:
        name = f"channel {channel.name}"
        command, untried = f"sentinel notify test {channel.name}", f"{channel.kind}, not tried"
        try:
            answer = await asyncio.wait_for(channel.plugin.reach(), LIMIT)
            yield ok(name, visible(answer)) if answer else unknown(name, untried, command)
        except asyncio.TimeoutError:
            yield bad(name, f"no answer within {LIMIT:.0f}s", f"then: {command}")
        except ChannelError as error:
            yield bad(name, visible(str(error)), f"then: {command}")
        except Exception as error:  # a plugin's fault must not cost the other lines
            yield bad(name, visible(f"internal error: {error!r}"), f"then: {command}")
