"""The other side that NCCL complains about: its address in a line, and which node that is. Pure."""

import re
from collections.abc import Iterable, Mapping

_ADDRESS = r"(?P<peer>(?=[A-Fa-f:.]*\d)[0-9A-Fa-f:.]+|[A-Za-z][\w.-]*)<\d+>"
_LINES = (
    re.compile(rf"(?:[Cc]onnect to|remote peer|from peer|Call to \w+ (?:from|to)) {_ADDRESS}"),
    re.compile(r"remoteGids? ?(?:::ffff:)(?P<peer>\d+\.\d+\.\d+\.\d+)"),
)
_FABRIC = re.compile(r"[-_.]?(?:ib|ipoib|opa|hsn|roce|bond|eth|en|mgmt)\d*$", re.IGNORECASE)
"""What sites append to a node's name for its other networks: node-3-ib0, node3.hsn1."""


def address(line: str) -> str:
    """The peer's address or name in a line of NCCL, or empty."""
    match = next((m for m in (p.search(line) for p in _LINES) if m), None)
    return match["peer"].strip(":").removeprefix("ffff:") if match else ""


def numeric(peer: str) -> bool:
    """Whether it is an address, not a name."""
    return bool(re.fullmatch(r"\d+\.\d+\.\d+\.\d+|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+", peer))


def node_of(names: Iterable[str], nodes: Iterable[str]) -> str:
    """Which of the nodes a host of these names is; empty where none of them is one.

    `node-3`, `node-3.example.org`, `node-3-ib0`, `node-3.ib0.example.org`: NodeName node-3.
    """
    known = {node.lower(): node for node in nodes}
    for name in names:
        for candidate in _candidates(name.lower()):
            if candidate in known:
                return known[candidate]
    return ""


def named(hosts: str) -> dict[str, list[str]]:
    """Lines of getent(1) `hosts`: address to all its names."""
    found: dict[str, list[str]] = {}
    for line in hosts.splitlines():
        first, *names = line.split()
        found.setdefault(first, []).extend(names)
    return found


def resolved(peer: str, names: Mapping[str, Iterable[str]], nodes: Iterable[str]) -> str:
    """The node that an address or name stands for, or empty."""
    return node_of([peer] if not numeric(peer) else names.get(peer, ()), list(nodes))


def _candidates(name: str) -> list[str]:
    short = name.partition(".")[0]
    return [name, short, _FABRIC.sub("", short)]
