"""One node's GPUs as one probe told them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from sentinel import proc
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import CannotTell
from sentinel.core.gpu_ledger import GpuEvent
from sentinel.core.node_answers import Answered, Unreached
from sentinel.core.text import shortened
from sentinel.gpu import amd, smi, xid
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.model import Gpu, Inventory
from sentinel.nodes.probe import Cursor, KernelLog, NodeProbe, Unread

if TYPE_CHECKING:
    from sentinel.core.ports import Context

HOUR = 3600
NONE_THERE = re.compile(
    r"No devices were found|couldn't communicate with the NVIDIA driver|GPU is lost"
    r"|Unable to determine the device handle|Driver/library version mismatch"
    r"|Driver Not Loaded|driver is not loaded|fallen off the bus|GPU requires reset"
    r"|power cables?.{0,40}not properly|interrupt issue|GPU access blocked",
    re.IGNORECASE,
)
"""What nvidia-smi says where it sees no GPU at all: an answer, not a failure to ask (its exit codes 6,
8, 9, 10 and 15, nvidia-smi(1), and the words of nvmlErrorString). Other words are unknown."""


class KernelEvent(Struct, frozen=True, kw_only=True):
    """A line of the kernel's log about a GPU, with its time (µs UTC) and boot."""

    event: xid.Event
    at: int
    boot: str


class Sight(Struct, frozen=True, kw_only=True):
    """What is seen of a node. `inventory` None: `blind` says why, `dark` that no GPU answers.

    `log_blind`: why the kernel's log could not be read; `lost`: lines of it that are gone.
    """

    node: str
    boot: str = ""
    inventory: Inventory | None = None
    blind: str = ""
    dark: bool = False
    kernel: tuple[KernelEvent, ...] = ()
    uuids: Mapping[str, str] = {}
    cursor: Cursor | None = None
    log_blind: str = ""
    lost: int = 0

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """Those that have a UUID to be known by."""
        return tuple(g for g in self.inventory.gpus if g.uuid) if self.inventory else ()

    @property
    def nameless(self) -> tuple[Gpu, ...]:
        """Those that have none."""
        return tuple(g for g in self.inventory.gpus if not g.uuid) if self.inventory else ()

    def uuid_at(self, bus: str) -> str:
        """Who sits there, by nvidia-smi, else by the driver's own lines; empty if nobody knows."""
        found = next((g.uuid for g in self.gpus if g.bus == bus), "")
        return found or self.uuids.get(bus, "")


def sight_of(node: str, probe: NodeProbe, now: Instant, remember: float, first: bool) -> Sight:
    """`first`: the log was not read before, so only its last `remember` seconds count."""
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
    """With what the kernel's log tells, where the GPUs were asked in another way."""
    told = sight_of(sight.node, probe, now, remember, first)
    return replace(told, inventory=sight.inventory, blind=sight.blind, dark=sight.dark)


def named(sight: Sight, slots: Mapping[str, str]) -> Sight:
    """With the GPUs that do not tell their UUID named by the driver's own lines, else by `slots`:
    who sat there when it was last seen."""
    if sight.inventory is None or all(gpu.uuid for gpu in sight.inventory.gpus):
        return sight
    known = {**slots, **sight.uuids}
    gpus = (g if g.uuid else replace(g, uuid=known.get(g.bus, "")) for g in sight.inventory.gpus)
    return replace(sight, inventory=replace(sight.inventory, gpus=tuple(gpus)))


def _inventory(probe: NodeProbe) -> tuple[Inventory | None, str, bool]:
    part = probe.gpus
    if isinstance(part, str):
        try:
            return _parsed(part), "", False
        except Unreadable as error:
            return None, str(error), bool(NONE_THERE.search(part[:2000]))
    if part is None:
        return None, "nvidia-smi was not asked", False
    if part.kind in ("hung", "late"):
        return None, f"nvidia-smi hangs: {part.why}", True
    return None, f"nvidia-smi ({part.kind}): {part.why}", bool(NONE_THERE.search(part.why))


def _parsed(text: str) -> Inventory:
    """Of nvidia-smi, or of NVML as nvml.py prints it."""
    if not text.startswith("{"):
        return smi.parse(text)
    try:
        return json.decode(text, type=Inventory)
    except DecodeError as error:
        raise Unreadable(f"NVML: {error}") from error


def _log(probe: NodeProbe) -> tuple[KernelLog | None, str]:
    if isinstance(probe.kernel, KernelLog):
        return probe.kernel, ""
    if probe.kernel is None:
        return None, "the kernel's log was not asked for"
    return None, f"the kernel's log was not read ({probe.kernel.kind}): {probe.kernel.why}"


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
    """Kernel events for the ledger: one per subject, kind and hour of the boot, however many."""
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
    """The GPU, or the node where it is a switch or nobody knows which GPU sat there."""
    uuid = sight.uuid_at(event.bus) if event.kind != "sxid" and event.bus else ""
    return uuid or f"node:{sight.node}"


def what_of(event: xid.Event) -> str:
    """`xid 79`, `sxid fatal`, or the recovery action that an Xid 154 carries is left to NVML."""
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
    """A mapping that was remembered; empty where it is of another kind."""
    found = memory.get(key)
    return found if isinstance(found, Mapping) else {}


# AMD GPUs of nodes or of this machine, experimental: inventory, ECC and temperature.


def sights(names: Sequence[str], ctx: Context) -> tuple[dict[str, Sight], Mapping[str, Unreached]]:
    """What amd-smi tells of each node, and the nodes that told nothing. CannotTell."""
    if ctx.remote is None:
        raise CannotTell("there is no way to nodes here; see `remote` in the configuration")
    listed = ctx.remote.run(names, amd.LISTING, limit=ctx.limit / 2) if names else {}
    measured = ctx.remote.run(names, amd.METRICS, limit=ctx.limit / 2) if names else {}
    found, silent = dict[str, Sight](), dict[str, Unreached]()
    for name in names:
        one, two = listed[name], measured[name]
        if isinstance(one, Answered) and isinstance(two, Answered):
            found[name] = _sight(name, one, two)
        else:
            silent[name] = two if isinstance(one, Answered) else one  # type: ignore[assignment]
    return found, silent


def here(name: str, limit: float) -> Sight:
    """This machine's."""
    try:
        one = proc.run(list(amd.LISTING), limit=limit / 2)
        two = proc.run(list(amd.METRICS), limit=limit / 2)
    except (proc.CommandNotFound, proc.TimedOut, proc.TooMuchOutput) as error:
        return Sight(node=name, blind=f"amd-smi: {error}")
    return _sight(name, one, two)


def _sight(node: str, listing: Answered | proc.Done, metrics: Answered | proc.Done) -> Sight:
    """Whole answers are judged whatever the exit code, which is a remark then; else it is why."""
    code = listing.code or metrics.code
    texts = (part.out.decode("utf-8", "backslashreplace") for part in (listing, metrics))
    try:
        found = amd.parse(*texts)
    except CannotTell as error:
        said = (listing.err or metrics.err).decode("utf-8", "backslashreplace").strip()
        first = shortened(said.partition("\n")[0], 200)
        more = f" ({first})" if first else ""
        ended = f"amd-smi ended with exit code {code}{more}: " if code else ""
        return Sight(node=node, blind=f"{ended}{error}")
    if code:
        said = f"amd-smi ended with exit code {code}"
        found = replace(found, remarks=(*found.remarks, said))
    return Sight(node=node, inventory=found)
