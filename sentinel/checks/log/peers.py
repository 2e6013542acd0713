"""Finds the peer that NCCL complains about: its address in a line, and the node with that address.
Pure."""

import re
from collections.abc import Iterable, Mapping

_ADDRESS_REGEX = r"(?P<peer>(?=[A-Fa-f:.]*\d)[0-9A-Fa-f:.]+|[A-Za-z][\w.-]*)<\d+>"
_PEER_LINE_PATTERNS = (
    re.compile(
        rf"(?:[Cc]onnect to|remote peer|from peer|Call to \w+ (?:from|to)) {_ADDRESS_REGEX}"
    ),
    re.compile(r"remoteGids? ?(?:::ffff:)(?P<peer>\d+\.\d+\.\d+\.\d+)"),
)
_FABRIC_SUFFIX_PATTERN = re.compile(
    r"[-_.]?(?:ib|ipoib|opa|hsn|roce|bond|eth|en|mgmt)\d*$", re.IGNORECASE
)
"""Suffixes that sites add to a node's name for its other networks: node-3-ib0, node3.hsn1."""


def find_peer_address(line: str) -> str:
    """The peer's address or name in a line of NCCL. Empty if there is none."""
    match = next((m for m in (p.search(line) for p in _PEER_LINE_PATTERNS) if m), None)
    return match["peer"].strip(":").removeprefix("ffff:") if match else ""


def is_numeric_address(peer: str) -> bool:
    """Whether it is an address, and not a name."""
    return bool(re.fullmatch(r"\d+\.\d+\.\d+\.\d+|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+", peer))


def match_host_to_node(names: Iterable[str], nodes: Iterable[str]) -> str:
    """The node that has one of these host names. Empty if none does.

    `node-3`, `node-3.example.org`, `node-3-ib0`, `node-3.ib0.example.org` all mean the NodeName
    node-3.
    """
    known = {node.lower(): node for node in nodes}
    for name in names:
        for candidate in _list_host_names(name.lower()):
            if candidate in known:
                return known[candidate]
    return ""


def parse_getent_hosts(hosts: str) -> dict[str, list[str]]:
    """Parse lines of getent(1) `hosts`: from address to all its names."""
    found: dict[str, list[str]] = {}
    for line in hosts.splitlines():
        first, *names = line.split()
        found.setdefault(first, []).extend(names)
    return found


def resolve_peer(peer: str, names: Mapping[str, Iterable[str]], nodes: Iterable[str]) -> str:
    """The node for an address or name. Empty if it is not known."""
    return match_host_to_node(
        [peer] if not is_numeric_address(peer) else names.get(peer, ()), list(nodes)
    )


def _list_host_names(name: str) -> list[str]:
    short = name.partition(".")[0]
    return [name, short, _FABRIC_SUFFIX_PATTERN.sub("", short)]
