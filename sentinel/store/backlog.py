"""Writes that wait until the state can be written again, in their order."""

import math
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.state import Store
from sentinel.core.clock import Instant
from sentinel.core.model import Batch, Outgoing, Receipt
from sentinel.store.rows import encode_stored

MAX_BACKLOG_ROWS = 100_000  # rows and samples: about 30 MB, an hour of 200 checks a minute


class PendingWrite(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One write to a store: the method's name and its arguments. `lead` is not a method of the
    store: it notes in a journal the leader's new number."""

    method: Literal["commit", "sent", "failed", "dropped", "prune", "lead"]
    """Name of the method of the store."""
    batch: Batch | None = None  # The content of `commit`.
    rows: tuple[Outgoing, ...] = ()  # The outbox rows of the write.
    at: Instant | None = None  # When it happened.
    receipt: Receipt | None = None  # The answer of the channel's service.
    why: str = ""  # Why sending failed.
    token: int = 0  # Number of the leader.

    def apply_to(self, store: Store) -> None:
        """Do the write on this store; `lead` does nothing."""
        if self.method != "lead":
            getattr(store, self.method)(*self._get_arguments())

    def _get_arguments(self) -> tuple[Any, ...]:
        given = {
            "commit": (self.batch,),
            "sent": (self.rows, self.at, self.receipt),
            "failed": (self.rows,),
            "dropped": (self.rows, self.at, self.why),
            "prune": (self.at,),
        }
        return given[self.method]

    def without_history(self) -> "PendingWrite":
        """The same write without samples and the ledger of runs, which a mirror does not need while
        the state works."""
        batch = replace(self.batch, samples={}, ledger=()) if self.batch else None
        return replace(self, batch=batch) if batch else self

    @property
    def row_count(self) -> int:
        """The approximate number of rows that it writes."""
        return _count_rows(self.batch) if self.batch else 1 + len(self.rows)

    def encode_record(self) -> str:
        """JSON for a journal; samples for which JSON has no number (infinite ones) are left out.
        Raises Unstorable."""
        if self.batch is None or not self.batch.samples:
            return encode_stored(self)
        samples = {
            check: tuple(sample for sample in several if math.isfinite(sample.value))
            for check, several in self.batch.samples.items()
        }
        return encode_stored(replace(self, batch=replace(self.batch, samples=samples)))


class Backlog:
    """Waiting writes in their order. Above its limit it forgets all of them, and `overflowed` says
    so."""

    def __init__(self, limit: int = MAX_BACKLOG_ROWS) -> None:
        self._limit = limit
        self._writes: deque[PendingWrite] = deque()
        self._weight = 0
        self.overflowed = False

    def __len__(self) -> int:
        return len(self._writes)

    def add_write(self, write: PendingWrite) -> None:
        """Keep it until it is replayed, unless the backlog overflowed."""
        self._weight += write.row_count
        if self._weight > self._limit:
            self.discard_writes()
        if not self.overflowed:
            self._writes.append(write)

    def discard_writes(self) -> None:
        """Give up replaying the writes. The present state will be written instead."""
        self._writes.clear()
        self.overflowed = True

    def replay_writes(self, write: Callable[[PendingWrite], None]) -> None:
        """Do all writes, the oldest first, and forget each once it is done."""
        while self._writes:
            write(self._writes[0])
            self._weight -= self._writes.popleft().row_count


def _count_rows(batch: Batch) -> int:
    samples = sum(len(several) for several in batch.samples.values())
    parts = (batch.alerts, batch.closed, batch.transitions, batch.outbox, batch.memory, batch.runs)
    return 1 + samples + len(batch.ledger) + sum(len(part) for part in parts)
