"""The outbox emptied: send, then mark sent. A crash in between repeats a message."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from sentinel.core.errors import ChannelError
from sentinel.core.model import Outgoing, Receipt
from sentinel.core.outbox import after_failure, due, expired, next_wait
from sentinel.core.ports import Channel, Clock, Store
from sentinel.core.text import visible
from sentinel.engine.selfcheck import Trouble

SEND_LIMIT = 90.0
"""Seconds: the bound on one send, whatever the channel's own limits are."""

_LOG = logging.getLogger("sentinel")
Call = Callable[..., Awaitable[Any]]


class Delivery:
    """Sends what is due, each channel on its own, in order.

    `call` runs a method of the store where it may block.
    """

    def __init__(
        self, store: Store, channels: Mapping[str, Channel], clock: Clock, call: Call
    ) -> None:
        self._store, self.channels, self._clock, self._call = store, channels, clock, call
        self.trouble: dict[str, Trouble] = {}
        self._sending = asyncio.Lock()

    async def round(self) -> float | None:
        """Send all that is due; seconds until something else is, None when all is sent."""
        async with self._sending:
            return await self._round()

    async def _round(self) -> float | None:
        rows = await self._call(self._store.outbox)
        rows = await self._without_expired(rows)
        ready = due(rows, self._clock.now())
        by_channel = groupby(sorted(ready, key=lambda r: (r.channel, r.seq)), lambda r: r.channel)
        await asyncio.gather(*(self._queue(name, list(rows)) for name, rows in by_channel))
        left = await self._call(self._store.outbox)
        return next_wait(left, self._clock.now())

    async def drain(self, limit: float) -> bool:
        """Rounds until nothing is due any more or the limit is over; whether all was sent."""
        try:
            return await asyncio.wait_for(self._drain(), limit)
        except asyncio.TimeoutError:
            return False

    async def _drain(self) -> bool:
        wait = await self.round()
        while wait is not None and not wait:
            wait = await self.round()
        return wait is None

    async def _without_expired(self, rows: Sequence[Outgoing]) -> list[Outgoing]:
        old = expired(rows, self._clock.now())
        if old:
            await self._call(
                self._store.dropped, old, self._clock.now(), "undeliverable for a week"
            )
        return [r for r in rows if r not in old]

    async def _queue(self, name: str, rows: list[Outgoing]) -> None:
        for row in rows:
            if not await self._send(name, row):
                return

    async def _send(self, name: str, row: Outgoing) -> bool:
        """Whether the channel may go on with its next row."""
        try:
            receipt = await self._deliver(name, row)
        except ChannelError as error:
            await self._failed(name, row, error)
            return error.permanent
        self._accepted(name, receipt)
        await self._call(self._store.sent, [row], self._clock.now(), receipt)
        return True

    async def _deliver(self, name: str, row: Outgoing) -> Receipt:
        channel = self.channels.get(name)
        if channel is None:
            raise ChannelError(f"channel {name} is no longer configured", permanent=True)
        try:
            return await asyncio.wait_for(channel.send([row.notification]), SEND_LIMIT)
        except ChannelError:
            raise
        except asyncio.TimeoutError:
            raise ChannelError(f"no answer within {SEND_LIMIT:.0f}s", reason="timeout") from None
        except Exception as error:
            _LOG.exception("channel %s failed inside", name)
            raise ChannelError(f"internal error: {error!r}", reason="internal") from error

    async def _failed(self, name: str, row: Outgoing, error: ChannelError) -> None:
        failed = after_failure(row, error, self._clock.now())
        self._troubled(name, visible(str(error)), sure=error.permanent)
        _LOG.warning(
            "channel %s: %s not delivered (attempt %d): %s",
            name,
            row.notification.key,
            failed.attempts,
            visible(str(error)),
        )
        await self._call(self._store.failed, [failed])

    def _accepted(self, name: str, receipt: Receipt) -> None:
        if receipt.refused:
            refused = ", ".join(visible(r) for r in receipt.refused)
            self._troubled(name, f"refused: {refused}", sure=True)
        else:
            self.trouble.pop(name, None)

    def _troubled(self, name: str, text: str, *, sure: bool) -> None:
        before = self.trouble.get(name)
        since = before.since if before else self._clock.now()
        self.trouble[name] = Trouble(since, text, sure)
