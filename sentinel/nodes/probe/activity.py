"""Parses the sections of a probe that show whether a node is at work: GPUs and traffic. Pure."""

from collections import Counter

from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.node_probe import NodeTraffic
from sentinel.core.section_lines import StrangeLine, match_line

_TRAFFIC = lazy_pattern(
    r"(?:(net) [^ ]+ [rt]x_bytes|(port) [^ ]+ port_(?:rcv|xmit)_data|(disk) vmstat pgpg(?:in|out))"
    r" ([0-9]{1,20})"
)
_UNIT_BYTES = {"net": 1, "port": 4, "disk": 1024}


def gpu_use(lines: list[str]) -> str:
    """The text of `nvidia-smi -q -d UTILIZATION`, unchanged."""
    return "\n".join(lines)


def traffic(lines: list[str]) -> NodeTraffic:
    """The sums of all counters. A node without a network or without a disk counter is treated as an
    error."""
    sums = Counter[str]()
    for line in lines:
        match = match_line(_TRAFFIC, line)
        kind = match[1] or match[2] or match[3]
        sums[kind] += int(match[4]) * _UNIT_BYTES[kind]
    if "disk" not in sums or not ("net" in sums or "port" in sums):
        raise StrangeLine(f"only these counters: {' '.join(sums) or 'none'}")
    return NodeTraffic(network=sums["net"] + sums["port"], disk=sums["disk"])
