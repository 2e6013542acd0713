"""Describes the GPUs of one node by the answer of a single probe. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import GpuEvent
from sentinel.core.text import shortened
from sentinel.gpu import smi, xid
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.model import Gpu, Inventory
from sentinel.nodes.probe import Cursor, KernelLog, NodeProbe, Unread

HOUR = 3600
NONE_THERE = re.compile(
    r"No devices were found|couldn't communicate with the NVIDIA driver|GPU is lost"
    r"|Unable to \w+ the device handle(?!.{0,80}Insufficient Permissions)|Driver/library version mismatch"
    r"|Driver Not Loaded|driver is not loaded|fallen off the bus|GPU requires reset"
    r"|power cables?.{0,40}not properly|interrupt issue|GPU access blocked",
    re.IGNORECASE,
)
"""Messages of nvidia-smi that say that it sees no GPU at all. They are an answer, and not a failure
to ask (its exit codes 6, 8, 9, 10 and 15, nvidia-smi(1), and the words of nvmlErrorString). Other
messages mean UNKNOWN."""


class KernelEvent(Struct, frozen=True, kw_only=True):
    """A line of the kernel's log about a GPU."""

    event: xid.Event  # The parsed line.
    at: int  # When it was written, µs UTC.
    boot: str  # Id of the boot.


class Sight(Struct, frozen=True, kw_only=True):
    """The GPUs of a node, and the lines of its kernel's log about them."""

    node: str  # Name of the node.
    boot: str = ""  # Id of the boot.
    inventory: Inventory | None = None  # its GPUs; None if they could not be read
    blind: str = ""  # why the GPUs could not be read
    dark: bool = False  # whether that is because nvidia-smi hangs, or sees no GPU
    kernel: tuple[KernelEvent, ...] = ()  # Lines about GPUs since the last run.
    uuids: Mapping[str, str] = {}  # UUID of each GPU, by bus id.
    cursor: Cursor | None = None  # Where reading of the log stopped.
    log_blind: str = ""  # why the kernel's log could not be read
    lost: int = 0  # how many lines of the log were overwritten before they were read

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that report a UUID."""
        return tuple(g for g in self.inventory.gpus if g.uuid) if self.inventory else ()

    @property
    def nameless(self) -> tuple[Gpu, ...]:
        """The GPUs that report no UUID."""
        return tuple(g for g in self.inventory.gpus if not g.uuid) if self.inventory else ()

    def uuid_at(self, bus: str) -> str:
        """The UUID of the GPU in that slot, from nvidia-smi. If nvidia-smi does not say it, from
        the driver's lines. Empty if neither says it."""
        found = next((g.uuid for g in self.gpus if g.bus == bus), "")
        return found or self.uuids.get(bus, "")


def sight_of(node: str, probe: NodeProbe, now: Instant, remember: float, first: bool) -> Sight:
    """The sight of a node from its probe. `first`: the log was never read before, so only its last
    `remember` seconds count."""
    inventory, blind, dark = _inventory(probe)
    log, log_blind = _log(probe)
    lines = log.lines if log else ()
    told = xid.read((line.text for line in lines), [line.level for line in lines])
    return Sight(
        node=node,
        boot="" if isinstance(probe.identity, Unread) else probe.identity.boot,
        inventory=inventory,
        blind=blind,
        dark=dark,
        kernel=tuple(_kernel(told, log, probe, now, remember if first else float("inf"))),
        uuids=told.uuids,
        cursor=log.cursor if log else None,
        log_blind=log_blind,
        lost=(log.lost or 0) if log else 0,
    )


def logged(sight: Sight, probe: NodeProbe, now: Instant, remember: float, first: bool) -> Sight:
    """The sight with what the kernel's log says, if the GPUs were asked by another tool."""
    told = sight_of(sight.node, probe, now, remember, first)
    return replace(told, inventory=sight.inventory, blind=sight.blind, dark=sight.dark)


def named(sight: Sight, slots: Mapping[str, str]) -> Sight:
    """The sight, with UUIDs for GPUs that do not report one. They come from the driver's lines, or
    else from `slots`, which has the GPU that was last seen in each slot."""
    if sight.inventory is None or all(gpu.uuid for gpu in sight.inventory.gpus):
        return sight
    known = {**slots, **sight.uuids}
    gpus = (g if g.uuid else replace(g, uuid=known.get(g.bus, "")) for g in sight.inventory.gpus)
    return replace(sight, inventory=replace(sight.inventory, gpus=tuple(gpus)))


def _inventory(probe: NodeProbe) -> tuple[Inventory | None, str, bool]:
    part = probe.gpus
    if isinstance(part, str):
        try:
            return smi.parse(part), "", False
        except Unreadable as error:
            return None, str(error), bool(NONE_THERE.search(part[:2000]))
    if part is None:
        return None, "nvidia-smi was not asked", False
    if part.kind in ("hung", "late"):
        return None, f"nvidia-smi hangs: {part.why}", True
    return None, f"nvidia-smi ({part.kind}): {part.why}", bool(NONE_THERE.search(part.why))


def _log(probe: NodeProbe) -> tuple[KernelLog | None, str]:
    if isinstance(probe.kernel, KernelLog):
        return probe.kernel, ""
    if probe.kernel is None:
        return None, "the kernel's log was not asked for"
    return None, f"the kernel's log was not read ({probe.kernel.kind_words}): {probe.kernel.why}"


def _kernel(
    told: xid.Told, log: KernelLog | None, probe: NodeProbe, now: Instant, remember: float
) -> Iterator[KernelEvent]:
    if log is None or isinstance(probe.identity, Unread):
        return
    booted = now.wall - int(probe.identity.uptime * SECOND)
    for event in told.events:
        at = booted + int(log.lines[event.line].at * SECOND)
        if now.wall - at <= remember * SECOND:
            yield KernelEvent(event=event, at=min(at, now.wall), boot=probe.identity.boot)


def ledger_events(sight: Sight) -> Iterator[GpuEvent]:
    """Kernel events for the ledger: one for each subject, kind and hour of the boot, however many
    there are."""
    grouped: dict[tuple[str, str, int], list[KernelEvent]] = {}
    for one in sight.kernel:
        key = (subject_of(sight, one.event), what_of(one.event), one.at // (HOUR * SECOND))
        grouped.setdefault(key, []).append(one)
    for (subject, what, hour), ones in grouped.items():
        yield GpuEvent(
            id=f"{ones[0].boot} {sight.node} {subject} {what} {hour}",
            subject=subject,
            what=what,
            at=Instant(wall=ones[0].at),
            node=sight.node,
            text=shortened(ones[0].event.text, 300),
            count=len(ones),
        )


def subject_of(sight: Sight, event: xid.Event) -> str:
    """The UUID of the GPU; the node if the event is about a switch or the GPU is not known."""
    uuid = sight.uuid_at(event.bus) if event.kind != "sxid" and event.bus else ""
    return uuid or f"node:{sight.node}"


def what_of(event: xid.Event) -> str:
    """The kind of the event in the ledger, for example `xid 79` or `sxid fatal`. The recovery
    action in an Xid 154 is not read here, because NVML reports it."""
    if event.kind == "init":
        return "init failed"
    if event.kind == "driver":
        return "driver error"
    if event.kind == "ras":
        return "ras uncorrectable" if event.fatal else "ras deferred"
    if event.kind == "sxid":
        return {True: "sxid fatal", False: "sxid non-fatal", None: "sxid"}[event.fatal]
    return f"xid {event.code}"


def plain(memory: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A mapping from the memory; empty if the memory holds something else there."""
    found = memory.get(key)
    return found if isinstance(found, Mapping) else {}
