"""The outbox emptied: send, then mark sent. A crash in between repeats a message."""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from sentinel.core.clock import Instant
from sentinel.core.errors import ChannelError
from sentinel.core.model import Batch, Outgoing, Receipt
from sentinel.core.outbox import (
    after_failure,
    astray,
    bundles,
    due,
    expired,
    next_wait,
    redirected,
    reopens,
    room,
)
from sentinel.core.ports import Channel, Clock, Store
from sentinel.core.settings import ChannelCommon
from sentinel.core.text import visible
from sentinel.engine.selfcheck import Trouble

SEND_LIMIT = 90.0
"""Seconds: the bound on one send, whatever the channel's own limits are."""

_LOG = logging.getLogger("sentinel")
Call = Callable[..., Awaitable[Any]]


class Delivery:
    """Sends what is due, each channel on its own, in order.

    `call` runs a method of the store where it may block. `trouble` tells by channel what is
    wrong with it, None once it took a message; a channel that was not tried is not in it.
    """

    def __init__(
        self,
        store: Store,
        channels: Mapping[str, Channel],
        clock: Clock,
        call: Call,
        idle: Callable[[], None],
    ) -> None:
        self._store, self.channels, self._clock, self._call = store, channels, clock, call
        self._idle = idle
        self.common: Mapping[str, ChannelCommon] = {}
        self.trouble: dict[str, Trouble | None] = {}
        self._sent: dict[str, deque[Instant]] = defaultdict(lambda: deque(maxlen=1000))
        self._beginning = asyncio.Lock()
        self._at_work: dict[str, asyncio.Future[None]] = {}

    async def recall(self) -> None:
        """Know what earlier attempts met: a trouble does not begin anew with each process."""
        for row in await self._call(self._store.outbox):
            if row.attempts and row.channel not in self.trouble:
                self.trouble[row.channel] = Trouble(
                    row.created, f"not delivering: {row.error}", row.permanent
                )

    async def begin(self) -> float | None:
        """Start sending what is due on every channel that is not at it, and wait for none.

        Seconds until there is more to send on an idle one, None when nothing waits there;
        `idle` is called whenever a channel has ended. Raises what kept one from ending well.
        """
        async with self._beginning:
            self._reap()
            rows = await self._without_expired(await self._without_strays())
            full = self._full({row.channel for row in rows})
            left = [r for r in rows if r.channel not in self._at_work and r.channel not in full]
            ready = sorted(due(left, self._clock.now()), key=lambda r: (r.channel, r.seq))
            for name, batch in groupby(ready, lambda r: r.channel):
                task = asyncio.ensure_future(self._queue(name, list(batch)))
                task.add_done_callback(lambda _: self._idle())
                self._at_work[name] = task
            idle = [r for r in left if r.channel not in self._at_work]
            waits = [next_wait(idle, self._clock.now()), *full.values()]
            return min((w for w in waits if w is not None), default=None)

    async def round(self) -> float | None:
        """Send all that is due; seconds until something else is, None when all is sent."""
        wait = await self.begin()
        while self._at_work:
            await asyncio.wait(self._at_work.values())
            wait = await self.begin()
        return wait

    async def drain(self, limit: float) -> bool:
        """A round that ends after `limit` seconds at the latest; whether all was sent."""
        try:
            return await asyncio.wait_for(self.round(), limit) is None
        except asyncio.TimeoutError:
            for task in self._at_work.values():
                task.cancel()
            return False

    def _reap(self) -> None:
        """A channel counts as at work until its end was seen here: rows read before are old."""
        for name, task in list(self._at_work.items()):
            if task.done():
                del self._at_work[name]
                if not task.cancelled():
                    task.result()

    async def _without_expired(self, rows: Sequence[Outgoing]) -> list[Outgoing]:
        old = expired(rows, self._clock.now())
        if old:
            await self._call(
                self._store.dropped, old, self._clock.now(), "undeliverable for a week"
            )
        return [r for r in rows if r not in old]

    async def _without_strays(self) -> list[Outgoing]:
        """The outbox, after what a channel does not deliver was given to its fallback."""
        rows: list[Outgoing] = await self._call(self._store.outbox)
        now, fallbacks = self._clock.now(), {n: c.fallback for n, c in self.common.items()}
        strays = [r for r in astray(rows, fallbacks, now) if r.channel not in self._at_work]
        if not strays:
            return rows
        again = tuple(redirected(row, fallbacks[row.channel], now) for row in strays)
        await self._call(self._store.commit, Batch(at=now, outbox=again))
        await self._call(self._store.dropped, strays, now, "given to the fallback")
        return cast("list[Outgoing]", await self._call(self._store.outbox))

    def _full(self, names: Iterable[str]) -> dict[str, float]:
        """Channels that have told all they may within the hour, and when they may again."""
        caps = {n: self.common[n].per_hour for n in names if n in self.common}
        now = self._clock.now()
        return {
            name: reopens(self._sent[name], cap, now)
            for name, cap in caps.items()
            if room(self._sent[name], cap, now) == 0
        }

    async def _queue(self, name: str, rows: list[Outgoing]) -> None:
        groups = getattr(self.channels.get(name), "groups", False)
        messages = bundles(rows) if groups else [[row] for row in rows]
        while messages and (left := self._room(name)) != 0:
            last = left == 1 and groups
            message = [row for several in messages for row in several] if last else messages[0]
            messages = [] if last else messages[1:]
            if not await self._send(name, message):
                return

    def _room(self, name: str) -> int | None:
        cap = self.common[name].per_hour if name in self.common else 0
        return room(self._sent[name], cap, self._clock.now())

    async def _send(self, name: str, rows: list[Outgoing]) -> bool:
        """Whether the channel may go on with its next message."""
        try:
            receipt = await self._deliver(name, rows)
        except ChannelError as error:
            await self._failed(name, rows, error)
            return error.permanent
        self._sent[name].append(self._clock.now())
        self._accepted(name, receipt)
        await self._call(self._store.sent, rows, self._clock.now(), receipt)
        return True

    async def _deliver(self, name: str, rows: list[Outgoing]) -> Receipt:
        channel = self.channels.get(name)
        if channel is None:
            raise ChannelError(f"channel {name} is no longer configured", permanent=True)
        try:
            message = [row.notification for row in rows]
            return await asyncio.wait_for(channel.send(message), SEND_LIMIT)
        except ChannelError:
            raise
        except asyncio.TimeoutError:
            raise ChannelError(f"no answer within {SEND_LIMIT:.0f}s", reason="timeout") from None
        except Exception as error:
            _LOG.exception("channel %s failed inside", name)
            raise ChannelError(f"internal error: {error!r}", reason="internal") from error

    async def _failed(self, name: str, rows: list[Outgoing], error: ChannelError) -> None:
        failed = [after_failure(row, error, self._clock.now()) for row in rows]
        self._troubled(name, f"not delivering: {error}", sure=error.permanent)
        _LOG.warning(
            "channel %s: %s not delivered (attempt %d): %s",
            name,
            rows[0].notification.key + (f" and {len(rows) - 1} more" if rows[1:] else ""),
            failed[0].attempts,
            visible(str(error)),
        )
        await self._call(self._store.failed, failed)

    def _accepted(self, name: str, receipt: Receipt) -> None:
        if receipt.refused:
            text = f"does not reach {', '.join(receipt.refused)}: {receipt.text}"
            self._troubled(name, text, sure=True)
        else:
            self.trouble[name] = None

    def _troubled(self, name: str, text: str, *, sure: bool) -> None:
        before = self.trouble.get(name)
        since = before.since if before else self._clock.now()
        self.trouble[name] = Trouble(since, text, sure)
