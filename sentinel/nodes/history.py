"""The ledger of nodes: decides which of Slurm's answers are news. Pure.

Slurm keeps one reason per node and overwrites it: "Kill task failed" erases "bad dimm, RMA"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sentinel.core.actions import NodeReading
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Node
from sentinel.slurm.node_states import ASLEEP, BASES, FLAGS

OUT = frozenset(name for name, flag in FLAGS.items() if flag.is_out)
BASES_OUT = frozenset(name for name, base in BASES.items() if base.is_out)
BY_ITSELF = "Not responding"
"""The reason with which Slurm sets a silent node DOWN; when the node answers, Slurm returns it to
service (slurm.conf(5), ReturnToService)."""

CLOSE = 600.0
"""If the last look is at most this many seconds ago, a change happened now. Else Slurm's own time
of the change is more exact."""


def is_out(node: Node) -> bool:
    """Whether the node accepts no jobs because of a problem, or because somebody took it out.

    A node that wakes up, sleeps or reboots because of Slurm is not out. If this takes too long,
    only a check with several runs can see it, or Slurm, which then sets it DOWN.
    """
    if "REBOOT_ISSUED" in node.flags and _reboots(node):
        return False
    flags = node.flags - {"NOT_RESPONDING"} if node.flags & ASLEEP else node.flags
    return node.state in BASES_OUT or bool(OUT & flags)


def _reboots(node: Node) -> bool:
    """Whether Slurm reboots the node. DRAIN is then the reboot's own (scontrol reboot ASAP) if the
    reason says so."""
    return "DRAIN" not in node.flags or "reboot" in node.reason.lower()


def news(
    nodes: Iterable[Node],
    last: Mapping[str, NodeReading],
    looked: Instant | None,
    now: Instant,
) -> Iterator[NodeReading]:
    """Readings to add. `last`: the newest readings by node. `looked`: when all nodes were last
    seen. `now`: when Slurm was asked; readings that others have added since are newer.

    At the very first look (`looked` None) nobody knows when nodes left service."""
    for node in nodes:
        before = last.get(node.name)
        if _same(node, before) or (before and get_elapsed_s(now, before.seen) > 0):
            continue
        leaves = is_out(node) and not (before and before.out)
        yield NodeReading(
            node=node.name,
            state="+".join([node.state, *sorted(node.flags)]),
            reason=node.reason,
            user=node.reason_user,
            reason_time=node.reason_time,
            out=is_out(node),
            seen=now,
            left=_left(node, looked, now) if leaves and looked else None,
            returned=now if before and _kept(before) and not held_out(node) else None,
        )


def _same(node: Node, before: NodeReading | None) -> bool:
    if before is None:
        return not node.reason and not is_out(node)
    then = (before.reason, before.user, before.reason_time, before.out, _kept(before))
    return then == (node.reason, node.reason_user, node.reason_time, is_out(node), held_out(node))


def held_out(node: Node) -> bool:
    """Whether somebody keeps the node out. A node that is only silent comes back by itself; one
    that is returned to service is silent at first, since Slurm waits for its registration
    (_require_node_reg(), src/slurmctld/node_mgr.c)."""
    return is_out(node) and _held(node.state, node.flags, node.reason)


def _kept(before: NodeReading) -> bool:
    state, *flags = before.state.split("+")
    return before.out and _held(state, flags, before.reason)


def _held(state: str, flags: Iterable[str], reason: str) -> bool:
    down = state in BASES_OUT and reason != BY_ITSELF
    return down or bool(OUT.intersection(flags) - {"NOT_RESPONDING"})


def _left(node: Node, looked: Instant, now: Instant) -> Instant:
    """When the node left service. After a long time without looks, the time of its reason counts,
    so that not everything seems to have happened now."""
    if node.reason_time is None or get_elapsed_s(looked, now) < CLOSE:
        return now
    return Instant(wall=node.reason_time * SECOND)
