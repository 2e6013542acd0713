"""Finds GPUs that should be in a node and are not, by name if they were ever seen. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from sentinel.checks.gpu.judge import Problem
from sentinel.checks.gpu.sight import Sight
from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import GpuEvent, LedgerEntry
from sentinel.core.model import Status
from sentinel.core.values import clock_text


class Known(Struct, frozen=True, kw_only=True):
    """A GPU that was in the node."""

    uuid: str  # The GPU's UUID.
    slot: str  # Its PCI bus id.
    seen: int  # when it was last seen, µs UTC


def known_on(entries: Iterable[LedgerEntry], remembered: Iterable[Known]) -> list[Known]:
    """The GPUs that were in a node, from its entries of the ledger and the check's own memory; the
    newest first."""
    listed = [Known(uuid=e.subject, slot=e.slot, seen=e.seen.wall) for e in entries]
    by_uuid = {k.uuid: k for k in [*remembered, *listed]}
    return sorted(by_uuid.values(), key=lambda k: (-k.seen, k.uuid))


def missing(sight: Sight, due: int | None, known: Sequence[Known]) -> list[Known | None]:
    """The missing GPUs; None for each one whose name is not known."""
    there = {gpu.uuid for gpu in sight.gpus}
    gpus = sight.inventory.gpus if sight.inventory else ()
    slots, count = {gpu.bus for gpu in gpus}, len(gpus)
    short = max(0, (due or 0) - count)
    gone = [k for k in known if k.uuid not in there and k.slot not in slots][:short]
    return [*gone, *[None] * (short - len(gone))]


def problems(
    sight: Sight, due: int, gone: Sequence[Known | None], now: Instant
) -> Iterator[tuple[str, Problem]]:
    """Problems by subject: each missing GPU with a name, and the node for those without."""
    count = len(sight.inventory.gpus) if sight.inventory else 0
    head = f"{count} of {due} GPUs on {sight.node} are there"
    for one in gone:
        if one:
            at = clock_text(one.seen / SECOND, now.wall / SECOND)
            slot = f"slot {one.slot}, " if one.slot else ""
            text = f"GPU missing: {head} ({slot}last seen {at})"
            yield one.uuid, (Status.CRITICAL, text)
    if None in gone:
        some = sum(one is None for one in gone)
        text = f"{some} missing: {head}; the missing ones were never seen here, so their UUIDs are not known"
        yield sight.node, (Status.CRITICAL, text)


def events(sight: Sight, gone: Sequence[Known | None], now: Instant) -> Iterator[GpuEvent]:
    """An event for each missing GPU, for the ledger. If some are not known by name, one event is
    about the node. Each event is stored once in a boot."""
    subjects = dict.fromkeys(one.uuid if one else f"node:{sight.node}" for one in gone)
    for subject in subjects:
        yield GpuEvent(
            id=f"{sight.boot} {sight.node} {subject} missing",
            subject=subject,
            what="missing",
            at=now,
            node=sight.node,
        )
