"""States that a node passes through: since when it is in one, how long that may take, and how long
it usually takes. Pure.

Slurm tells no beginning of them, so it is the first look that saw the node in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal

from msgspec import Struct

from sentinel.core.clock import Instant, elapsed
from sentinel.slurm.model import Node
from sentinel.slurm.node_states import UP

Kind = Literal["waking", "powering down", "rebooting", "completing"]
FLAGS: Mapping[str, Kind] = {
    "POWERING_UP": "waking",
    "POWERING_DOWN": "powering down",
    "REBOOT_ISSUED": "rebooting",
    "COMPLETING": "completing",
}
BOOTING = frozenset({"waking", "rebooting"})
KEPT, ENOUGH, SLOWER, SHORT = 20, 5, 2.0, 60.0
"""Boots kept of each partition; with how many there is a usual time; how many times that median,
and longer than all that are kept, is slow. A median, as one boot that hung moves no median. Seconds
in which none is slow: who wakes virtual machines in 2 s need not hear of 5."""


class Passing(Struct, frozen=True, kw_only=True):
    """A node in such a state. `whole`: it was looked at before, so this is the beginning."""

    kind: Kind
    since: Instant
    whole: bool = False


def kind_of(node: Node) -> Kind | None:
    """Which state it passes through; power saving and reboots before the end of a job."""
    return next((kind for flag, kind in FLAGS.items() if flag in node.flags), None)


def followed(
    before: Mapping[str, Passing] | None, nodes: Sequence[Node], now: Instant
) -> dict[str, Passing]:
    """Those who are in such a state now; `before` None: nobody has looked yet."""
    found: dict[str, Passing] = {}
    for node in nodes:
        kind, past = kind_of(node), (before or {}).get(node.name)
        if kind and past and past.kind == kind:
            found[node.name] = past
        elif kind:
            found[node.name] = Passing(kind=kind, since=now, whole=before is not None)
    return found


def learnt(
    boots: Mapping[str, Sequence[int]],
    before: Mapping[str, Passing] | None,
    nodes: Sequence[Node],
    now: Instant,
) -> dict[str, tuple[int, ...]]:
    """Seconds of the last boots by partition, with those that have ended well since.

    Boots that began before the first look are not counted: nobody knows how long they took.
    """
    known = {name: tuple(seconds) for name, seconds in boots.items()}
    for node in nodes:
        past = (before or {}).get(node.name)
        if past and past.whole and past.kind in BOOTING and _there(node):
            for name in node.partitions:
                known[name] = (*known.get(name, ()), round(elapsed(past.since, now)))[-KEPT:]
    there = {name for node in nodes for name in node.partitions}
    return {name: seconds for name, seconds in known.items() if name in there}


def slower(boots: Mapping[str, Sequence[int]], node: Node, seconds: float) -> tuple[str, float]:
    """The partition whose nodes usually boot much faster, and their usual time; ("", 0) if none."""
    for name in node.partitions:
        past = boots.get(name, ())
        if len(past) >= ENOUGH and seconds > max(SLOWER * median(past), *past, SHORT):
            return name, float(median(past))
    return "", 0.0


def _there(node: Node) -> bool:
    return (
        node.state in UP
        and kind_of(node) in (None, "completing")
        and not (node.flags & {"NOT_RESPONDING", "POWERED_DOWN", "POWER_DOWN"})
    )
