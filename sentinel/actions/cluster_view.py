"""Slurm as one request is judged by: all nodes, who belongs where, and whether Slurm is well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.core.clock import Instant
from sentinel.core.cluster import Controller, Node
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Hands
from sentinel.core.values import duration_text

SLOW = 5.0
"""Seconds for an answer with which slurmctld is unwell: half of slurm.conf's MessageTimeout."""


class Scene(Struct, frozen=True):
    """The nodes by name, the members of each partition; `unwell` is what is wrong with Slurm."""

    by_name: Mapping[str, Node]
    members: Mapping[str, frozenset[str]]
    unwell: str = ""

    def node(self, name: str) -> Node | None:
        """As in core.ports.View."""
        return self.by_name.get(name)


def survey(hands: Hands, after: Instant | None = None) -> Scene:
    """Never raises: blind is unwell. The nodes are not asked before `after`."""
    try:
        nodes, answer = hands.nodes(after), hands.controller()
    except CannotTell as error:
        return Scene({}, {}, str(error))
    return Scene({n.name: n for n in nodes}, _members(nodes), _unwell(answer))


def _unwell(answer: Controller) -> str:
    if not answer.primary_up and not any(up for _, up in answer.backups):
        return f"slurmctld on {answer.primary} is down"
    slow = answer.latency > SLOW
    return f"slurmctld answers in {duration_text(answer.latency)}" if slow else ""


def _members(nodes: Sequence[Node]) -> dict[str, frozenset[str]]:
    members: dict[str, set[str]] = {}
    for node in nodes:
        for partition in node.partitions:
            members.setdefault(partition, set()).add(node.name)
    return {partition: frozenset(names) for partition, names in members.items()}
