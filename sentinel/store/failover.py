"""A store that may fail, its mirror in memory, and a journal of waiting writes."""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from sentinel.alerting.handover import Handover, export_handover
from sentinel.alerting.silences import Orders
from sentinel.alerting.state import StateTrouble, Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Fenced, StoreBusy, StoreError
from sentinel.core.model import Batch
from sentinel.proc.threads import BoundedWorker
from sentinel.store.backlog import Backlog, PendingWrite
from sentinel.store.errors import StateDamaged, StateUnavailable
from sentinel.store.lease import Lease, get_host_name
from sentinel.store.memory import MAX_RECENT_ROWS, MemoryStore
from sentinel.store.restore import SnapshotStore, mark_sent_rows, restore_mirror
from sentinel.store.retention import DAY_S
from sentinel.store.rows import StateSnapshot, StoredOrder
from sentinel.store.spare_journals import (
    MERGED_JOURNAL_KEY,
    JournalContents,
    JournalHead,
    SpareJournals,
)
from sentinel.store.sql import STANDBY_KEY

RETRY_SPACING_S = 5.0  # seconds between attempts to write again: each may cost a connect timeout
STATE_TIMEOUT_S = 20.0
"""Seconds for one answer of the state. If a disk is only busy, it is tried again soon."""

RESTORE_TIMEOUT_S = 120.0
"""Seconds to write a whole mirror back."""

Answer = TypeVar("Answer")
Thing = TypeVar("Thing")


class PrimaryStore(SnapshotStore, Protocol):
    """A store that can fail and work again, as SqlStore."""

    @property
    def has_lock(self) -> bool: ...
    @property
    def term(self) -> float: ...
    def open_database(self) -> None: ...
    def replace_damaged(self, now: Instant) -> str: ...
    def store_handover(self, handed: Handover) -> None: ...
    def take_notices(self) -> tuple[str, ...]: ...


class FailoverStore:
    """Writes go to the primary and its mirror, or wait in order until the primary takes them again.
    Reads are answered by the one that knows. A caller takes the `turn` first."""

    def __init__(
        self,
        primary: PrimaryStore,
        mirror: MemoryStore,
        limit: int,
        monotonic: Callable[[], float],
        spare: SpareJournals,
        patience: BoundedWorker,
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
        self._trouble: StateTrouble | None = None
        self._damaged = False
        self.anew = False
        """Whether the former state was set aside since the last lead. A copy of it may be left
        then."""
        self._next_try = 0.0

    @property
    def trouble(self) -> StateTrouble | None:
        """The trouble; None while the primary takes writes."""
        if self._trouble is None:
            return None
        return replace(
            self._trouble,
            waiting=len(self._backlog),
            lost_detail=self._backlog.overflowed and not self._kept,
            kept_in=self._spare.journal_path,
        )

    @property
    def refused_journals(self) -> tuple[str, ...]:
        """Journals that are there and not used, and why."""
        return tuple(self._spare.refused)

    @property
    def is_durable(self) -> bool:
        """Whether every write survives the end of this process, in the state or in a journal."""
        return bool(self._spare.journal_path) or not len(self._backlog)

    @property
    def is_leading_alone(self) -> bool:
        """Whether it leads while the primary is away: no other sentinel was seen for a day."""
        return self._leads and self._alone and self._trouble is not None

    def call_primary(self, work: Callable[[], Answer], seconds: float = 0.0) -> Answer:
        """Call the primary within a time limit. Raises StateUnavailable if it hangs."""
        try:
            return self._patience.do_within(work, seconds)
        except TimeoutError as error:
            raise StateUnavailable(f"the state hangs: {error.strerror or error}") from None

    def write_pending(self) -> bool:
        """Try to write what waits, at most every RETRY_SPACING_S. Returns whether all is
        written."""
        if self._trouble is not None and self._monotonic() >= self._next_try:
            try:
                self._resume_primary()
            except (StateUnavailable, StateDamaged) as error:
                self._record_trouble(error)
        return self._trouble is None

    # Leading

    def take_lead(self, holder: str, now: Instant) -> int:
        """Take the lead. Returns the token; 0 if only a lock could be taken for now."""
        self._holder, self._moment = holder, now
        self._trouble, self._backlog = None, Backlog(self._limit)
        self._changed = False
        kept = self._spare.read_newest()
        self._alone = not self.primary.term or (kept is not None and kept.begin.alone)
        self.orders = kept.known_orders if kept is not None else self.orders
        try:
            token = self._lead_primary(kept)
        except (StateUnavailable, StateDamaged) as error:
            token = self._lead_alone(error, kept)
        self.mirror.take_lead(holder, now)
        self._leads = True
        if self._trouble is None and (kept is None or not kept.begin.shadow):
            self._write_standby_copy()
        return token

    def release_lead(self) -> None:
        """Stop leading, after one last attempt to write what waits."""
        self._next_try = 0.0
        with suppress(StoreError):
            self.write_pending()
        if self._leads and self._trouble is None and self._changed:
            self._write_standby_copy()
        self._leads = False
        self.mirror.release_lead()
        with suppress(StoreError):
            self.call_primary(self.primary.release_lead)
        self._spare.unlock_spare()

    def renew_lease(self) -> None:
        """Go on leading. Raises the error if that cannot be written, and Fenced."""
        self.require_lead()
        if self.write_pending():
            try:
                self.call_primary(self.primary.renew_lease)
                self._detect_standbys()
            except (StateUnavailable, StateDamaged) as error:
                self._record_trouble(error)
                raise

    def require_lead(self) -> None:
        """Raise Fenced if this sentinel does not lead."""
        if not self._leads:
            raise Fenced("this sentinel does not lead")

    # Reading

    def read_either(self, read: Callable[[Store], Answer]) -> Answer:
        """The answer of the primary; that of its mirror if the primary cannot be read."""
        answer = self.read_primary(read)
        return read(self.mirror) if answer is None else answer

    def read_primary(self, read: Callable[[Store], Answer]) -> Answer | None:
        """The answer of the primary; None while the primary cannot be read."""
        if self._trouble is not None:
            return None
        try:
            return self.call_primary(partial(read, self.primary))
        except (StateUnavailable, StateDamaged) as error:
            if not self._leads:
                raise
            self._record_trouble(error)
            return None

    def read_both(self, read: Callable[[Store], list[Thing]]) -> tuple[list[Thing], list[Thing]]:
        """Two lists: the past from the primary, if it can still be read, and the events since."""
        recent = self.read_either(read)
        if self._trouble is None or not self._readable:
            return [], recent
        try:
            return self.call_primary(partial(read, self.primary)), recent
        except StoreError:
            self._readable = False  # because each attempt may take as long as a connect timeout
            return [], recent

    # Writing

    def write_or_queue(self, write: PendingWrite, at: Instant | None = None) -> None:
        """Do the write now, or as soon as the primary works. Raises Fenced."""
        self.require_lead()
        self._moment = at or self._moment
        batch = write.batch
        if write.rows or (batch and (batch.alerts or batch.closed or batch.outbox)):
            self._changed = True
        if self.write_pending():
            self._write_primary(write)
        else:
            self._queue_write(write)

    def _write_primary(self, write: PendingWrite) -> None:
        try:
            self.call_primary(partial(write.apply_to, self.primary))
        except (StateUnavailable, StateDamaged) as error:
            self._record_trouble(error)
            self._queue_write(write)
            if isinstance(error, StateDamaged):
                self._next_try = 0.0
                self.write_pending()
        else:
            write.without_history().apply_to(self.mirror)

    def _queue_write(self, write: PendingWrite) -> None:
        """Apply the write to the mirror first: it refuses what no replay could ever write."""
        if not self._spare.journal_path:
            self._begin_journal(whole=not len(self._backlog) and not self._backlog.overflowed)
        write.apply_to(self.mirror)
        self._backlog.add_write(write)
        if self._spare.journal_path and not self._spare.append_write(write):
            # it is full: begin a journal in another place with the present state
            self._begin_journal(whole=False)

    def _begin_journal(self, *, whole: bool) -> None:
        """Start a journal, and lock its directory: another host may not see the lock of the state.
        Raises Fenced if another process has locked it. A place without locks is used as well."""
        try:
            self._lock_spare()
        except Fenced:
            raise
        except StoreError:
            pass
        self._kept = self._spare.begin_journal(self._make_journal_head(whole=whole))

    def _make_journal_head(self, **more: Any) -> JournalHead:
        orders = self.orders
        return JournalHead(
            at=self._moment,
            snapshot=self.mirror.read_snapshot(),
            orders=(
                *(StoredOrder(silence=s) for s in orders.silences),
                *(StoredOrder(ack=a) for a in orders.acks.values()),
                *(StoredOrder(remark=r) for r in orders.remarks),
            ),
            token=self._token,
            complete=self._complete,
            alone=self._alone,
            **more,
        )

    def _write_standby_copy(self) -> None:
        """Write a copy for the next process, in case it finds the state gone. It is written if
        there is none yet, and after an alert or a message has changed."""
        if self._spare.journal_path or not self._complete:
            return
        self._spare.write_standby_copy(self._make_journal_head(shadow=True))
        self._changed = False

    def _lock_spare(self) -> None:
        try:
            self._spare.lock_spare(Lease(self._holder, self._moment.wall))
        except StoreBusy as error:
            raise Fenced(str(error)) from error

    # Trouble

    def _record_trouble(self, error: StoreError) -> None:
        if isinstance(error, StateDamaged):
            self._damaged = True
            self._backlog.discard_writes()
        if self._trouble is None:
            self._readable = True
        since = self._trouble.since if self._trouble else self._moment
        self._trouble = StateTrouble(since, str(error))
        self._next_try = self._monotonic() + RETRY_SPACING_S

    def _resume_primary(self) -> None:
        try:
            if self._damaged:
                self._add_notice(
                    self.call_primary(lambda: self.primary.replace_damaged(self._moment))
                )
                self._damaged = self._leads_there = False
            if not self._leads_there:
                self._journal_token(self.call_primary(self.primary.read_snapshot).token + 1)
                lead = partial(self.primary.take_lead, self._holder, self._moment)
                self._token, self._leads_there = self.call_primary(lead), True
                self._take_primary_notices()
        except StoreBusy as error:
            raise Fenced(str(error)) from error
        self._write_back()

    def _journal_token(self, token: int) -> None:
        """Write the number to the journal before the state is led under it: else, after a crash in
        between, the state would seem to be led by another process."""
        if self._spare.journal_path and not self._spare.append_token(token):
            self._token = token
            self._begin_journal(whole=False)

    def _write_back(self) -> None:
        """Write what waits. Repeating this is harmless, so a crash in between loses nothing."""
        primary = self.primary
        if self._backlog.overflowed:
            work = partial(restore_mirror, primary, self.mirror, self._moment, self._complete)
            self.call_primary(work, RESTORE_TIMEOUT_S)
        self._backlog.replay_writes(
            lambda write: self.call_primary(partial(write.apply_to, primary))
        )
        if self._spare.journal_path:
            merged = Batch(
                at=self._moment, memory={MERGED_JOURNAL_KEY: {"id": self._spare.journal_id}}
            )
            self.call_primary(lambda: primary.commit(merged))
            self._spare.remove_journals()
        self.mirror.forget_history()
        self._trouble, self._backlog, self._complete = None, Backlog(self._limit), True

    def _take_primary_notices(self) -> None:
        for notice in self.primary.take_notices():
            self._add_notice(notice)

    def _add_notice(self, notice: str) -> None:
        """Add a notice once: a disk that fails every few seconds must not fill the memory."""
        if notice not in self.notices:
            self.notices.append(notice)

    def _lead_primary(self, kept: JournalContents | None) -> int:
        try:
            return self._lead_and_load(kept)
        except StateDamaged:
            self._add_notice(self.call_primary(lambda: self.primary.replace_damaged(self._moment)))
            self.anew = True
            return self._lead_and_load(kept)

    def _lead_and_load(self, kept: JournalContents | None) -> int:
        if kept is not None and self.anew:
            token = self._restore_copy(kept)
        elif kept is None or kept.begin.shadow:
            token = self.call_primary(lambda: self.primary.take_lead(self._holder, self._moment))
        else:
            token = self._merge_journal(kept, self.call_primary(self.primary.read_snapshot))
        self.anew = False
        self._token, self._leads_there = token, True
        self._take_primary_notices()
        self.mirror.load_snapshot(self.call_primary(self.primary.read_snapshot))
        self._complete = True
        self._detect_standbys()
        return token

    def _restore_copy(self, kept: JournalContents) -> int:
        """Lead a new state, filled from the copy of the former one. So alerts keep their ids, and
        their ends are told. Returns the token."""
        token = self.call_primary(lambda: self.primary.take_lead(self._holder, self._moment))
        self._adopt_journal(kept)
        self._backlog.discard_writes()
        self._write_back()
        return token

    def _merge_journal(self, kept: JournalContents, there: StateSnapshot) -> int:
        """Lead, and write what an earlier process could not. If others led since, only what it sent
        and its past are written: they have seen the rest. Returns the token."""
        current = kept.has_no_later_leader(there)
        self._adopt_journal(kept)
        if current:
            self._journal_token(there.token + 1)
        try:
            token = self.call_primary(lambda: self.primary.take_lead(self._holder, self._moment))
        except StoreBusy:
            if not current:
                self._hand_over_unless_at_work()
            raise
        if there.memory.get(MERGED_JOURNAL_KEY, {}).get("id") == kept.id:
            self._spare.remove_journals()
        elif current and token == there.token + 1:
            self._write_back()
        else:
            self._hand_over_mirror()
            self.call_primary(partial(mark_sent_rows, self.primary, self.mirror, there))
            self._spare.remove_journals()
        self._backlog = Backlog(self._limit)
        return token

    def _hand_over_unless_at_work(self) -> None:
        """Hand over to the process that leads now the alerts that were told from here, unless a
        process of this host still keeps the journal."""
        with suppress(StoreError):
            self._lock_spare()
            self._hand_over_mirror()
            self._spare.remove_journals()
        self._spare.unlock_spare()

    def _hand_over_mirror(self) -> None:
        mirror = self.mirror
        past = reversed(mirror.read_transitions(MAX_RECENT_ROWS))
        handed = export_handover(mirror.read_alerts(), past, mirror.read_outbox())
        self.call_primary(lambda: self.primary.store_handover(handed))

    def _adopt_journal(self, kept: JournalContents) -> None:
        """Take the position of the process that wrote the journal."""
        begin, snapshot = kept.begin, kept.begin.snapshot
        if begin.shadow:
            # above all numbers that the database may contain
            snapshot = replace(snapshot, seq=self._moment.wall)
        self.mirror.load_snapshot(snapshot)
        self.mirror.take_lead(self._holder, self._moment)
        self._backlog = Backlog(self._limit)
        self._complete = begin.complete and not begin.shadow
        if not begin.whole:
            self._backlog.discard_writes()
        for write in kept.writes:
            write.apply_to(self.mirror)
            self._backlog.add_write(write)

    def _lead_alone(self, error: StoreError, kept: JournalContents | None) -> int:
        """Begin although the primary fails: a lock alone proves that nobody else leads. Returns the
        token."""
        if not self._alone:
            raise error
        if not self.primary.has_lock:
            try:
                self._spare.lock_spare(Lease(self._holder, self._moment.wall))
            except StoreBusy:
                raise
            except StoreError as none:
                raise StateUnavailable(f"{error}; {none}") from error
        self._record_trouble(error)
        self._leads_there = False
        there = self._read_primary_snapshot()
        if kept is not None and kept.is_newer_than(there):
            self._adopt_journal(kept)
            self._token = (
                0 if kept.begin.shadow else kept.token
            )  # a shadow journal may be older than the token in the database
        elif there is not None:
            self.mirror.load_snapshot(there)
            self._complete, self._token = True, there.token
        else:
            # Use numbers above all that the database may contain, so that the rows of both can be
            # distinguished.
            self.mirror.load_snapshot(StateSnapshot(seq=self._moment.wall))
            self._complete, self._token = False, 0
        if kept is None or not kept.is_newer_than(there):
            self._spare.leave_journal()
        return 0

    def _read_primary_snapshot(self) -> StateSnapshot | None:
        try:
            return self.call_primary(self.primary.read_snapshot)
        except StoreError:
            return None

    def _detect_standbys(self) -> None:
        """Find out whether other hosts stand by or led lately. With a lease they may lead as soon
        as this process is cut off from the server."""
        if not self.primary.term:
            return
        host = get_host_name()
        seen = self.call_primary(lambda: self.primary.read_memory(STANDBY_KEY))
        at, before = int(seen.get("at", 0)), seen.get("node", "")
        if before != host:
            at = self._moment.wall if before else at
            note = Batch(at=self._moment, memory={STANDBY_KEY: {"at": at, "node": host}})
            self.call_primary(lambda: self.primary.commit(note))
        self._alone = abs(self._moment.wall - at) > DAY_S * SECOND
