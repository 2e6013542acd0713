"""The partitions that give no node to a job, although their nodes are well."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.core.ports import Context
from sentinel.core.text import visible

SHUT_STATES = frozenset({"DOWN", "INACTIVE"})
"""States of a partition that starts no job: slurm.conf(5), State."""
DRAIN = "DRAIN"
"""A partition that takes no new job, and starts those that wait."""
UNLISTED = "not listed by scontrol"
"""In place of the state of a partition that nodes name and scontrol does not show (PrivateData, a typing error)."""
MAX_SHOWN_PARTITIONS = 3


class ClosedPartitions(Struct, frozen=True, kw_only=True):
    """The partitions that start no job, and what is to be told of them."""

    meant: str | None = None  # The one partition that counts. None: each node's own.
    shut: frozenset[str] = frozenset()  # Those that start no job.
    status: Status = Status.OK  # How bad it is, however many nodes can work.
    text: str = ""  # What follows the number of nodes in a summary.

    def is_shut(self, node: Node) -> bool:
        """Whether none of its partitions gives the node a job."""
        mine = {self.meant} if self.meant else set(node.partitions)
        return bool(mine) and mine <= self.shut


def find_closed_partitions(
    nodes: Sequence[Node], partition: str | None, ctx: Context
) -> ClosedPartitions:
    """The one partition that is meant, if it is not UP, else those that are the only ones of a node and
    start no job. A state that is not known makes the one that is meant unknown."""
    meant = {partition} if partition else {name for node in nodes for name in node.partitions}
    try:
        known = ctx.slurm.partition_states()
    except CannotTell as error:
        text = visible(f"; whether jobs start there is not known: {error}")
        return ClosedPartitions(meant=partition, status=Status.UNKNOWN, text=text)
    states = {name: known.get(name, UNLISTED) for name in sorted(meant) if known.get(name) != "UP"}
    found = ClosedPartitions(
        meant=partition,
        shut=frozenset(name for name, state in states.items() if state in SHUT_STATES),
        status=_judge_state(states.get(partition, "UP")) if partition else Status.OK,
    )
    hit = {name for node in nodes if found.is_shut(node) for name in node.partitions}
    told = {name: state for name, state in states.items() if name == partition or name in hit}
    return replace(found, text=_describe_states(told))


def _judge_state(state: str) -> Status:
    if state == "UP" or state in SHUT_STATES:  # then no node counts
        return Status.OK
    return Status.WARNING if state == DRAIN else Status.UNKNOWN


def _describe_states(states: dict[str, str]) -> str:
    means = {DRAIN: "it takes no new job", **dict.fromkeys(SHUT_STATES, "no job starts there")}
    shown = [
        f"partition {name} is {state}: {means.get(state, 'a state that sentinel does not know')}"
        for name, state in list(states.items())[:MAX_SHOWN_PARTITIONS]
    ]
    more = len(states) - len(shown)
    words = [*shown, *([f"{more} more partitions are not UP"] if more else [])]
    return visible("".join(f"; {word}" for word in words))
