"""The outbox emptied: send, then mark sent. A crash in between repeats a message."""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from sentinel.alerting import owners
from sentinel.alerting.outbox import (
    REDIRECTED_MARK,
    Group,
    RefusedRows,
    after_failure,
    bundle_messages,
    decide_end_duty,
    due_rows,
    expired_rows,
    hourly_cap_reopens,
    hourly_room,
    is_answerable,
    is_ending,
    next_wait,
    redirect_row,
    row_subject,
    undelivered_rows,
)
from sentinel.alerting.owners import DAY_S
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import ChannelError
from sentinel.core.kinds import Channel
from sentinel.core.model import Batch, Notification, Outgoing, Receipt
from sentinel.core.ports import Clock
from sentinel.core.settings import ChannelCommon
from sentinel.core.text import visible
from sentinel.engine.housekeeping import ChannelTrouble
from sentinel.proc import threads

if TYPE_CHECKING:
    from sentinel.alerting.signed_links import LinkSigner

MAX_SEND_S = 90.0
"""Seconds: the bound on one send, whatever the channel's own limits are."""

MAX_PICTURES = 3
"""In one message, of the worst."""

MAX_DRAWING_S = 5.0
"""Seconds for one; without it the message goes as it is."""

MAX_GROUPS = 10_000
"""Groups whose last message is remembered."""

LEASE_RECHECK_S = 1.0
"""Seconds until a leader that could not renew its lease looks again whether it may send."""

_LOG = logging.getLogger("sentinel")
StoreCall = Callable[..., Awaitable[Any]]


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
        call: StoreCall,
        idle: Callable[[], None],
    ) -> None:
        self._store, self.channels, self._clock, self._call = store, channels, clock, call
        self._idle = idle
        self.common: Mapping[str, ChannelCommon] = {}
        self.signer: LinkSigner | None = None
        self.trouble: dict[str, ChannelTrouble | None] = {}
        self._sent: dict[str, deque[Instant]] = defaultdict(lambda: deque(maxlen=1000))
        self._owners: dict[tuple[str, str], deque[Instant]] = defaultdict(
            lambda: deque(maxlen=1000)
        )
        self._told: dict[Group, Instant] = {}
        self._beginning = asyncio.Lock()
        self._at_work: dict[str, asyncio.Future[None]] = {}

    async def recall_earlier_sends(self, seconds: float = 3600.0) -> None:
        """Know what earlier processes met and sent in the last `seconds`: neither a trouble nor
        the hour of a cap begins anew with each of them."""
        for row in await self._call(self._store.read_outbox):
            if row.attempts and row.channel not in self.trouble:
                self.trouble[row.channel] = ChannelTrouble(
                    row.created, f"not delivering: {row.error}", row.permanent
                )
        since = self._clock.now().wall - int(
            max(seconds, DAY_S if self._get_daily_caps() else 0) * SECOND
        )
        messages: set[tuple[str, int]] = set()
        for sending in await self._call(self._store.read_sendings, since):
            self._note_groups(sending.channel, [sending.group], sending.at)
            if (sending.channel, sending.message) not in messages:
                messages.add((sending.channel, sending.message))
                self._count_message(sending.channel, sending.group, sending.at)

    async def begin_sending(self) -> float | None:
        """Start sending what is due on every channel that is not at it, and wait for none.

        Seconds until there is more to send on an idle one, None when nothing waits there;
        `idle` is called whenever a channel has ended. Raises what kept one from ending well.
        """
        async with self._beginning:
            self._reap_ended_sends()
            if self._store.get_lease_left_s() <= 0:
                return LEASE_RECHECK_S
            now = self._clock.now()
            rows = await self._drop_expired(await self._redirect_strays(now), now)
            full = self._find_capped_channels({row.channel for row in rows}, now)
            spent = owners.owners_at_cap(rows, self._owners, self._get_daily_caps(), now)
            left = [
                r
                for r in rows
                if r.channel not in self._at_work
                and r.channel not in full
                and (r.channel, owners.owner_of(r.group)) not in spent
            ]
            ready = sorted(due_rows(left, now, self._told), key=lambda r: (r.channel, r.seq))
            now_due = {r.seq for r in ready}
            for name, batch in groupby(ready, lambda r: r.channel):
                waiting = [r for r in left if r.channel == name and r.seq not in now_due]
                task = asyncio.ensure_future(self._send_queue(name, list(batch), waiting))
                task.add_done_callback(lambda _: self._idle())
                self._at_work[name] = task
            idle = [r for r in left if r.channel not in self._at_work]
            later = [*full.values(), *spent.values()]
            waits = [next_wait(idle, now, self._told), *later]
            return min((w for w in waits if w is not None), default=None)

    async def send_due(self) -> float | None:
        """Send all that is due; seconds until something else is, None when all is sent."""
        wait = await self.begin_sending()
        while self._at_work:
            await asyncio.wait(self._at_work.values())
            wait = await self.begin_sending()
        return wait

    async def drain_outbox(self, limit: float) -> bool:
        """A round that ends after `limit` seconds at the latest; whether all was sent."""
        try:
            return await asyncio.wait_for(self.send_due(), limit) is None
        except asyncio.TimeoutError:
            for task in self._at_work.values():
                task.cancel()
            return False

    def _reap_ended_sends(self) -> None:
        """A channel counts as at work until its end was seen here: rows read before are old."""
        for name, task in list(self._at_work.items()):
            if task.done():
                del self._at_work[name]
                if not task.cancelled():
                    task.result()

    async def _drop_expired(self, rows: Sequence[Outgoing], now: Instant) -> list[Outgoing]:
        old = expired_rows(rows)
        if old:
            await self._call(self._store.dropped, old, now, "undeliverable for a week")
        gone = {r.seq for r in old}
        return [r for r in rows if r.seq not in gone]

    async def _redirect_strays(self, now: Instant) -> list[Outgoing]:
        """The outbox, after what a channel does not deliver was given to its fallback."""
        rows: list[Outgoing] = await self._call(self._store.read_outbox)
        fallbacks = {name: common.fallback for name, common in self.common.items()}
        idle = [r for r in rows if r.channel not in self._at_work]
        strays = undelivered_rows(idle, fallbacks, now)
        lost = {r.seq for r in strays}
        too, alone = await self._split_end_duties([r for r in idle if r.seq not in lost], fallbacks)
        if not strays and not too and not alone:
            return rows
        again = tuple(redirect_row(r, fallbacks[r.channel], now) for r in [*strays, *too])
        await self._call(self._store.commit, Batch(at=now, outbox=again))
        await self._call(self._store.dropped, [*strays, *alone], now, REDIRECTED_MARK)
        return cast("list[Outgoing]", await self._call(self._store.read_outbox))

    async def _split_end_duties(
        self, rows: Iterable[Outgoing], fallbacks: Mapping[str, str]
    ) -> tuple[list[Outgoing], list[Outgoing]]:
        """Ends that a fallback has to tell too, and those that it alone tells."""
        too, alone = [], []
        for row in rows:
            fallback = fallbacks.get(row.channel)
            if fallback and is_ending(row.notification):
                past = await self._call(self._store.read_deliveries, row.notification.alert)
                found = decide_end_duty(row, past, fallback)
                too += [row] if found.too else []
                alone += [row] if found.alone else []
        return too, alone

    def _find_capped_channels(self, names: Iterable[str], now: Instant) -> dict[str, float]:
        """Channels that have told all they may within the hour, and when they may again."""
        caps = {n: self.common[n].per_hour for n in names if n in self.common}
        return {
            name: hourly_cap_reopens(self._sent[name], cap, now)
            for name, cap in caps.items()
            if hourly_room(self._sent[name], cap, now) == 0
        }

    async def _send_queue(self, name: str, rows: list[Outgoing], waiting: list[Outgoing]) -> None:
        """Send the rows; `waiting` are those of the channel whose time has not come."""
        groups = name in self.channels and self.channels[name].groups
        messages = bundle_messages(rows) if groups else [[row] for row in rows]
        if per_day := self._get_daily_caps().get(name):
            sent = {user: at for (channel, user), at in self._owners.items() if channel == name}
            messages = owners.ration_messages(messages, sent, per_day, self._clock.now())
            groups = False  # the last of an hour holds nobody else's
        refused = RefusedRows(waiting)
        while (
            messages
            and self._store.get_lease_left_s() > 0
            and (left := self._get_hourly_room(name)) != 0
        ):
            last = left == 1 and groups
            message = [row for several in messages for row in several] if last else messages[0]
            messages = [] if last else messages[1:]
            message = [row for row in message if not refused.hold_back(row)]
            error = await self._send_message(name, message, refused) if message else None
            if error is None:
                continue
            if not error.permanent:
                return
            refused.add_refused(message)

    async def _drop_overtaken(self, refused: RefusedRows, taken: Sequence[Outgoing]) -> None:
        """Before what was taken is marked: a crash in between repeats a message, and leaves none
        that could come too late."""
        newest = {row_subject(row): row.notification.key for row in taken}
        for row in refused.overtaken_by(taken):
            why = f"overtaken by {newest[row_subject(row)]}"
            await self._call(self._store.dropped, [row], self._clock.now(), why)

    def _get_fallback(self, name: str) -> str:
        return self.common[name].fallback if name in self.common else ""

    def _get_daily_caps(self) -> dict[str, int]:
        """Messages a day to each user, of the channels that tell users of their own jobs."""
        return {name: c.per_day for name, c in self.channels.items() if c.personal}

    def _count_message(self, name: str, group: str, at: Instant) -> None:
        self._sent[name].append(at)
        owner = owners.owner_of(group)
        if owner is not None:
            self._owners[name, owner].append(at)

    def _get_hourly_room(self, name: str) -> int | None:
        cap = self.common[name].per_hour if name in self.common else 0
        return hourly_room(self._sent[name], cap, self._clock.now())

    async def _send_message(
        self, name: str, rows: list[Outgoing], refused: RefusedRows
    ) -> ChannelError | None:
        """What went wrong; None when it was taken."""
        try:
            receipt = await self._call_channel(name, rows)
        except ChannelError as error:
            await self._record_send_failure(name, rows, error)
            return error
        now = self._clock.now()
        self._count_message(name, rows[0].group, now)
        self._note_groups(name, {row.group for row in rows if row.interval}, now)
        self._record_acceptance(name, receipt)
        await self._drop_overtaken(refused, rows)
        await self._call(self._store.sent, rows, self._clock.now(), receipt)
        return None

    def _note_groups(self, name: str, groups: Iterable[str], now: Instant) -> None:
        """When the groups were told of; the oldest are forgotten when there are very many."""
        for group in groups:
            self._told.pop((name, group), None)
            self._told[name, group] = now
        for old in [*self._told][: max(0, len(self._told) - MAX_GROUPS)]:
            del self._told[old]

    async def _call_channel(self, name: str, rows: list[Outgoing]) -> Receipt:
        channel = self.channels.get(name)
        if channel is None:
            raise ChannelError(f"channel {name} is no longer configured", permanent=True)
        try:
            message = self._add_links(name, [row.notification for row in rows])
            if channel.pictures:
                message = await self._add_pictures(message)
            limit = min(MAX_SEND_S, self._store.get_lease_left_s())
            return _to_receipt(await asyncio.wait_for(channel.send(message), limit))
        except ChannelError:
            raise
        except asyncio.TimeoutError:
            raise ChannelError(f"no answer within {limit:.0f}s", reason="timeout") from None
        except Exception as error:
            _LOG.exception("channel %s failed inside", name)
            raise ChannelError(f"internal error: {error!r}", reason="internal") from error

    def _add_links(self, name: str, message: list[Notification]) -> list[Notification]:
        """With the address of the alert's page, and for people with links by which they may
        answer, where there are such; never stored."""
        signer = self.signer
        if signer is None:
            return message
        now, personal = self._clock.now(), self.channels[name].links
        return [
            replace(
                n,
                page=signer.alert_page_url(n.alert),
                links=signer.action_links(n.alert, name, now) if personal else {},
            )
            if is_answerable(n)
            else n
            for n in message
        ]

    async def _add_pictures(self, message: list[Notification]) -> list[Notification]:
        """With pictures of how the worst went. That one cannot be drawn keeps no message back."""
        if find_spec("resvg_py") is None:
            return message
        from sentinel.status.chart_png import build_alert_chart, render_png

        drawn = sorted(filter(is_answerable, message), key=lambda n: -n.severity.rank)[
            :MAX_PICTURES
        ]
        pictures: dict[str, bytes] = {}
        for one in drawn:
            try:
                made = await self._call(build_alert_chart, self._store, one, self._clock.now())
                # Not in the state's thread: fonts may lie on a file system that hangs.
                drawing = asyncio.wrap_future(
                    threads.run_in_thread("picture", partial(render_png, made))
                )
                pictures[one.key] = await asyncio.wait_for(drawing, MAX_DRAWING_S)
            except Exception:
                _LOG.warning("no picture of %s", one.key, exc_info=True)
        return [replace(n, picture=pictures[n.key]) if pictures.get(n.key) else n for n in message]

    async def _record_send_failure(
        self, name: str, rows: list[Outgoing], error: ChannelError
    ) -> None:
        failed = [after_failure(row, error, self._clock.now()) for row in rows]
        if not (owners.is_recipient_failure(rows[0], error) and self._get_fallback(name)):
            self._set_trouble(name, f"not delivering: {error}", sure=error.permanent)
        what = rows[0].notification.key + (f" and {len(rows) - 1} more" if rows[1:] else "")
        why, count = visible(str(error)), failed[0].attempts
        _LOG.warning("channel %s: %s not delivered (attempt %d): %s", name, what, count, why)
        await self._call(self._store.failed, failed)

    def _record_acceptance(self, name: str, receipt: Receipt) -> None:
        if receipt.refused:
            text = f"does not reach {', '.join(receipt.refused)}: {receipt.text}"
            self._set_trouble(name, text, sure=True)
        else:
            self.trouble[name] = None

    def _set_trouble(self, name: str, text: str, *, sure: bool) -> None:
        before = self.trouble.get(name)
        since = before.since if before else self._clock.now()
        self.trouble[name] = ChannelTrouble(since, text, sure)


def _to_receipt(answer: object) -> Receipt:
    """The receipt as it can be stored. A channel that gives none has taken the message all the
    same: what could not be marked would be sent again and again."""
    text, refused = getattr(answer, "text", answer), getattr(answer, "refused", None)
    return Receipt("" if text is None else str(text), tuple(str(name) for name in refused or ()))
