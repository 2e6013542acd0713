"""What GPUs and kernels of a job's nodes say while it is quiet, as facts of verdict.RULE. Pure.

They advise: nobody has tried them here on GPUs. Lines of the kernel are read as dmesg(1) prints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from sentinel.core.gpu_power import BUSY, IDLE, Gpu
from sentinel.core.text import shortened, visible
from sentinel.stacks.parse.group import Seat, seats
from sentinel.stacks.parse.model import Dump, NodeStacks
from sentinel.stacks.parse.verdict import Fact

BEFORE = 60.0
"""Seconds before the last advance from which on the kernel's lines count: what stops a step may come
while the one before is still being logged."""
FEW = 8
"""Of so many GPUs one may differ from all others; of fewer one as well."""
LEAST = 3
"""GPUs below which there are no "all others"."""
WORDS = 120

_LINE = re.compile(r"\[\s*(\d{1,12}\.\d{1,9})\](?:\[[^\]]{1,20}\])? (.*)")
# oom_kill.c of Linux (`Out of memory: Killed process`, `Memory cgroup out of memory: …`), and what
# drivers of network cards print (mlx5_core: `Link down`; igb, ixgbe, ice: `NIC Link is Down`).
_KILLED = re.compile(r"[Oo]ut of memory: Killed process (\d{1,9}) ")
_DOWN = re.compile(r"\b[Ll]ink (is )?[Dd]own\b")


def of_kernels(dump: Dump, quiet: float) -> tuple[Fact, ...]:
    """What the kernels told since the last advance, `quiet` seconds ago. A node whose clock or whose
    log was not to be had tells nothing."""
    sitting = {(s.node, s.process.pid): s.rank for s in seats(dump) if s.process}
    found = dict[Fact, None]()
    for node in dump.nodes:
        lines = list(_since(node, quiet + BEFORE))
        for sign, pid, words in (*_xids(lines), *_others(lines)):
            rank = sitting.get((node.node, pid))
            ranks = (rank,) if rank is not None else ()
            found[Fact(sign=sign, words=f"kernel: {words}", ranks=ranks, nodes=(node.node,))] = None
    return tuple(found)


def _since(node: NodeStacks, age: float) -> Iterator[str]:
    """The kernel's lines of so many seconds, by the node's own clock."""
    up = max((p.spent.at for p in node.processes if p.spent), default=None)
    for line in node.kernel.splitlines() if up is not None else ():
        told = _LINE.fullmatch(line)
        if told and up is not None and float(told[1]) >= up - age:
            yield told[2]


def _xids(lines: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """What only says that a program was ended is an effect, and left out."""
    try:
        from sentinel.gpu.advice import Advice
        from sentinel.gpu.xid import read
    except ModuleNotFoundError:
        return
    for event in read(lines).events:
        if event.advice is not Advice.IGNORE:
            name = (
                f"{'SXid' if event.kind == 'sxid' else 'Xid'} {event.code}, " if event.code else ""
            )
            sign = "device" if event.advice.hardware else "kernel"
            yield sign, event.pid or 0, shortened(f"{name}{event.meaning}", WORDS)


def _others(lines: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    for line in lines:
        if killed := _KILLED.search(line):
            yield "kernel", int(killed[1]), f"process {killed[1]} was killed, out of memory"
        elif _DOWN.search(line):
            yield "kernel", 0, shortened(visible(line.strip()), WORDS)


_KINDS: tuple[tuple[str, Callable[[Gpu], bool], Callable[[Gpu], bool], str], ...] = (
    ("computes", lambda g: g.computes, lambda g: g.waits, "its GPU computes while {} spin"),
    ("draws nothing", lambda g: g.busy < IDLE, lambda g: g.busy >= BUSY, "its GPU idles while {} are busy"),
)  # fmt: skip


def of_gpus(dump: Dump) -> tuple[Fact, ...]:
    """The few GPUs that do otherwise than all others: one that computes while they spin is behind, one
    that idles while they spin is dead. Whose a GPU is, is known on nodes with one for each rank."""
    owned = [pair for node in dump.nodes for pair in _owned(node, dump)]
    most = max(1, len(owned) // FEW)
    found = []
    for sign, is_odd, is_usual, words in _KINDS:
        odd = [seat for seat, gpu in owned if is_odd(gpu)]
        rest = [gpu for _, gpu in owned if not is_odd(gpu)]
        if odd and all(map(is_usual, rest)) and len(odd) <= most and len(owned) >= LEAST:
            nodes = tuple(dict.fromkeys(s.node for s in odd))
            ranks = tuple(s.rank for s in odd if s.rank is not None)
            told = words.format(len(rest))
            found.append(Fact(sign=sign, words=told, ranks=ranks, nodes=nodes))
    return tuple(found)


def _owned(node: NodeStacks, dump: Dump) -> list[tuple[Seat, Gpu]]:
    """The GPUs in their order with the node's ranks in theirs; none where their numbers differ."""
    mine = sorted((s for s in seats(dump) if s.node == node.node), key=lambda s: s.rank or 0)
    read = [_gpu(line) for line in node.gpus.splitlines()[1:]]
    gpus = [gpu for gpu in read if gpu]
    return list(zip(mine, gpus, strict=True)) if len(mine) == len(gpus) == len(read) else []


def _gpu(line: str) -> Gpu | None:
    """Of the columns that stacks.sh asks for: the fourth to sixth, `97 %` and `312.40 W`."""
    fields = [field.strip() for field in line.split(",")]
    busy, watts, limit = (_number(field) for field in (*fields[3:6], *[""] * 3)[:3])
    return Gpu(busy, watts, limit) if busy is not None else None


def _number(text: str) -> float | None:
    try:
        return float(text.rstrip(" %W"))
    except ValueError:
        return None
