"""The channels: whether their servers answer, without sending anything."""

from collections.abc import AsyncIterator, Iterable

from sentinel.core.errors import ChannelError
from sentinel.core.settings import ChannelConfig
from sentinel.core.text import visible
from sentinel.doctor import Item, bad, ok


async def reach(channels: Iterable[ChannelConfig]) -> AsyncIterator[Item]:
    """Channels that can be tried without a message (`reach`); others say how to test them."""
    for channel in channels:
        name = f"channel {channel.name}"
        attempt = getattr(channel.plugin, "reach", None)
        if attempt is None:
            yield ok(name, f"{channel.kind}; try it with: sentinel notify test {channel.name}")
            continue
        try:
            yield ok(name, visible(await attempt()))
        except ChannelError as error:
            yield bad(name, visible(str(error)), f"then: sentinel notify test {channel.name}")
