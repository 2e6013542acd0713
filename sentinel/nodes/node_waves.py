"""Chooses which nodes are tested, how many at once, and at which level of `dcgmi diag`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from sentinel.core import hostlist
from sentinel.core.cluster import Node
from sentinel.core.model import Coverage, covered
from sentinel.core.values import Share
from sentinel.slurm.node_states import UP, flag_meaning, unfit_reason

RETRY_DIVISOR = 6
"""An inconclusive test is repeated after this fraction (one sixth) of the time."""

NODE_CHOICES = ("idle", "suspect", "all", "returned")


def list_candidates(
    nodes: Sequence[Node],
    which: str,
    partition: str,
    suspects: Collection[str],
    back: Collection[str] = (),
) -> list[Node]:
    """Nodes that may be tested now. Drained nodes only if they are named or suspect. `back`: nodes
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
    """Whether nobody else has a claim on the node, and it is in service."""
    return all(flag_meaning(flag).is_free for flag in node.flags)


def make_wave_coverage(
    nodes: Sequence[Node],
    which: str,
    partition: str,
    tested: Collection[str],
    blind: Collection[str] = (),
) -> Coverage:
    """How many of the nodes to be tested have a result. Waves take days, so nodes that wait for
    their turn are excused. Not excused are names that Slurm does not know, and tests whose progress
    nobody can see (`blind`)."""
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
    """The `ready` nodes that may be tested now, so that the tested share of each partition does not
    exceed `share`. Each partition may have one in any case. Drained nodes do not count, because
    they take no jobs anyway."""
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
    """The level for a node: 4 for a suspect that has passed the `base` level, otherwise `base`."""
    return 4 if node in suspects and passed.get(node, 0) >= base else base
