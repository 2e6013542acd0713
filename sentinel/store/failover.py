"""A store that can fail, a mirror of it in memory that answers meanwhile, and a journal of what waits."""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from sentinel.alerting.handover import Handed, handed_over
from sentinel.alerting.silences import Orders
from sentinel.alerting.state import Store, Trouble
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Fenced, StoreBusy, StoreError
from sentinel.core.model import Batch
from sentinel.proc.threads import Patience
from sentinel.store.backlog import Backlog, Write
from sentinel.store.errors import Damaged, Unavailable
from sentinel.store.lease import Lease
from sentinel.store.memory import RECENT, MemoryStore
from sentinel.store.restore import Snapshotting, mark_sent, restore
from sentinel.store.retention import DAY
from sentinel.store.rows import Order, Snapshot
from sentinel.store.spare import MERGED, Begin, Kept, Spare
from sentinel.store.sql import STANDBY

SPACING = 5.0  # seconds between attempts to write again: each may cost a connect timeout
PATIENCE = 20.0
"""Seconds for one answer of the state. A disk that is only busy is asked again soon."""

LONG = 120.0
"""Seconds for a mirror that is written back as a whole."""

Answer = TypeVar("Answer")
Thing = TypeVar("Thing")


class Primary(Snapshotting, Protocol):
    """A store that can fail and come back, as SqlStore."""

    @property
    def locked(self) -> bool: ...
    @property
    def term(self) -> float: ...
    def prepare(self) -> None: ...
    def reopen(self, now: Instant) -> str: ...
    def hand_over(self, handed: Handed) -> None: ...


class Pair:
    """Writes go to both, or wait in order until the primary takes them again; reads are answered
    by the one that knows. Whoever calls takes the `turn` first."""

    def __init__(
        self,
        primary: Primary,
        mirror: MemoryStore,
        limit: int,
        monotonic: Callable[[], float],
        spare: Spare,
        patience: Patience,
    ) -> None:
        self.primary, self.mirror = primary, mirror
        self.turn = threading.RLock()
        self.notices: list[str] = []
        self.orders = Orders()
        self._limit, self._monotonic = limit, monotonic
        self._spare, self._patience = spare, patience
        self._backlog = Backlog(limit)
        self._holder, self._moment = "", Instant(0)
        self._leads = self._leads_there = self._complete = self._readable = False
        self._alone = not primary.term
        self._token = 0
        self._changed = self._kept = False
        self._trouble: Trouble | None = None
        self._damaged = False
        self.anew = False
        """Whether what was there was set aside since the last lead: a copy of it may be left."""
        self._next_try = 0.0

    @property
    def trouble(self) -> Trouble | None:
        """None while the primary takes what is written."""
        if self._trouble is None:
            return None
        return replace(
            self._trouble,
            waiting=len(self._backlog),
            lost_detail=self._backlog.overflowed and not self._kept,
            kept_in=self._spare.path,
        )

    @property
    def refused(self) -> tuple[str, ...]:
        """Journals that are there and not used, and why."""
        return tuple(self._spare.refused)

    @property
    def safe(self) -> bool:
        """Whether what was written outlives this process, here or in a journal."""
        return self._trouble is None or bool(self._spare.path) or not len(self._backlog)

    @property
    def leads_alone(self) -> bool:
        """Whether it leads while the primary is away, because nobody else was seen for a day."""
        return self._leads and self._alone and self._trouble is not None

    def there(self, work: Callable[[], Answer], seconds: float = 0.0) -> Answer:
        """Do it with the primary, within a limit; raises Unavailable where it hangs."""
        try:
            return self._patience.do(work, seconds)
        except TimeoutError as error:
            raise Unavailable(f"the state hangs: {error.strerror or error}") from None

    def catch_up(self) -> bool:
        """Try to write what waits, at most every SPACING seconds; whether all is well."""
        if self._trouble is not None and self._monotonic() >= self._next_try:
            try:
                self._repeat()
            except (Unavailable, Damaged) as error:
                self._note(error)
        return self._trouble is None

    # Leading

    def lead(self, holder: str, now: Instant) -> int:
        """The token; 0 where only a lock could be had and the token waits."""
        self._holder, self._moment = holder, now
        self._trouble, self._backlog = None, Backlog(self._limit)
        self._changed = self._leads_there = False
        kept = self._spare.read()
        self._alone = not self.primary.term or (kept is not None and kept.begin.alone)
        self.orders = kept.orders if kept is not None else self.orders
        try:
            token = self._lead_there(kept)
        except (Unavailable, Damaged) as error:
            token = self._lead_alone(error, kept)
        self.mirror.lead(holder, now)
        self._leads = True
        if self._trouble is None and (kept is None or not kept.begin.shadow):
            self._cast_shadow()
        return token

    def release(self) -> None:
        """After one last attempt to write what waits."""
        self._next_try = 0.0
        with suppress(StoreError):
            self.catch_up()
        if self._leads and self._trouble is None and self._changed:
            self._cast_shadow()
        self._leads = False
        self.mirror.release()
        with suppress(StoreError):
            self.there(self.primary.release)
        self._spare.unlock()

    def renew(self) -> None:
        """Go on leading; raises why that cannot be written, which is a trouble like any other."""
        self.require_lead()
        if self.catch_up():
            try:
                self.there(self.primary.renew)
                self._look_for_others()
            except (Unavailable, Damaged) as error:
                self._note(error)
                raise

    def require_lead(self) -> None:
        """Raises Fenced."""
        if not self._leads:
            raise Fenced("this sentinel does not lead")

    # Reading

    def read(self, read: Callable[[Store], Answer]) -> Answer:
        """What the primary says, or the mirror of it."""
        answer = self.first(read)
        return read(self.mirror) if answer is None else answer

    def first(self, read: Callable[[Store], Answer]) -> Answer | None:
        """What the primary says; None while it cannot be asked."""
        if self._trouble is not None:
            return None
        try:
            return self.there(partial(read, self.primary))
        except (Unavailable, Damaged) as error:
            if not self._leads:
                raise
            self._note(error)
            return None

    def both(self, read: Callable[[Store], list[Thing]]) -> tuple[list[Thing], list[Thing]]:
        """What the primary can still tell of the past, and what happened since."""
        recent = self.read(read)
        if self._trouble is None or not self._readable:
            return [], recent
        try:
            return self.there(partial(read, self.primary)), recent
        except StoreError:
            self._readable = False  # each attempt may cost a connect timeout
            return [], recent

    # Writing

    def write(self, write: Write, at: Instant | None = None) -> None:
        """Now, or as soon as the primary takes it. Fenced always passes through."""
        self.require_lead()
        self._moment = at or self._moment
        batch = write.batch
        if write.rows or (batch and (batch.alerts or batch.closed or batch.outbox)):
            self._changed = True
        if self.catch_up():
            self._write_there(write)
        else:
            self._keep(write)

    def _write_there(self, write: Write) -> None:
        try:
            self.there(partial(write.apply, self.primary))
        except (Unavailable, Damaged) as error:
            self._note(error)
            self._keep(write)
            if isinstance(error, Damaged):
                self._next_try = 0.0
                self.catch_up()
        else:
            write.without_samples().apply(self.mirror)

    def _keep(self, write: Write) -> None:
        """The mirror first: it refuses what no replay could ever write."""
        if not self._spare.path:
            self._begin_journal(whole=not len(self._backlog) and not self._backlog.overflowed)
        write.apply(self.mirror)
        self._backlog.add(write)
        if self._spare.path and not self._spare.keep(write):
            self._begin_journal(whole=False)  # full: another place, with all that is so now

    def _begin_journal(self, *, whole: bool) -> None:
        """Whoever keeps a journal leads by its lock too: others may not see that of the state.
        Raises Fenced where another holds that lock; a place without locks is no reason to stop."""
        try:
            self._lock_spare()
        except Fenced:
            raise
        except StoreError:
            pass
        self._kept = self._spare.begin(self._begin(whole=whole))

    def _begin(self, **more: Any) -> Begin:
        orders = self.orders
        return Begin(
            at=self._moment,
            snapshot=self.mirror.snapshot(),
            orders=(
                *(Order(silence=s) for s in orders.silences),
                *(Order(ack=a) for a in orders.acks.values()),
                *(Order(remark=r) for r in orders.remarks),
            ),
            token=self._token,
            complete=self._complete,
            alone=self._alone,
            **more,
        )

    def _cast_shadow(self) -> None:
        """For the next process, should it find nothing of the state: where there is none yet, and
        when an alert or a message has changed. A pass without news writes nothing."""
        if self._spare.path or not self._complete:
            return
        self._spare.shadow(self._begin(shadow=True))
        self._changed = False

    def _lock_spare(self) -> None:
        try:
            self._spare.lock(Lease(self._holder, self._moment.wall))
        except StoreBusy as error:
            raise Fenced(str(error)) from error

    # Trouble

    def _note(self, error: StoreError) -> None:
        if isinstance(error, Damaged):
            self._damaged = True
            self._backlog.overflow()
        if self._trouble is None:
            self._readable = True
        since = self._trouble.since if self._trouble else self._moment
        self._trouble = Trouble(since, str(error))
        self._next_try = self._monotonic() + SPACING

    def _repeat(self) -> None:
        try:
            if self._damaged:
                self._tell(self.there(lambda: self.primary.reopen(self._moment)))
                self._damaged = self._leads_there = False
            if not self._leads_there:
                self._announce(self.there(self.primary.snapshot).token + 1)
                lead = partial(self.primary.lead, self._holder, self._moment)
                self._token, self._leads_there = self.there(lead), True
        except StoreBusy as error:
            raise Fenced(str(error)) from error
        self._write_back()

    def _announce(self, token: int) -> None:
        """In the journal, before the state is led under that number: a pass that dies in between
        would else be taken for another's."""
        if self._spare.path and not self._spare.note(token):
            self._token = token
            self._begin_journal(whole=False)

    def _write_back(self) -> None:
        """What waits; repeating it is harmless, so a crash in between costs nothing."""
        primary = self.primary
        if self._backlog.overflowed:
            work = partial(restore, primary, self.mirror, self._moment, self._complete)
            self.there(work, LONG)
        self._backlog.replay(lambda write: self.there(partial(write.apply, primary)))
        if self._spare.path:
            merged = Batch(at=self._moment, memory={MERGED: {"id": self._spare.id}})
            self.there(lambda: primary.commit(merged))
            self._spare.clear()
        self.mirror.forget_samples()
        self._trouble, self._backlog, self._complete = None, Backlog(self._limit), True

    def _tell(self, notice: str) -> None:
        """Once: a disk that breaks every few seconds must not fill the memory."""
        if notice not in self.notices:
            self.notices.append(notice)

    def _lead_there(self, kept: Kept | None) -> int:
        try:
            return self._lead_and_load(kept)
        except Damaged:
            self._tell(self.there(lambda: self.primary.reopen(self._moment)))
            self.anew = True
            return self._lead_and_load(kept)

    def _lead_and_load(self, kept: Kept | None) -> int:
        if kept is not None and self.anew:
            token = self._put_back(kept)
        elif kept is None or kept.begin.shadow:
            token = self.there(lambda: self.primary.lead(self._holder, self._moment))
        else:
            token = self._merge(kept, self.there(self.primary.snapshot))
        self.anew = False
        self._token, self._leads_there = token, True
        self.mirror.load(self.there(self.primary.snapshot))
        self._complete = True
        self._look_for_others()
        return token

    def _put_back(self, kept: Kept) -> int:
        """Lead a state that was begun anew, with what the copy elsewhere has of the one before:
        so alerts keep their ids, and their ends are told."""
        token = self.there(lambda: self.primary.lead(self._holder, self._moment))
        self._adopt(kept)
        self._backlog.overflow()
        self._write_back()
        return token

    def _merge(self, kept: Kept, there: Snapshot) -> int:
        """Lead, and write what an earlier process could not. Where others led since, only what it
        sent and what it saw of the past are news: the rest they have seen themselves."""
        current = kept.follows(there)
        self._adopt(kept)
        if current:
            self._announce(there.token + 1)
        try:
            token = self.there(lambda: self.primary.lead(self._holder, self._moment))
        except StoreBusy:
            if not current:
                self._hand_over_unless_at_work()
            raise
        if there.memory.get(MERGED, {}).get("id") == kept.id:
            self._spare.clear()
        elif current and token == there.token + 1:
            self._write_back()
        else:
            self._hand_over()
            self.there(partial(mark_sent, self.primary, self.mirror, there))
            self._spare.clear()
        self._backlog = Backlog(self._limit)
        return token

    def _hand_over_unless_at_work(self) -> None:
        """Another leads by now: it goes on with what was told from here. Not while a process of
        this host still keeps the journal."""
        with suppress(StoreError):
            self._lock_spare()
            self._hand_over()
            self._spare.clear()
        self._spare.unlock()

    def _hand_over(self) -> None:
        mirror = self.mirror
        past = reversed(mirror.history(RECENT))
        handed = handed_over(mirror.alerts(), past, mirror.outbox())
        self.there(lambda: self.primary.hand_over(handed))

    def _adopt(self, kept: Kept) -> None:
        """Be where the process was that wrote it."""
        begin, snapshot = kept.begin, kept.begin.snapshot
        if begin.shadow:
            snapshot = replace(snapshot, seq=self._moment.wall)  # above all that may be stored
        self.mirror.load(snapshot)
        self.mirror.lead(self._holder, self._moment)
        self._backlog = Backlog(self._limit)
        self._complete = begin.complete and not begin.shadow
        if not begin.whole:
            self._backlog.overflow()
        for write in kept.writes:
            write.apply(self.mirror)
            self._backlog.add(write)

    def _lead_alone(self, error: StoreError, kept: Kept | None) -> int:
        """With a lock alone nobody else leads either: watching may begin."""
        if not self._alone:
            raise error
        if not self.primary.locked:
            try:
                self._spare.lock(Lease(self._holder, self._moment.wall))
            except StoreBusy:
                raise
            except StoreError as none:
                raise Unavailable(f"{error}; {none}") from error
        self._note(error)
        self._leads_there = False
        there = self._seen_there()
        if kept is not None and kept.newer_than(there):
            self._adopt(kept)
            self._token = (
                0 if kept.begin.shadow else kept.token
            )  # passes without news left no other
        elif there is not None:
            self.mirror.load(there)
            self._complete, self._token = True, there.token
        else:
            # Numbers above all that may be stored, so that rows of both can be told apart.
            self.mirror.load(Snapshot(seq=self._moment.wall))
            self._complete, self._token = False, 0
        if kept is None or not kept.newer_than(there):
            self._spare.leave()
        return 0

    def _seen_there(self) -> Snapshot | None:
        try:
            return self.there(self.primary.snapshot)
        except StoreError:
            return None

    def _look_for_others(self) -> None:
        """Whether others stand by, or led from another host: where a lease expires they may lead
        as soon as this one is cut off from the server."""
        if not self.primary.term:
            return
        host = self._holder.partition(" ")[0]
        seen = self.there(lambda: self.primary.memory(STANDBY))
        at, before = int(seen.get("at", 0)), seen.get("host", "")
        if before != host:
            at = self._moment.wall if before else at
            note = Batch(at=self._moment, memory={STANDBY: {"at": at, "host": host}})
            self.there(lambda: self.primary.commit(note))
        self._alone = abs(self._moment.wall - at) > DAY * SECOND
