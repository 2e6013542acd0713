"""The ledger of GPUs: each GPU that was ever seen, its places, and what happened to it.

A subject is a GPU by its UUID, which stays when a cloud gives the machine another name. A subject
may also be a node (`node:NAME`), for events that belong to no single device.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from sentinel.core.clock import Instant
from sentinel.core.lemon_policy import Class, LemonPolicy

NODE_PREFIX = "node:"
Mark = Literal["", "lemon", "good"]
"""A person's mark on a GPU. It counts more than any score."""


class GpuSighting(Struct, frozen=True, kw_only=True):
    """A GPU in its slot (PCI bus id) of a node. `serial` is empty if the driver does not show
    it."""

    uuid: str  # The GPU's UUID.
    node: str  # The name of the node that it is in.
    slot: str = ""  # Its PCI bus id.
    serial: str = ""
    model: str = ""  # Its product name.


class Stay(Struct, frozen=True, kw_only=True):
    """A place in which a GPU was, from the first to the last time that it was seen there."""

    node: str  # The name of the node.
    slot: str  # Its PCI bus id there.
    began: Instant  # When it was first seen there.
    ended: Instant  # When it was last seen there.


class GpuEvent(Struct, frozen=True, kw_only=True):
    """Something that happened to a subject.

    id: The same for the same event, however often it is reported.
    what: Its kind and number (`xid 79`, `diag fail`). Its weight is found by that.
    count: How often it was seen at once. It weighs as one event.
    """

    id: str
    subject: str  # The GPU's UUID, or `node:NAME`.
    what: str
    at: Instant  # When it happened.
    node: str = ""  # The node on which it happened.
    text: str = ""  # The text of the event.
    count: int = 1
    by: str = ""  # The person who recorded it. Empty: sentinel did.


class LedgerEntry(Struct, frozen=True, kw_only=True):
    """All that is known of a subject.

    seen: When it was last seen.
    mark: A person's mark.
    heat: Its score at the moment `warmed`, by the policy `recipe`; of a node the number of its
        outages.
    cleared: Events before this moment (µs UTC) do not count.
    outages: When each of the last outages of a node began (µs UTC).
    """

    subject: str  # The GPU's UUID, or `node:NAME`.
    serial: str = ""  # Its serial number. Empty if it is hidden.
    model: str = ""  # Its product name.
    node: str = ""  # The node where it was last seen.
    slot: str = ""  # Its PCI bus id there.
    first: Instant  # When it was first seen.
    seen: Instant
    mark: Mark = ""
    reason: str = ""  # Why a person marked it.
    by: str = ""  # Who marked it.
    heat: float = 0.0
    warmed: Instant | None = None
    recipe: str = ""
    cleared: int = 0
    outages: tuple[int, ...] = ()

    @property
    def is_node(self) -> bool:
        """Whether the entry is about a whole node."""
        return self.subject.startswith(NODE_PREFIX)


class GpuStanding(Struct, frozen=True, kw_only=True):
    """The judgement about a subject: its score now, and its class by the score or by a person's
    mark."""

    score: float = 0.0  # The sum of the weights, which decrease with time.
    judged: Class = "good"  # Good, suspect or lemon.
    marked: bool = False  # Whether a person set the class, whatever the score is.


class GpuMove(Struct, frozen=True, kw_only=True):
    """A GPU that turned up in another place than before."""

    uuid: str  # The GPU's UUID.
    was: Stay  # Where it was before.
    now: GpuSighting  # Where it is now.
    standing: GpuStanding  # How it was judged at that time.


class GpuLedger(Protocol):
    """The ledger. Services and commands write it alike; each method is one transaction.

    Raises StoreError. An entry whose score was counted by another policy is counted anew when its
    score is read.
    """

    policy: LemonPolicy

    def record_sightings(self, sightings: Sequence[GpuSighting], now: Instant) -> Sequence[GpuMove]:
        """Record that these GPUs are there now. Returns a move for each that was elsewhere
        before."""

    def add_events(self, events: Sequence[GpuEvent]) -> Sequence[GpuEvent]:
        """Add the events that are not known yet, by id. Returns those that were added."""

    def read_entry(self, subject: str) -> LedgerEntry | None:
        """The entry of one subject; None if it was never seen."""

    def read_entries(self, node: str = "") -> Sequence[LedgerEntry]:
        """All entries, or those that were last seen on this node."""

    def read_events(self, subject: str, limit: int = 1000) -> Sequence[GpuEvent]:
        """What happened to a subject, the newest first."""

    def read_stays(self, uuid: str) -> Sequence[Stay]:
        """The places where a GPU was, the oldest first."""

    def read_standings(self, now: Instant) -> Mapping[str, GpuStanding]:
        """The standing of every subject that has a score or a mark, by subject."""

    def set_mark(self, subject: str, mark: Mark, reason: str, by: str, now: Instant) -> None:
        """Set a person's mark. An empty mark takes the former one back, and earlier events no
        longer count."""

    def forget_events(
        self, subject: str, kinds: Collection[str], since: int, reason: str, by: str, now: Instant
    ) -> int:
        """Remove the events of these kinds (`xid 79`) from `since` (µs UTC) on, which somebody says
        never happened, and count the score anew. Returns how many events were removed. Each kind
        leaves a note of who said so and why. A subject of which nothing else is known is removed
        with its last event."""

    def prune(self, now: Instant) -> None:
        """Forget events and stays that are older than the state keeps; entries stay."""

    def close(self) -> None: ...
