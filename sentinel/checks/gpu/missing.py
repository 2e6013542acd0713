"""GPUs that should be there and are not, by name where anybody ever saw them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from sentinel.checks.gpu.judge import Problem
from sentinel.checks.gpu.sight import Sight
from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import GpuEvent, LedgerEntry
from sentinel.core.model import Status
from sentinel.core.values import duration_text


class Known(Struct, frozen=True, kw_only=True):
    """A GPU that was on the node; `seen` (µs UTC) is when last."""

    uuid: str
    slot: str
    seen: int


def known_on(node: str, entries: Iterable[LedgerEntry], remembered: Iterable[Known]) -> list[Known]:
    """From the ledger, else from the check's own memory; the newest first."""
    listed = [
        Known(uuid=e.subject, slot=e.slot, seen=e.seen.wall)
        for e in entries
        if e.node == node and not e.is_node
    ]
    by_uuid = {k.uuid: k for k in [*remembered, *listed]}
    return sorted(by_uuid.values(), key=lambda k: (-k.seen, k.uuid))


def missing(sight: Sight, due: int | None, known: Sequence[Known]) -> list[Known | None]:
    """Those that are not there; None for each of which nobody knows the name."""
    there = {gpu.uuid for gpu in sight.gpus}
    gpus = sight.inventory.gpus if sight.inventory else ()
    slots, count = {gpu.bus for gpu in gpus}, len(gpus)
    short = max(0, (due or 0) - count)
    gone = [k for k in known if k.uuid not in there and k.slot not in slots][:short]
    return [*gone, *[None] * (short - len(gone))]


def problems(
    sight: Sight, due: int, gone: Sequence[Known | None], now: Instant
) -> Iterator[tuple[str, Problem]]:
    """By subject: each that has a name, and the node where some have none."""
    count = len(sight.inventory.gpus) if sight.inventory else 0
    head = f"{count} of {due} GPUs on {sight.node}"
    for one in gone:
        if one:
            age = duration_text(max(0, now.wall - one.seen) // SECOND)
            slot = f"slot {one.slot}, " if one.slot else ""
            text = f"{head}, missing {one.uuid} ({slot}last seen {age} ago)"
            yield one.uuid, (Status.CRITICAL, text)
    if None in gone:
        some = sum(one is None for one in gone)
        text = f"{head}, {some} missing; which is not known: nobody saw them here"
        yield sight.node, (Status.CRITICAL, text)


def events(sight: Sight, gone: Sequence[Known | None], now: Instant) -> Iterator[GpuEvent]:
    """For the ledger, once a boot; one for the node where nobody knows which it is."""
    subjects = dict.fromkeys(one.uuid if one else f"node:{sight.node}" for one in gone)
    for subject in subjects:
        yield GpuEvent(
            id=f"{sight.boot} {sight.node} {subject} missing",
            subject=subject,
            what="missing",
            at=now,
            node=sight.node,
        )
