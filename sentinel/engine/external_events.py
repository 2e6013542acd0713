"""Reads external events that affect messages: Slurm's maintenance, and acknowledgements elsewhere."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from sentinel.alerting import slurm_maintenance
from sentinel.alerting.orders import Author, acknowledge_alert
from sentinel.alerting.silences import Orders
from sentinel.alerting.state import Store
from sentinel.core.errors import CannotTell, ChannelError, StoreError
from sentinel.core.kinds import Channel
from sentinel.core.model import Alert
from sentinel.core.ports import Calendar, Clock
from sentinel.core.text import visible
from sentinel.proc import threads

MAX_ASKED_ALERTS = 50
"""How many alerts one channel is asked about in one round. The next round asks about others."""

CHANNEL_TIMEOUT_S = 30.0
"""Seconds that one channel may take to answer."""

_LOG = logging.getLogger("sentinel")


class ExternalEvents:
    """Stores external events as orders, as if a person had given them.

    None of them is essential. If a question fails, the first failure is logged, and it is asked
    again in the next round.
    """

    def __init__(self, store: Store, clock: Clock, call: Callable[..., Awaitable[Any]]) -> None:
        self._store, self._clock, self._call = store, clock, call
        self._failing: dict[str, str] = {}
        self._turn = 0

    async def poll_events(
        self,
        calendar: Calendar | None,
        channels: Mapping[str, Channel],
        alerts: Iterable[Alert],
        cluster: str = "",
    ) -> bool:
        """Read the events and store them. Returns whether there was a new one. `cluster` is that of
        the calendar if there are several, otherwise empty."""
        try:
            orders: Orders = await self._call(self._store.read_orders)
            heard = await self._poll_maintenance(calendar, orders, cluster) if calendar else False
            return await self._poll_acks(channels, list(alerts), orders) or heard
        except StoreError as error:
            self._log_new_failure("state", str(error))
            return False

    async def _poll_maintenance(self, calendar: Calendar, orders: Orders, cluster: str) -> bool:
        try:
            told, nodes = await asyncio.wrap_future(
                threads.run_in_thread("reservations", lambda: _ask_calendar(calendar))
            )
        except CannotTell as error:
            self._log_new_failure("Slurm's reservations", str(error))
            return False
        self._failing.pop("Slurm's reservations", None)
        now = self._clock.now()
        written = slurm_maintenance.maintenance_changes(told, orders.silences, nodes, now, cluster)
        for silence in written:
            await self._call(self._store.put_silence, silence)
        return bool(written)

    async def _poll_acks(
        self, channels: Mapping[str, Channel], alerts: Sequence[Alert], orders: Orders
    ) -> bool:
        heard = False
        for name, channel in channels.items():
            open_ = [a for a in alerts if a.firing and name in a.told and a.id not in orders.acks]
            if open_ and channel.listens:
                heard = await self._ask_channel(name, channel, open_) or heard
        self._turn += MAX_ASKED_ALERTS
        return heard

    async def _ask_channel(self, name: str, channel: Any, alerts: Sequence[Alert]) -> bool:
        begin = self._turn % len(alerts) if len(alerts) > MAX_ASKED_ALERTS else 0
        asked = {a.id: a for a in [*alerts[begin:], *alerts[:begin]][:MAX_ASKED_ALERTS]}
        try:
            found = await asyncio.wait_for(channel.acknowledged(list(asked)), CHANNEL_TIMEOUT_S)
        except (ChannelError, asyncio.TimeoutError) as error:
            self._log_new_failure(
                f"acknowledgements of channel {name}", str(error) or "no answer in time"
            )
            return False
        self._failing.pop(f"acknowledgements of channel {name}", None)
        for alert in found.keys() & asked.keys():
            said = Author(found[alert], name)
            ack = acknowledge_alert(asked.values(), alert, said, self._clock.now())
            await self._call(self._store.put_ack, ack)
        return bool(found)

    def _log_new_failure(self, what: str, why: str) -> None:
        if self._failing.get(what) != why:
            self._failing[what] = why
            _LOG.warning("%s not heard: %s", what, visible(why))


def _ask_calendar(calendar: Calendar) -> tuple[Sequence[Any], Sequence[str]]:
    """The reservations, and if there are any, the names of all nodes."""
    told = calendar.reservations()
    return told, [node.name for node in calendar.nodes()] if told else []
