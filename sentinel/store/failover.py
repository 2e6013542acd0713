"""A store that can fail, and a mirror of it in memory that answers meanwhile."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from msgspec.structs import replace

from sentinel.core.clock import Instant
from sentinel.core.errors import Fenced, StoreBusy, StoreError
from sentinel.core.ports import Store
from sentinel.store.backlog import Backlog, Write
from sentinel.store.errors import Damaged, Unavailable
from sentinel.store.memory import MemoryStore
from sentinel.store.restore import Snapshotting, restore
from sentinel.store.rows import Snapshot
from sentinel.store.trouble import Trouble

SPACING = 5.0  # seconds between attempts to write again: each may cost a connect timeout
Answer = TypeVar("Answer")
Thing = TypeVar("Thing")


class Primary(Snapshotting, Protocol):
    """A store that can fail and come back, as SqlStore."""

    @property
    def locked(self) -> bool: ...
    @property
    def term(self) -> float: ...
    def reopen(self, now: Instant) -> str: ...


class Pair:
    """Writes go to both, or wait in order until the primary takes them again; reads are answered
    by the one that knows. Whoever calls takes the `turn` first."""

    def __init__(
        self, primary: Primary, mirror: MemoryStore, limit: int, monotonic: Callable[[], float]
    ) -> None:
        self.primary, self.mirror = primary, mirror
        self.turn = threading.RLock()
        self.notices: list[str] = []
        self._limit, self._monotonic = limit, monotonic
        self._backlog = Backlog(limit)
        self._holder, self._moment = "", Instant(0)
        self._leads = self._leads_there = self._complete = self._readable = False
        self._trouble: Trouble | None = None
        self._damaged = False
        self._next_try = 0.0

    @property
    def trouble(self) -> Trouble | None:
        """None while the primary takes what is written."""
        if self._trouble is None:
            return None
        waiting, lost = len(self._backlog), self._backlog.overflowed
        return replace(self._trouble, waiting=waiting, lost_detail=lost)

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
        """The token; 0 where only the lock could be had and the token waits."""
        self._holder, self._moment = holder, now
        self._trouble, self._backlog = None, Backlog(self._limit)
        try:
            token = self._lead_there()
        except (Unavailable, Damaged) as error:
            token = self._lead_alone(error)
        self.mirror.lead(holder, now)
        self._leads = True
        return token

    def release(self) -> None:
        """After one last attempt to write what waits."""
        self._next_try = 0.0
        with suppress(StoreError):
            self.catch_up()
        self._leads = False
        self.mirror.release()
        self.primary.release()

    def renew(self) -> None:
        """Go on leading; raises why that cannot be written, which is a trouble like any other."""
        self.require_lead()
        if self.catch_up():
            try:
                self.primary.renew()
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
            return read(self.primary)
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
            return read(self.primary), recent
        except StoreError:
            self._readable = False  # each attempt may cost a connect timeout
            return [], recent

    # Writing

    def write(self, write: Write, at: Instant | None = None) -> None:
        """Now, or as soon as the primary takes it. Fenced always passes through."""
        self.require_lead()
        self._moment = at or self._moment
        if self.catch_up():
            self._write_there(write)
        else:
            self._keep(write)

    def _write_there(self, write: Write) -> None:
        try:
            write.apply(self.primary)
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
        write.apply(self.mirror)
        self._backlog.add(write)

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
                self._tell(self.primary.reopen(self._moment))
                self._damaged = self._leads_there = False
            if not self._leads_there:
                self.primary.lead(self._holder, self._moment)
                self._leads_there = True
        except StoreBusy as error:
            raise Fenced(str(error)) from error
        if self._backlog.overflowed:
            restore(self.primary, self.mirror, self._moment, self._complete)
        self._backlog.replay(self.primary)
        self.mirror.forget_samples()
        self._trouble, self._backlog = None, Backlog(self._limit)

    def _tell(self, notice: str) -> None:
        """Once: a disk that breaks every few seconds must not fill the memory."""
        if notice not in self.notices:
            self.notices.append(notice)

    def _lead_there(self) -> int:
        try:
            return self._lead_and_load()
        except Damaged:
            self._tell(self.primary.reopen(self._moment))
            return self._lead_and_load()

    def _lead_and_load(self) -> int:
        token = self.primary.lead(self._holder, self._moment)
        self.mirror.load(self.primary.snapshot())
        self._leads_there = self._complete = True
        return token

    def _lead_alone(self, error: StoreError) -> int:
        """With the lock alone nobody else leads either: watching may begin."""
        if not self.primary.locked:
            raise error
        self._note(error)
        self._leads_there = self._complete = False
        try:
            self.mirror.load(self.primary.snapshot())
            self._complete = True
        except StoreError:
            # Numbers above all that may be stored, so that rows of both can be told apart.
            self.mirror.load(Snapshot(seq=self._moment.wall))
        return 0
