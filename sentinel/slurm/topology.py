"""Racks, as Slurm's topology has them: leaf switches, or blocks. Pure.

topology.conf(5); the lines are printed by src/plugins/topology/tree/topology_tree.c and
block/topology_block.c: `SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-5]`, `BlockName=b1
BlockIndex=0 Nodes=n[1-32] BlockSize=32`.
"""

from collections.abc import Mapping

from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.long_lines import decode_document

TOPOLOGY_QUESTION = ("scontrol", "show", "topology")
_SWITCH_PATTERN = lazy_pattern(
    r"(?m)^(?:SwitchName=(\S+) Level=0 |BlockName=(\S+) )(?:.* )?Nodes=(\S+)"
)


def read_topology(out: bytes) -> Mapping[str, str]:
    """Each leaf switch or block with its nodes as a hostlist; empty if there are none."""
    text = decode_document(out)
    found = {switch or block: nodes for switch, block, nodes in _SWITCH_PATTERN.findall(text)}
    return {name: nodes for name, nodes in found.items() if nodes != "(null)"}
