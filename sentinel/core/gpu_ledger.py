"""The ledger of GPUs: every one ever seen, where and when, and what happened to it.

Its subjects are GPUs by UUID, which stays when a cloud gives the machine another name, and nodes
(`node:NAME`) for what can be said of no single device.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from sentinel.core.clock import Instant
from sentinel.core.lemon_policy import Class, LemonPolicy

NODE_PREFIX = "node:"
Mark = Literal["", "lemon", "good"]
"""What a person has said of a GPU; it counts more than any sum."""


class GpuSighting(Struct, frozen=True, kw_only=True):
    """A GPU in its slot (PCI bus id) of a node. `serial` is empty where it is hidden."""

    uuid: str
    node: str
    slot: str = ""
    serial: str = ""
    model: str = ""


class Stay(Struct, frozen=True, kw_only=True):
    """Where a GPU was, from the first to the last time that it was seen there."""

    node: str
    slot: str
    began: Instant
    ended: Instant


class GpuEvent(Struct, frozen=True, kw_only=True):
    """Something that happened to a subject. `id` is the same however often it is told.

    `what` names its kind and number (`xid 79`, `diag fail`); its weight is looked up by that.
    `count`: how often it was seen at once; it weighs as one.
    """

    id: str
    subject: str
    what: str
    at: Instant
    node: str = ""
    text: str = ""
    count: int = 1
    by: str = ""


class LedgerEntry(Struct, frozen=True, kw_only=True):
    """What is known of a subject. `seen` is the last time; `mark` a person's word and reason.

    `heat` is its score of the moment `warmed`, by the policy of that `recipe`; events before
    `cleared` (µs UTC) do not count. Of a node it is the number of its `outages`: when each of the
    last ones began (µs UTC).
    """

    subject: str
    serial: str = ""
    model: str = ""
    node: str = ""
    slot: str = ""
    first: Instant
    seen: Instant
    mark: Mark = ""
    reason: str = ""
    by: str = ""
    heat: float = 0.0
    warmed: Instant | None = None
    recipe: str = ""
    cleared: int = 0
    outages: tuple[int, ...] = ()

    @property
    def is_node(self) -> bool:
        """Whether it stands for a whole node."""
        return self.subject.startswith(NODE_PREFIX)


class GpuStanding(Struct, frozen=True, kw_only=True):
    """What is held of a subject: its score now, and what that (or a person's mark) makes it."""

    score: float = 0.0
    judged: Class = "good"
    marked: bool = False


class GpuMove(Struct, frozen=True, kw_only=True):
    """A GPU that turned up elsewhere than it was last. `standing`: what was known of it then."""

    uuid: str
    was: Stay
    now: GpuSighting
    standing: GpuStanding


class GpuLedger(Protocol):
    """The ledger. Services and commands write it alike; each method is one transaction.

    Raises StoreError. Entries that were counted by another policy are counted anew when scores
    are asked for.
    """

    policy: LemonPolicy

    def record_sightings(self, sightings: Sequence[GpuSighting], now: Instant) -> Sequence[GpuMove]:
        """These GPUs are there now; returns those that were elsewhere before."""

    def add_events(self, events: Sequence[GpuEvent]) -> Sequence[GpuEvent]:
        """Add what is not known yet, by id; returns that."""

    def read_entry(self, subject: str) -> LedgerEntry | None:
        """One subject; None for one never seen."""

    def read_entries(self, node: str = "") -> Sequence[LedgerEntry]:
        """All of them, or those that were last seen on this node."""

    def read_events(self, subject: str, limit: int = 1000) -> Sequence[GpuEvent]:
        """What happened to a subject, the newest first."""

    def read_stays(self, uuid: str) -> Sequence[Stay]:
        """Where it was, the oldest first."""

    def read_standings(self, now: Instant) -> Mapping[str, GpuStanding]:
        """Of every subject that has a score or a mark."""

    def set_mark(self, subject: str, mark: Mark, reason: str, by: str, now: Instant) -> None:
        """A person's word. An empty one takes it back, and what happened before counts no more."""

    def forget_events(
        self, subject: str, kinds: Collection[str], since: int, reason: str, by: str, now: Instant
    ) -> int:
        """Remove the events of these kinds (`xid 79`) from `since` (µs UTC) on, which somebody says
        never happened, and count the score anew. Returns how many; each kind leaves a note of who
        said so and why. A subject of which nothing else is known is gone with its last event."""

    def prune(self, now: Instant) -> None:
        """Forget events and stays that are older than the state keeps; entries stay."""

    def close(self) -> None: ...
