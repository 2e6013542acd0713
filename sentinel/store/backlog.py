"""Writes that wait for the state to come back, in their order."""

from collections import deque
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.model import Batch
from sentinel.core.ports import Store

LIMIT = 100_000  # rows and samples: some 30 MB, an hour of 200 checks a minute


class Write(Struct, frozen=True):
    """One write of the port: the method's name and what it was given."""

    method: str
    given: tuple[Any, ...]

    def apply(self, store: Store) -> None:
        """Do it there."""
        getattr(store, self.method)(*self.given)

    def without_samples(self) -> "Write":
        """The same as far as a mirror needs it while all is well."""
        if self.method != "commit":
            return self
        return Write("commit", (replace(self.given[0], samples={}),))

    @property
    def weight(self) -> int:
        """About how many rows it holds."""
        if self.method != "commit":
            return 1 + (len(self.given[0]) if self.method != "prune" else 0)
        return _rows(self.given[0])


class Backlog:
    """In order and bounded: past the limit it forgets all and says so."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._writes: deque[Write] = deque()
        self._weight = 0
        self.overflowed = False

    def __len__(self) -> int:
        return len(self._writes)

    def add(self, write: Write) -> None:
        """Keep it until it is replayed, unless the backlog overflowed."""
        self._weight += write.weight
        if self._weight > self._limit:
            self.overflow()
        if not self.overflowed:
            self._writes.append(write)

    def overflow(self) -> None:
        """Give up replaying: what is now will be written instead of how it came about."""
        self._writes.clear()
        self.overflowed = True

    def replay(self, store: Store) -> None:
        """Write them there, oldest first; those that were written are not kept."""
        while self._writes:
            self._writes[0].apply(store)
            self._weight -= self._writes.popleft().weight


def _rows(batch: Batch) -> int:
    samples = sum(len(several) for several in batch.samples.values())
    parts = (batch.alerts, batch.closed, batch.transitions, batch.outbox, batch.memory, batch.runs)
    return 1 + samples + sum(len(part) for part in parts)
