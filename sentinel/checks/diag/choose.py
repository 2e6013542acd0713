"""Which nodes are tested, how many at once, and how deeply. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from sentinel.core import hostlist
from sentinel.core.cluster import Node
from sentinel.core.model import Coverage, covered
from sentinel.core.values import Share
from sentinel.slurm.node_states import UP, flag_meaning, unfit_reason

NODE_CHOICES = ("idle", "suspect", "all", "returned")


def list_candidates(
    nodes: Sequence[Node],
    which: str,
    partition: str,
    suspects: Collection[str],
    back: Collection[str] = (),
) -> list[Node]:
    """Those that may be tested now; of drained ones only such as are named or suspect. `back`: those
    that have just come back to service."""
    there = [
        n for n in nodes if not unfit_reason(n) and (not partition or partition in n.partitions)
    ]
    if which in ("idle", "returned"):
        idle = [n for n in there if n.state == "IDLE" and _is_free(n)]
        return [n for n in idle if which == "idle" or n.name in back]
    if which == "suspect":
        return [n for n in there if n.name in suspects]
    if which == "all":
        return [n for n in there if n.state in UP and "DRAIN" not in n.flags]
    named = set(hostlist.expand_hostlist(which))
    return [n for n in there if n.name in named]


def _is_free(node: Node) -> bool:
    """Whether nobody has a claim on it, and it is in service."""
    return all(flag_meaning(flag).is_free for flag in node.flags)


def make_wave_coverage(
    nodes: Sequence[Node],
    which: str,
    partition: str,
    tested: Collection[str],
    blind: Collection[str] = (),
) -> Coverage:
    """Of the nodes to be tested those of which something is told: waves take days, so that the
    others are excused while they wait for their turn. A name that Slurm does not know is not, nor
    a test of which nobody can see how it goes (`blind`)."""
    known = {n.name for n in nodes if not partition or partition in n.partitions}
    named = set() if which in NODE_CHOICES else set(hostlist.expand_hostlist(which))
    if not known or named - known:
        return covered("nodes", named, known)
    meant = named or known if which not in ("suspect", "returned") else tested
    if not tested:
        return Coverage(of="nodes", meant=0, excused="none was to be tested yet")
    excused = "" if blind else "not tested yet"
    return covered("nodes", sorted({*meant, *tested}), {*tested} - {*blind}, excused)


def choose_wave(
    ready: Sequence[Node], busy: Iterable[Node], everything: Sequence[Node], share: Share
) -> list[Node]:
    """So many of them that of no partition more than the share is tested at once: one at least.

    Drained nodes take no work from anybody and do not count.
    """
    sizes = Counter(p for n in everything for p in n.partitions)
    most = {p: max(1, int(size * share / 100)) for p, size in sizes.items()}
    used = Counter(p for n in busy if "DRAIN" not in n.flags for p in n.partitions)
    chosen = []
    for node in ready:
        free = "DRAIN" in node.flags or all(used[p] < most[p] for p in node.partitions)
        if free:
            chosen.append(node)
            used.update([] if "DRAIN" in node.flags else node.partitions)
    return chosen


def choose_level(node: str, base: int, suspects: Collection[str], passed: Mapping[str, int]) -> int:
    """One level for all; 4 where all below passed and yet the node's GPUs go on failing."""
    return 4 if node in suspects and passed.get(node, 0) >= base else base
