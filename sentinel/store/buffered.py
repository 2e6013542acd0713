"""Watching and telling go on while the state cannot be written.

The one exception to commit before send: on a full disk, a read-only file system or a
lost connection, writes are kept in memory and repeated in order once writing works.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from sentinel.core.clock import Instant
from sentinel.core.errors import Fenced, StoreBusy, StoreError
from sentinel.core.model import Alert, Batch, Outgoing, Receipt, Run, Sending, Transition
from sentinel.core.mute import Ack, Orders, Silence
from sentinel.core.ports import Store
from sentinel.store.backlog import LIMIT, Backlog, Write
from sentinel.store.errors import Damaged, Unavailable
from sentinel.store.memory import MemoryStore
from sentinel.store.restore import Snapshotting, restore
from sentinel.store.snapshot import Snapshot
from sentinel.store.trouble import Trouble

SPACING = 5.0  # seconds between attempts to write again: each may cost a connect timeout
Answer = TypeVar("Answer")
Thing = TypeVar("Thing")
Delivery = tuple[Outgoing, Instant | None, str]


class Primary(Snapshotting, Protocol):
    """A store that can fail and come back, as SqlStore."""

    @property
    def locked(self) -> bool: ...
    @property
    def term(self) -> float: ...
    def reopen(self, now: Instant) -> str: ...


class Buffered:
    """core.ports.Store over a primary and its mirror; safe to use from several threads.

    While all is well it is the primary. Fenced and StoreBusy always pass through.
    """

    def __init__(
        self,
        primary: Primary,
        mirror: MemoryStore,
        *,
        limit: int = LIMIT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._primary, self._mirror = primary, mirror
        self._limit, self._monotonic = limit, monotonic
        self._turn = threading.RLock()
        self._backlog = Backlog(limit)
        self._holder, self._moment = "", Instant(0)
        self._leads = self._leads_there = self._complete = self._readable = False
        self._trouble: Trouble | None = None
        self._damaged = False
        self._next_try = 0.0
        self._notices: list[str] = []
        self._orders = Orders()

    @property
    def trouble(self) -> Trouble | None:
        """None while the state is written as it should be."""
        with self._turn:
            if self._trouble is None:
                return None
            return replace(
                self._trouble, waiting=len(self._backlog), lost_detail=self._backlog.overflowed
            )

    def take_notices(self) -> tuple[str, ...]:
        """What a person must hear and was not told yet: a state was set aside."""
        with self._turn:
            notices, self._notices = tuple(self._notices), []
            return notices

    def catch_up(self) -> bool:
        """Try to write what waits, at most every SPACING seconds; whether all is well."""
        with self._turn:
            if self._trouble is not None and self._monotonic() >= self._next_try:
                try:
                    self._repeat()
                except (Unavailable, Damaged) as error:
                    self._note(error)
            return self._trouble is None

    def close(self) -> None:
        self.release()
        self._primary.close()

    # Leading

    def lead(self, holder: str, now: Instant) -> int:
        """As the port says; 0 where only the lock could be had and the token waits."""
        with self._turn:
            self._holder, self._moment = holder, now
            self._trouble, self._backlog = None, Backlog(self._limit)
            try:
                token = self._lead_there()
            except (Unavailable, Damaged) as error:
                token = self._lead_alone(error)
            self._mirror.lead(holder, now)
            self._leads = True
            return token

    def release(self) -> None:
        """After one last attempt to write what waits."""
        with self._turn:
            self._next_try = 0.0
            with suppress(StoreError):
                self.catch_up()
            self._leads = False
            self._mirror.release()
            self._primary.release()

    def renew(self) -> None:
        with self._turn:
            if not self._leads:
                raise Fenced("this sentinel does not lead")
            if self.catch_up():
                self._primary.renew()

    def lease_left(self) -> float:
        """Asks nobody and waits for nobody: a connection that hangs must not keep it back."""
        return self._primary.lease_left()

    @property
    def term(self) -> float:
        """Seconds a lease lasts, 0 where it needs no renewing."""
        return self._primary.term

    def leader(self) -> str:
        return self._read(lambda store: store.leader())

    # Reading

    def alerts(self) -> list[Alert]:
        return self._read(lambda store: store.alerts())

    def runs(self) -> list[Run]:
        return self._read(lambda store: store.runs())

    def memory(self, check: str) -> Mapping[str, Any]:
        return self._read(lambda store: store.memory(check))

    def outbox(self) -> list[Outgoing]:
        return self._read(lambda store: store.outbox())

    def history(self, limit: int = 100, alert: str = "") -> list[Transition]:
        older, recent = self._both(lambda store: store.history(limit, alert))
        told = {t.id: t for t in reversed(older)} | {t.id: t for t in reversed(recent)}
        return list(reversed(told.values()))[:limit]

    def deliveries(self, alert: str) -> list[Delivery]:
        older, recent = self._both(lambda store: store.deliveries(alert))
        told = {d[0].seq: d for d in older} | {d[0].seq: d for d in recent}
        return [told[seq] for seq in sorted(told)]

    def sendings(self, since: int) -> list[Sending]:
        older, recent = self._both(lambda store: store.sendings(since))
        return list(dict.fromkeys([*older, *recent]))

    def samples(
        self, check: str, subject: str, name: str, since: int
    ) -> list[tuple[Instant, float]]:
        older, recent = self._both(lambda store: store.samples(check, subject, name, since))
        return list((dict(older) | dict(recent)).items())

    def orders(self) -> Orders:
        """As last read while the primary cannot be."""
        with self._turn:
            if self._trouble is None:
                try:
                    self._orders = self._primary.orders()
                except (Unavailable, Damaged) as error:
                    if not self._leads:
                        raise
                    self._note(error)
            return self._orders

    # Writing

    def silence(self, silence: Silence) -> None:
        """Of a person who waits for the answer: never kept for later."""
        self._primary.silence(silence)

    def acknowledge(self, ack: Ack) -> None:
        """As `silence`."""
        self._primary.acknowledge(ack)

    def commit(self, batch: Batch) -> None:
        with self._turn:
            outbox = self._mirror.numbered(batch.outbox)
            self._write(Write("commit", (replace(batch, outbox=outbox),)), batch.at)

    def sent(self, rows: Sequence[Outgoing], now: Instant, receipt: Receipt) -> None:
        self._write(Write("sent", (tuple(rows), now, receipt)), now)

    def failed(self, rows: Sequence[Outgoing]) -> None:
        self._write(Write("failed", (tuple(rows),)), self._moment)

    def dropped(self, rows: Sequence[Outgoing], now: Instant, why: str) -> None:
        self._write(Write("dropped", (tuple(rows), now, why)), now)

    def prune(self, now: Instant) -> None:
        self._write(Write("prune", (now,)), now)

    def _write(self, write: Write, at: Instant) -> None:
        with self._turn:
            if not self._leads:
                raise Fenced("this sentinel does not lead")
            self._moment = at
            if self.catch_up():
                self._write_there(write)
            else:
                self._keep(write)

    def _write_there(self, write: Write) -> None:
        try:
            write.apply(self._primary)
        except (Unavailable, Damaged) as error:
            self._note(error)
            self._keep(write)
            if isinstance(error, Damaged):
                self._next_try = 0.0
                self.catch_up()
        else:
            write.without_samples().apply(self._mirror)

    def _keep(self, write: Write) -> None:
        """The mirror first: it refuses what no replay could ever write."""
        write.apply(self._mirror)
        self._backlog.add(write)

    def _read(self, read: Callable[[Store], Answer]) -> Answer:
        with self._turn:
            if self._trouble is None:
                try:
                    return read(self._primary)
                except (Unavailable, Damaged) as error:
                    if not self._leads:
                        raise
                    self._note(error)
            return read(self._mirror)

    def _both(self, read: Callable[[Store], list[Thing]]) -> tuple[list[Thing], list[Thing]]:
        """What the primary can still tell of the past, and what happened since."""
        with self._turn:
            recent = self._read(read)
            if self._trouble is None or not self._readable:
                return [], recent
            try:
                return read(self._primary), recent
            except StoreError:
                self._readable = False  # each attempt may cost a connect timeout
                return [], recent

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
        if self._damaged:
            self._reopen()
        try:
            if not self._leads_there:
                self._primary.lead(self._holder, self._moment)
                self._leads_there = True
        except StoreBusy as error:
            raise Fenced(str(error)) from error
        if self._backlog.overflowed:
            restore(self._primary, self._mirror, self._moment, self._complete)
        self._backlog.replay(self._primary)
        self._mirror.forget_samples()
        self._trouble, self._backlog = None, Backlog(self._limit)

    def _reopen(self) -> None:
        try:
            self._tell(self._primary.reopen(self._moment))
        except StoreBusy as error:
            raise Fenced(str(error)) from error
        self._damaged = self._leads_there = False

    def _tell(self, notice: str) -> None:
        """Once: a disk that breaks every few seconds must not fill the memory."""
        if notice not in self._notices:
            self._notices.append(notice)

    def _lead_there(self) -> int:
        try:
            return self._lead_and_load()
        except Damaged:
            self._tell(self._primary.reopen(self._moment))
            return self._lead_and_load()

    def _lead_and_load(self) -> int:
        token = self._primary.lead(self._holder, self._moment)
        self._mirror.load(self._primary.snapshot())
        self._leads_there = self._complete = True
        return token

    def _lead_alone(self, error: StoreError) -> int:
        """With the lock alone nobody else leads either: watching may begin."""
        if not self._primary.locked:
            raise error
        self._note(error)
        self._leads_there = self._complete = False
        try:
            self._mirror.load(self._primary.snapshot())
            self._complete = True
        except StoreError:
            # Numbers above all that may be stored, so that rows of both can be told apart.
            self._mirror.load(Snapshot(seq=self._moment.wall))
        return 0
