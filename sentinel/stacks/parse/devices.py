"""Finds facts of verdict.RULE in the output of the GPUs and kernels of a quiet job's nodes. Pure.

They only advise, because nobody has tried them here on GPUs. The kernel's lines are as
syslog(2) tells them, each with priority and time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from sentinel.core.gpu_power import BUSY_PERCENT, IDLE_PERCENT, GpuLoad
from sentinel.core.kernel_lines import parse_card_line
from sentinel.core.section_lines import StrangeLine
from sentinel.core.text import shortened, visible
from sentinel.nodes.probe import KernelLine, kernel
from sentinel.stacks.parse.model import NodeStacks, StacksDump
from sentinel.stacks.parse.seats import RankSeat, find_seats
from sentinel.stacks.parse.verdict import WitnessFact

BEFORE = 60.0
"""The kernel's lines count from this many seconds before the last advance, because the event that
stops a step may come while the step before is still being logged."""
FEW = 8
"""One GPU in this many may differ from all others, and in any case one."""
LEAST = 3
"""With fewer GPUs, none is compared with the others."""
WORDS = 120

# Each pattern matches at the beginning of the record. The texts are from Linux's oom_kill.c (`Out
# of memory: Killed process`, `Memory cgroup out of memory: …`) and from drivers of network cards
# (mlx5_core: `Link down`; igb, ixgbe, ice: `NIC Link is Down`).
_KILLED = re.compile(r"(?:Out|Memory cgroup out) of memory: Killed process (\d{1,9}) \(")
_DOWN = re.compile(r"(?:\S{1,40}: )?(?:\S{1,20} )?(?:NIC )?link (?:is )?down\b", re.IGNORECASE)


class OwnedGpu(Struct, frozen=True):
    """A GPU with its number and bus on its node, and the rank that uses it."""

    seat: RankSeat
    index: str
    bus: str
    gpu: GpuLoad


def kernel_facts(dump: StacksDump, quiet: float) -> tuple[WitnessFact, ...]:
    """The facts in the kernels' logs since the last advance, `quiet` seconds ago. The process or
    GPU in a line shows the rank. A node without a clock or log has no facts."""
    sitting = find_seats(dump)
    by_pid = {(s.node, s.process.pid): s.rank for s in sitting if s.process}
    found = dict[WitnessFact, None]()
    for node in dump.nodes:
        lines = _recent_lines(node, quiet + BEFORE)
        by_bus = {o.bus: o.seat.rank for o in _match_gpus(node, sitting) if o.bus} if lines else {}
        for sign, pid, bus, words in (*_xid_words(lines), *_other_words(lines)):
            rank = by_pid.get((node.node, pid), by_bus.get(bus))
            ranks = (rank,) if rank is not None else ()
            found[
                WitnessFact(sign=sign, words=f"kernel: {words}", ranks=ranks, nodes=(node.node,))
            ] = None
    return tuple(found)


def _recent_lines(node: NodeStacks, age: float) -> list[KernelLine]:
    """The kernel's records of the last `age` seconds, by the node's own clock."""
    up = max((p.spent.at for p in node.processes if p.spent), default=None)
    if up is None:
        return []
    try:
        log = kernel.log(["syslog", *_split_lines(node.kernel)], "", None)
    except StrangeLine:
        return []
    return [line for line in log.lines if line.at >= up - age]


def _split_lines(text: str) -> list[str]:
    """Split at LF only, because a name in a line may contain characters at which str.splitlines
    also splits."""
    return text.removesuffix("\n").split("\n")


Told = tuple[str, int, str, str]
"""A sign, the pid (0: none) and the GPU's bus id (empty: none) in the line, and the words."""


def _xid_words(lines: Sequence[KernelLine]) -> Iterator[Told]:
    """The Xids in these lines. An Xid that only says that a program was ended is an effect, so it
    is left out."""
    try:
        from sentinel.gpu.advice import Advice
        from sentinel.gpu.xid import read
    except ModuleNotFoundError:
        return
    found = read([line.text for line in lines], [line.level for line in lines])
    for event in found.events:
        if event.advice is not Advice.IGNORE:
            name = f"{'SXid' if event.kind == 'sxid' else 'Xid'} {event.code}" if event.code else ""
            where = f"{name} of {event.bus}" if name and event.bus else name or event.bus
            words = ", ".join(filter(None, (where, event.meaning)))
            sign = "device" if event.advice.hardware else "kernel"
            yield sign, event.pid or 0, event.bus, shortened(words, WORDS)


def _other_words(lines: Sequence[KernelLine]) -> Iterator[Told]:
    for line in lines:
        text = line.text.partition("\n")[0]
        card = parse_card_line(text)
        if killed := _KILLED.match(text):
            yield "kernel", int(killed[1]), "", f"process {killed[1]} was killed, out of memory"
        elif card and _DOWN.match(card[2]):
            yield "kernel", 0, "", shortened(visible(text.strip()), WORDS)


_KINDS: tuple[tuple[str, Callable[[GpuLoad], bool], Callable[[GpuLoad], bool], str], ...] = (
    ("computes", lambda g: g.is_computing, lambda g: g.is_waiting, "its GPU {} computes while {} spin"),
    ("draws nothing", lambda g: g.busy < IDLE_PERCENT, lambda g: g.busy >= BUSY_PERCENT, "its GPU {} idles while {} are busy"),
)  # fmt: skip


def gpu_facts(dump: StacksDump) -> tuple[WitnessFact, ...]:
    """The few GPUs that differ from all others. A GPU that computes while the others spin is
    behind. A GPU that idles while the others are busy is dead. The rank of a GPU is known on nodes
    with one GPU for each rank."""
    sitting = find_seats(dump)
    owned = [one for node in dump.nodes for one in _match_gpus(node, sitting)]
    most = max(1, len(owned) // FEW)
    found = []
    for sign, is_odd, is_usual, words in _KINDS:
        odd = [one for one in owned if is_odd(one.gpu)]
        rest = [one.gpu for one in owned if not is_odd(one.gpu)]
        if all(map(is_usual, rest)) and len(odd) <= most and len(owned) >= LEAST:
            found += [
                WitnessFact(
                    sign=sign,
                    words=words.format(one.index, len(rest)),
                    ranks=(one.seat.rank,) if one.seat.rank is not None else (),
                    nodes=(one.seat.node,),
                )
                for one in odd
            ]
    return tuple(found)


def _match_gpus(node: NodeStacks, sitting: Sequence[RankSeat]) -> list[OwnedGpu]:
    """The node's GPUs in their order, with its ranks in their order. Empty if there are not as many
    GPUs as ranks."""
    mine = sorted((s for s in sitting if s.node == node.node), key=lambda s: s.rank or 0)
    rows = [[field.strip() for field in line.split(",")] for line in _split_lines(node.gpus)[1:]]
    if len(rows) != len(mine):
        return []
    found = []
    for seat, row in zip(mine, rows, strict=True):
        index, _, bus, busy, watts, limit = (*row[:6], *[""] * (6 - len(row)))
        share = _parse_reading(busy)
        if share is not None:
            gpu = GpuLoad(share, _parse_reading(watts), _parse_reading(limit))
            found.append(OwnedGpu(seat, visible(index)[:8], bus.upper(), gpu))
    return found if len(found) == len(rows) else []


def _parse_reading(text: str) -> float | None:
    try:
        return float(text.rstrip(" %W"))
    except ValueError:
        return None
