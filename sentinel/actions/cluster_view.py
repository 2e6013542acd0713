"""The state of Slurm by which one request is judged: all nodes, the members of partitions, and
whether Slurm is well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.core.clock import Instant
from sentinel.core.cluster import Controller, Node
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Hands, View
from sentinel.core.values import duration_text
from sentinel.slurm.job_states import explain_paused_job

SLOW_ANSWER_S = 5.0
"""If slurmctld takes longer than this many seconds to answer, it is unwell. It is half of
slurm.conf's MessageTimeout."""


class ClusterView(Struct, frozen=True):
    """The nodes, and the members of each partition. `unwell` says what is wrong with Slurm. Empty
    if it is well."""

    by_name: Mapping[str, Node]  # Each node, by its name.
    members: Mapping[str, frozenset[str]]  # Names of nodes, by partition.
    unwell: str = ""

    def node(self, name: str) -> Node | None:
        """See core.ports.View."""
        return self.by_name.get(name)


def make_cluster_view(hands: Hands, after: Instant | None = None) -> ClusterView:
    """Make the view. It never raises: if Slurm does not answer, the view is marked as unwell. The
    answer about nodes is not older than `after`."""
    try:
        nodes, answer = hands.nodes(after), hands.controller()
    except CannotTell as error:
        return ClusterView({}, {}, str(error))
    return ClusterView(
        {n.name: n for n in nodes}, _group_by_partition(nodes), _explain_unwell_slurm(answer)
    )


def find_paused_job(view: View, name: str) -> str:
    """Which job is suspended on this node, which is IDLE where it has no other. Empty if none is, or if the
    view does not reach Slurm's queue. Raises CannotTell."""
    ask = getattr(view, "jobs_on", None)
    return explain_paused_job(ask(name)) if ask else ""


def _explain_unwell_slurm(answer: Controller) -> str:
    if not answer.primary_up and not any(up for _, up in answer.backups):
        return f"slurmctld on {answer.primary} is down"
    slow = answer.latency > SLOW_ANSWER_S
    return f"slurmctld answers in {duration_text(answer.latency)}" if slow else ""


def _group_by_partition(nodes: Sequence[Node]) -> dict[str, frozenset[str]]:
    members: dict[str, set[str]] = {}
    for node in nodes:
        for partition in node.partitions:
            members.setdefault(partition, set()).add(node.name)
    return {partition: frozenset(names) for partition, names in members.items()}
