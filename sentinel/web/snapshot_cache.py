"""The facts of a running engine, made at most once a second for all viewers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from sentinel.alerting import orders
from sentinel.alerting.orders import Author, WrongOrder
from sentinel.alerting.silences import Ack, Silence
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND
from sentinel.core.model import Alert
from sentinel.core.ports import Clock
from sentinel.status.collect import StatusSettings, read_status_inputs
from sentinel.status.run_reader import RunReader
from sentinel.status.types import Facts, RequestStats, Vitals
from sentinel.status.view_model import build_facts

MAX_FACTS_AGE_S = 1.0
"""Seconds after which facts are computed again even without a write, because ages grow."""

WATCH_INTERVAL_S = 0.25
"""Seconds between two checks for new writes, and of the delay of the event loop."""

Result = TypeVar("Result")


class EngineSource(Protocol):
    """The part of the engine that viewers need. Every method may raise StoreError."""

    @property
    def commits(self) -> int:
        """A number that grows whenever something was written."""

    async def read(self, reading: Callable[[Store], Result]) -> Result:
        """The result of `reading` on the state."""

    async def order(self, order: Ack | Silence) -> None:
        """Store a person's order."""


class LiveFacts:
    """The current facts; one object for a server. `around` and `counts` are called each time, since
    a reload changes them."""

    def __init__(
        self,
        source: EngineSource,
        clock: Clock,
        around: Callable[[], StatusSettings],
        counts: Callable[[], Mapping[str, RequestStats]] = dict,
    ) -> None:
        self.source, self.clock, self.around = source, clock, around
        self._counts = counts
        self._lag, self._started = 0.0, clock.now().wall / SECOND
        self._facts: Facts | None = None
        self._made, self._version = float("-inf"), 0
        self._runs, self._turn = RunReader(), asyncio.Lock()
        self._changed = asyncio.Condition()

    async def get_facts(self) -> Facts:
        """The current facts, at most MAX_FACTS_AGE_S old. Raises StoreError."""
        async with self._turn:
            if self._facts is None or self._is_stale():
                self._made, self._facts = time.monotonic(), None
                self._facts = await self._gather_facts()
            return self._facts

    def get_now_s(self) -> float:
        """Now, in seconds UTC."""
        return self.clock.now().wall / SECOND

    async def acknowledge_alert(self, alert: str, said: Author) -> None:
        """Acknowledge an alert; viewers see it at once. Raises orders.WrongOrder and StoreError."""
        alerts = await self.source.read(lambda store: store.read_alerts())
        await self._write_order(orders.acknowledge_alert(alerts, alert, said, self.clock.now()))

    async def silence_one_alert(self, alert: str, length: str, said: Author) -> Silence:
        """Silence one alert for `length`; viewers see it at once. Raises orders.WrongOrder and
        StoreError."""
        alerts = await self.source.read(lambda store: store.read_alerts())
        order = orders.silence_alert(alerts, alert, length, said, self.clock.now())
        await self._write_order(order)
        return order

    async def order_for_each(
        self, names: Sequence[str], order: Callable[[Sequence[Alert], str], Ack | Silence]
    ) -> list[WrongOrder]:
        """Give the same order for each of these alerts, as they were read once. Returns the errors
        of those for which it failed. Raises StoreError."""
        alerts, wrong = (
            await self.source.read(lambda store: store.read_alerts()),
            list[WrongOrder](),
        )
        for name in names:
            try:
                await self._write_order(order(alerts, name))
            except WrongOrder as error:
                wrong.append(error)
        return wrong

    async def _write_order(self, order: Ack | Silence) -> None:
        await self.source.order(order)
        self._made = float("-inf")

    async def watch_commits(self) -> None:
        """Notify waiting pages whenever something was written, and measure the lag of the loop.
        Never ends."""
        seen = self.source.commits
        while True:
            before = time.monotonic()
            await asyncio.sleep(WATCH_INTERVAL_S)
            lag = max(0.0, time.monotonic() - before - WATCH_INTERVAL_S)
            self._lag = max(lag, self._lag * 0.9)
            if self.source.commits != seen:
                seen, self._made = self.source.commits, float("-inf")
                async with self._changed:
                    self._version += 1
                    self._changed.notify_all()

    async def iterate_changes(self, limit: float) -> AsyncIterator[int]:
        """A number that grows whenever something was written; the same number again after `limit`
        seconds without a change."""
        last = self._version
        while True:
            try:
                async with self._changed:
                    await asyncio.wait_for(self._wait_for_change(last), limit)
            except asyncio.TimeoutError:
                pass
            last = self._version
            yield last

    async def _wait_for_change(self, known: int) -> None:
        await self._changed.wait_for(lambda: self._version != known)

    def _is_stale(self) -> bool:
        return time.monotonic() - self._made > MAX_FACTS_AGE_S

    async def _gather_facts(self) -> Facts:
        around, now = self.around(), self.clock.now()
        vitals = Vitals(lag_s=self._lag, started=self._started, slurm=self._counts())
        return await self.source.read(
            lambda store: build_facts(read_status_inputs(store, around, now, self._runs), vitals)
        )
