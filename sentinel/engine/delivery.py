"""Sends the rows of the outbox, then marks them as sent. A crash in between repeats a message."""

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from sentinel.alerting import owners
from sentinel.alerting.hourly_shares import HourlyShares, find_capped_rows, put_critical_first
from sentinel.alerting.outbox import (
    REDIRECTED_MARK,
    Group,
    RefusedRows,
    after_doubt,
    after_failure,
    bundle_messages,
    decide_end_duty,
    due_rows,
    expired_rows,
    find_early_retries,
    is_answerable,
    is_ending,
    is_letter,
    join_messages,
    next_wait,
    redirect_row,
    row_subject,
    share_doubtful,
    undelivered_rows,
)
from sentinel.alerting.owners import DAY_S
from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import ChannelError
from sentinel.core.holds import MessageGroup
from sentinel.core.kinds import Channel
from sentinel.core.model import Batch, Notification, Outgoing, Receipt, Sending
from sentinel.core.ports import Clock
from sentinel.core.settings import ChannelCommon
from sentinel.core.text import visible
from sentinel.core.turns import interleave
from sentinel.engine.housekeeping import ChannelTrouble
from sentinel.proc import threads

if TYPE_CHECKING:
    from sentinel.alerting.signed_links import LinkSigner

MAX_SEND_S = 90.0
"""The time limit in seconds for one send, whatever the channel's own limits are."""

MAX_QUEUE_S = 10.0
"""Seconds for the rows that were read from the outbox at once, without the send that is under
way."""

MAX_PICTURES = 3
"""How many pictures a message has at most. They show its worst alerts."""

MAX_DRAWING_S = 5.0
"""Seconds that one picture may take. If it takes longer, the message is sent without it."""

MAX_GROUPS = 10_000
"""For how many groups the time of the last message is remembered."""

SILENCE_RECHECK_S = 30.0
"""Seconds after which it is looked whether a silence of an unsent message is over: a person may end
it."""

LEASE_RECHECK_S = 1.0
"""Seconds after which a leader that could not renew its lease checks again whether it may send."""

_LOG = logging.getLogger("sentinel")
StoreCall = Callable[..., Awaitable[Any]]


class Delivery:
    """Sends the messages that are due, each channel separately and in order.

    `call` runs a method of the store outside of the event loop, because it may block. `trouble` has
    the problem of each channel that was tried. It is None after an accepted message.
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
        self._shares: dict[str, HourlyShares] = defaultdict(HourlyShares)
        self._owners: dict[tuple[str, str], deque[Instant]] = defaultdict(
            lambda: deque(maxlen=1000)
        )
        self._told: dict[Group, Instant] = {}
        self._beginning = asyncio.Lock()
        self._at_work: dict[str, asyncio.Future[None]] = {}

    async def recall_earlier_sends(self, seconds: float = 3600.0) -> None:
        """Read what earlier processes sent in the last `seconds`, and which channels failed, so
        that neither the hour of a cap nor the age of a trouble starts again."""
        for row in await self._call(self._store.read_outbox):
            if row.attempts and row.channel not in self.trouble:
                self.trouble[row.channel] = ChannelTrouble(
                    row.created, f"not delivering: {row.error}", row.permanent
                )
        since = self._clock.now().wall - int(
            max(seconds, DAY_S if self._get_daily_caps() else 0) * SECOND
        )
        messages: dict[tuple[str, int], list[Sending]] = {}
        for sending in await self._call(self._store.read_sendings, since):
            self._note_groups(sending.channel, [sending.bundle], sending.at)
            messages.setdefault((sending.channel, sending.message), []).append(sending)
        for (name, _), sendings in messages.items():
            self._count_message(name, sendings, sendings[0].at)

    async def begin_sending(self) -> float | None:
        """Start to send the due messages on every idle channel, and wait for none. Returns the
        seconds until an idle channel has more to send, None if nothing waits there. `idle` is
        called whenever a channel has ended. Raises the error with which a channel ended."""
        async with self._beginning:
            self._reap_ended_sends()
            if self._store.get_lease_left_s() <= 0:
                return LEASE_RECHECK_S
            now = self._clock.now()
            rows = await self._drop_expired(await self._redirect_strays(now), now)
            rows, silenced = await self._split_silenced(rows, now)
            full, reopenings = find_capped_rows(rows, self._get_shares, now)
            spent = owners.owners_at_cap(rows, self._owners, self._get_daily_caps(), now)
            left = [
                r
                for r in rows
                if r.channel not in self._at_work
                and r.seq not in full
                and (r.channel, r.bundle.owner) not in spent
            ]
            ready = sorted(due_rows(left, now, self._told), key=lambda r: (r.channel, r.seq))
            now_due = {r.seq for r in ready}
            for name, batch in groupby(ready, lambda r: r.channel):
                waiting = [r for r in rows if r.channel == name and r.seq not in now_due]
                task = asyncio.ensure_future(self._send_queue(name, list(batch), waiting))
                task.add_done_callback(lambda _: self._idle())
                self._at_work[name] = task
            idle = [r for r in left if r.channel not in self._at_work]
            later = [*reopenings, *spent.values(), *([SILENCE_RECHECK_S] if silenced else [])]
            waits = [next_wait(idle, now, self._told), *later]
            return min((w for w in waits if w is not None), default=None)

    async def retry_refused(self) -> None:
        """See outbox.find_early_retries."""
        if rows := find_early_retries(await self._call(self._store.read_outbox)):
            await self._call(self._store.failed, rows)

    async def end_waits(self) -> None:
        """Make failed rows due now. They may have failed only from another host."""
        rows = await self._call(self._store.read_outbox)
        if waiting := [replace(row, wait=0.0) for row in rows if row.wait]:
            await self._call(self._store.failed, waiting)

    async def send_due(self) -> float | None:
        """Send all messages that are due. Returns the seconds until the next one is due, None if
        all are sent."""
        wait = await self.begin_sending()
        while self._at_work:
            await asyncio.wait(self._at_work.values())
            wait = await self.begin_sending()
        return wait

    async def drain_outbox(self, limit: float) -> bool:
        """Send for `limit` seconds at most. Returns whether all was sent."""
        try:
            return await asyncio.wait_for(self.send_due(), limit) is None
        except asyncio.TimeoutError:
            for task in self._at_work.values():
                task.cancel()
            return False

    def _reap_ended_sends(self) -> None:
        """Forget the ended sends. Until then their channel is busy: rows read before are old."""
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

    async def _split_silenced(
        self, rows: Sequence[Outgoing], now: Instant
    ) -> tuple[list[Outgoing], bool]:
        """The rows without those of alerts that were silenced before they were sent, and whether some
        of these wait for the end of their silence."""
        fresh = [r for r in rows if r.tried is None and r.channel not in self._at_work]
        if not fresh:
            return [*rows], False
        orders = await self._call(self._store.read_orders)
        if not orders.silences:
            return [*rows], False
        from sentinel.alerting.silenced_rows import split_silenced_rows  # most passes need it not

        found = split_silenced_rows(fresh, orders.silences, now)
        if found.needless:
            await self._call(self._store.dropped, found.needless, now, "silenced until it was over")
        gone = {r.seq for r in (*found.waiting, *found.needless)}
        return [r for r in rows if r.seq not in gone], bool(found.waiting)

    async def _redirect_strays(self, now: Instant) -> list[Outgoing]:
        """The outbox, after messages that a channel does not deliver were given to its fallback."""
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
        """The ends that a fallback also has to send, and those that only the fallback sends."""
        too, alone = [], []
        for row in rows:
            fallback = fallbacks.get(row.channel)
            if fallback and is_ending(row.notification):
                past = await self._call(self._store.read_deliveries, row.notification.alert)
                found = decide_end_duty(row, past, fallback)
                too += [row] if found.too else []
                alone += [row] if found.alone else []
        return too, alone

    async def _send_queue(self, name: str, rows: list[Outgoing], waiting: list[Outgoing]) -> None:
        """Send the rows of a channel, its users by turns, until MAX_QUEUE_S is over. Then the
        outbox is read again, for rows of other users. `waiting`: rows that are not due yet."""
        groups = name in self.channels and self.channels[name].groups
        messages = bundle_messages(rows) if groups else [[row] for row in rows]
        messages = self._order_messages(name, messages)
        if per_day := self._get_daily_caps().get(name):
            sent = {user: at for (channel, user), at in self._owners.items() if channel == name}
            messages = owners.ration_messages(messages, sent, per_day, self._clock.now())
            groups = False  # each message is for one user now, so groups must not be joined again
        if not groups:  # a message about several users must not be overtaken
            messages = interleave(messages, owners.find_message_owner)
            messages = join_messages(messages, self._count_messages_at_once(name))
        refused, until = RefusedRows(waiting), time.monotonic() + MAX_QUEUE_S
        shares = self._get_shares(name)
        while messages and time.monotonic() < until and self._store.get_lease_left_s() > 0:
            now = self._clock.now()
            place = shares.choose_message(messages, now)
            if place is None:
                return
            message = messages.pop(place)
            if groups and shares.get_room(owners.find_message_owner(message), now) == 1:
                message = [row for several in (message, *messages) for row in several]
                messages = []
            message = [row for row in message if not refused.hold_back(row)]
            error = await self._send_message(name, message, refused) if message else None
            if error is None:
                continue
            if not error.permanent:
                return
            refused.add_refused(message)

    async def _drop_overtaken(self, refused: RefusedRows, taken: Sequence[Outgoing]) -> None:
        """Drop the overtaken rows before the taken ones are marked. A crash in between repeats a
        message, and leaves no row that could come too late."""
        newest = {row_subject(row): row.notification.key for row in taken}
        for row in refused.overtaken_by(taken):
            why = f"overtaken by {newest[row_subject(row)]}"
            await self._call(self._store.dropped, [row], self._clock.now(), why)

    def _get_fallback(self, name: str) -> str:
        return self.common[name].fallback if name in self.common else ""

    def _get_daily_caps(self) -> dict[str, int]:
        """How many messages a user gets per day, by channel that notifies users."""
        return {name: c.per_day for name, c in self.channels.items() if c.personal}

    def _order_messages(self, name: str, messages: owners.Messages) -> owners.Messages:
        """The critical ones first, if not all of them may be sent within the hour."""
        return put_critical_first(messages) if self._get_shares(name).per_hour else messages

    def _count_message(self, name: str, rows: Sequence[Outgoing | Sending], at: Instant) -> None:
        self._get_shares(name).count_message(rows, at)
        if (owner := rows[0].bundle.owner) is not None:
            self._owners[name, owner].append(at)

    def _count_messages_at_once(self, name: str) -> int:
        """How many messages are joined at once. It is one if a cap counts each message."""
        is_capped = self._get_shares(name).per_hour
        return 1 if is_capped or name not in self.channels else self.channels[name].messages_at_once

    def _get_shares(self, name: str) -> HourlyShares:
        """What the channel has sent within the hour, with its cap as it is configured now."""
        shares = self._shares[name]
        shares.per_hour = self.common[name].per_hour if name in self.common else 0
        return shares

    async def _send_message(
        self, name: str, rows: list[Outgoing], refused: RefusedRows
    ) -> ChannelError | None:
        """Send one message. Returns the error, None if the message was accepted."""
        try:
            receipt = await self._call_channel(name, rows)
        except ChannelError as error:
            await self._record_send_failure(name, rows, error)
            return error
        now = self._clock.now()
        self._count_message(name, rows, now)
        self._note_groups(name, {row.bundle for row in rows if row.interval}, now)
        self._record_acceptance(name, receipt)
        if receipt.doubt:
            rows = await self._share_doubtful_rows(rows, receipt.doubt, refused)
        if rows:
            await self._drop_overtaken(refused, rows)
            await self._call(self._store.sent, rows, self._clock.now(), receipt)
        return None

    async def _share_doubtful_rows(
        self, rows: Sequence[Outgoing], doubt: str, refused: RefusedRows
    ) -> list[Outgoing]:
        """Give the rows to other channels too, because their own may not have taken them. Returns
        the rows that count as sent; the others wait, since nobody else gets them."""
        now = self._clock.now()
        others = [n for n, c in self.channels.items() if c.reaches and not c.personal]
        sent: list[Outgoing] = []
        copies: list[Outgoing] = []
        waiting: list[Outgoing] = []
        for row in rows:
            past = await self._call(self._store.read_deliveries, row.notification.alert)
            own = row.channel
            fallback, rest = self._get_fallback(own), [n for n in others if n != own]
            to, heard = share_doubtful(row, past, fallback, rest)
            copies += [redirect_row(row, name, now, doubt) for name in to]
            later = None if heard else after_doubt(row, doubt, now)
            (sent if later is None else waiting).append(later or row)
        if copies:
            await self._call(self._store.commit, Batch(at=now, outbox=tuple(copies)))
        if waiting:
            refused.add_refused(waiting)
            await self._call(self._store.failed, waiting)
        return sent

    def _note_groups(self, name: str, groups: Iterable[MessageGroup], now: Instant) -> None:
        """Record when each group was last sent. If there are very many, the oldest are forgotten."""
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
        """The message with the address of the alert's page, and links for answers if people read
        the channel. Links are never stored."""
        signer = self.signer
        if signer is None:
            return message
        now, personal = self._clock.now(), self.channels[name].links
        firing = list(dict.fromkeys(n.alert for n in message if is_answerable(n)))
        every = signer.ack_all_link(firing, name, now) if personal and len(firing) > 1 else {}
        return [
            replace(
                n,
                page=signer.alert_page_url(n.alert),
                links={**signer.action_links(n.alert, name, now), **every} if personal else {},
            )
            if is_answerable(n)
            else n
            for n in message
        ]

    async def _add_pictures(self, message: list[Notification]) -> list[Notification]:
        """The message with pictures of its worst alerts, as far as they can be drawn."""
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
                # Not in the thread of the state, because fonts may be on a file system that hangs.
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
        if all(map(is_letter, rows)) and (
            error.permanent or owners.is_recipient_failure(rows[0], error)
        ):  # A wish disturbs nobody but its author.
            why = f"its author cannot be reached: {error}"
            await self._call(self._store.dropped, rows, self._clock.now(), visible(why))
            return
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
        elif receipt.doubt:
            text = f"probably does not deliver: {receipt.doubt}; see whether its messages arrive"
            self._set_trouble(name, text, sure=True)
        else:
            self.trouble[name] = None

    def _set_trouble(self, name: str, text: str, *, sure: bool) -> None:
        before = self.trouble.get(name)
        since = before.since if before else self._clock.now()
        self.trouble[name] = ChannelTrouble(since, text, sure)


def _to_receipt(answer: object) -> Receipt:
    """The receipt as it can be stored. A message without a receipt counts as accepted. Otherwise it
    would be sent again and again."""
    text, refused = getattr(answer, "text", answer), getattr(answer, "refused", None)
    return Receipt(
        "" if text is None else str(text),
        tuple(str(name) for name in refused or ()),
        str(getattr(answer, "doubt", "") or ""),
    )
