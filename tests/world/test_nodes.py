"""Nodes and their states, as clusters elsewhere showed them."""

from __future__ import annotations

from sentinel.checks.nodes import NodesCheck
from sentinel.core.model import Status
from sentinel.testing import FixedSlurm, context
from tests.checks.nodes.test_nodes import node
from tests.world.case import Case, each


@each(
    Case(
        "reboot-requested-while-jobs-run",
        "scontrol(1), reboot without ASAP: MIXED+REBOOT_REQUESTED",
        [node(n, "MIXED", "REBOOT_REQUESTED") for n in range(4)],
        Status.OK,
        "a rolling update makes a whole partition critical while it works",
    ),
    Case(
        "blocked-by-an-exclusive-topology-job",
        "sinfo(1), BLOCKED (24.05)",
        [node(n, "IDLE", "BLOCKED") for n in range(4)],
        Status.OK,
        "a large job with --exclusive=topo makes the rest of its block critical",
    ),
    Case(
        "a-word-of-a-newer-slurm",
        "Slurm 26.11 has words that 20.11 had not",
        [node(n, "IDLE", "A_WORD_OF_SLURM_31") for n in range(4)],
        Status.UNKNOWN,
        "an upgrade drains, or hides, a whole cluster",
    ),
    Case(
        "a-new-word-where-enough-work-without",
        "Slurm 26.11 has words that 20.11 had not",
        [*(node(n) for n in range(4)), node(4, "IDLE", "A_WORD_OF_SLURM_31")],
        Status.OK,
        "one odd node makes the check blind",
    ),
    Case(
        "down-is-down-whatever-stands-beside-it",
        "Slurm 26.11 has words that 20.11 had not",
        [node(n, "DOWN", "A_WORD_OF_SLURM_31") for n in range(4)],
        Status.CRITICAL,
        "a dead cluster is only unknown",
    ),
)
def test_how_many_nodes_can_work(case: Case) -> None:
    finding = NodesCheck(need=4, each=False).run(context(FixedSlurm(nodes=case.form))).findings[0]
    assert finding.status is case.right


def test_a_partition_without_nodes_has_none_that_can_work() -> None:
    """scontrol show partition: TotalNodes=0, where all nodes of a cloud have gone."""
    slurm = FixedSlurm(nodes=[node(1)], partitions={"prod": 1, "cloud": 0})
    finding = NodesCheck(partition="cloud", need=2).run(context(slurm)).findings[0]
    assert finding.status is Status.CRITICAL
    assert finding.summary.startswith("0 of 0 nodes can work, 2 are needed")
