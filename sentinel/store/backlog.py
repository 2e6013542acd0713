"""Writes that wait for the state to come back, in their order."""

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

MAX_BACKLOG_ROWS = 100_000  # rows and samples: some 30 MB, an hour of 200 checks a minute


class PendingWrite(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One write of the port: the method's name and what it was given. `lead` is none of it: it
    notes in a journal under which number the state is led from then on."""

    method: Literal["commit", "sent", "failed", "dropped", "prune", "lead"]
    batch: Batch | None = None
    rows: tuple[Outgoing, ...] = ()
    at: Instant | None = None
    receipt: Receipt | None = None
    why: str = ""
    token: int = 0

    def apply_to(self, store: Store) -> None:
        """Do it there."""
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

    def without_samples(self) -> "PendingWrite":
        """The same as far as a mirror needs it while all is well."""
        return replace(self, batch=replace(self.batch, samples={})) if self.batch else self

    @property
    def row_count(self) -> int:
        """About how many rows it holds."""
        return _count_rows(self.batch) if self.batch else 1 + len(self.rows)

    def encode_record(self) -> str:
        """JSON for a journal: of samples only those that JSON has numbers for. Raises Unstorable."""
        if self.batch is None or not self.batch.samples:
            return encode_stored(self)
        samples = {
            check: tuple(sample for sample in several if math.isfinite(sample.value))
            for check, several in self.batch.samples.items()
        }
        return encode_stored(replace(self, batch=replace(self.batch, samples=samples)))


class Backlog:
    """In order and bounded: past the limit it forgets all and says so."""

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
        """Give up replaying: what is now will be written instead of how it came about."""
        self._writes.clear()
        self.overflowed = True

    def replay_writes(self, write: Callable[[PendingWrite], None]) -> None:
        """Write them, oldest first; those that were written are not kept."""
        while self._writes:
            write(self._writes[0])
            self._weight -= self._writes.popleft().row_count


def _count_rows(batch: Batch) -> int:
    samples = sum(len(several) for several in batch.samples.values())
    parts = (batch.alerts, batch.closed, batch.transitions, batch.outbox, batch.memory, batch.runs)
    return 1 + samples + sum(len(part) for part in parts)
