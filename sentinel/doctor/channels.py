"""The channels: whether their servers answer, without sending anything."""

import asyncio
from collections.abc import AsyncIterator, Iterable

from sentinel.core.errors import ChannelError
from sentinel.core.guidance import quote_command
from sentinel.core.settings import ChannelConfig
from sentinel.core.text import visible
from sentinel.doctor import DoctorItem, make_failure_item, make_ok_item, make_unknown_item

CHANNEL_TIMEOUT_S = 30.0
"""Seconds for one channel, whatever its own limits are."""


async def check_channels(channels: Iterable[ChannelConfig]) -> AsyncIterator[DoctorItem]:
    """Channels that can be tried without a message (`check_channels`); others say how to test them."""
    for channel in channels:
        name = f"channel {channel.name}"
        command, untried = (
            quote_command("sentinel", "notify", "test", channel.name),
            f"{channel.kind}, not tried",
        )
        try:
            answer = await asyncio.wait_for(channel.plugin.reach(), CHANNEL_TIMEOUT_S)
            yield (
                make_ok_item(name, visible(answer))
                if answer
                else make_unknown_item(name, untried, command)
            )
        except asyncio.TimeoutError:
            yield make_failure_item(
                name, f"no answer within {CHANNEL_TIMEOUT_S:.0f}s", f"then: {command}"
            )
        except ChannelError as error:
            yield make_failure_item(name, visible(str(error)), f"then: {command}")
        except Exception as error:  # an error in a plugin must not lose the other lines
            yield make_failure_item(name, visible(f"internal error: {error!r}"), f"then: {command}")
