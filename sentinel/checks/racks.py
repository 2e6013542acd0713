"""Racks whose nodes are out together: one finding in place of one for each node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from sentinel.core import hostlist
from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.guidance import Guidance, look
from sentinel.core.model import Finding, Status
from sentinel.core.ports import Context
from sentinel.core.text import shortened, visible

MIN_BOOTS = 2
"""A rack needs this many nodes. If all nodes of a smaller one are out, that says nothing about the
rack."""


def find_racks_out(
    shown: Sequence[Node], out: Collection[str], ctx: Context
) -> Mapping[str, Sequence[str]]:
    """Racks whose nodes are all out, unplanned, if a rack has several nodes.

    Racks come from Slurm's topology (leaf switches or blocks), or from the configuration. Empty if
    there is no such information. Then each node is reported separately.
    """
    if len(out) < MIN_BOOTS:
        return {}
    names = {node.name for node in shown}
    try:
        told = {r: hostlist.expand_hostlist(nodes) for r, nodes in ctx.slurm.topology().items()}
    except (CannotTell, Invalid):
        return {}
    return {
        rack: nodes
        for rack, nodes in told.items()
        if len(nodes) >= MIN_BOOTS and names.issuperset(nodes) and all(n in out for n in nodes)
    }


def make_rack_finding(rack: str, nodes: Sequence[str]) -> Finding:
    """The finding about a rack whose nodes are all out."""
    name = visible(rack)
    return Finding(
        subject=f"rack {name}",
        status=Status.CRITICAL,
        summary=f"all {len(nodes)} nodes of it are out: {shorten_names(nodes)}; look at its switch and its power",
        values={"nodes": len(nodes)},
        commands=(look("sinfo -R -n {}", shorten_names(nodes)),),
        labels={"rack": name},
        guidance=Guidance(
            impact="Jobs on these nodes have ended or hang; none starts there.",
            ask=f"look at the switch and the power of rack {name}: all its nodes are out",
        ),
    )


def label_rack(finding: Finding, racks: Mapping[str, Sequence[str]]) -> Finding:
    node = finding.labels["node"]
    of = next((name for name, nodes in racks.items() if node in nodes), "")
    return replace(finding, labels={**finding.labels, "rack": visible(of)}) if of else finding


def shorten_names(names: Sequence[str]) -> str:
    return shortened(hostlist.fold_for_people(names), 200)
