"""What is said of a node whose drain is over: only what is known."""

import pytest
from msgspec.structs import replace

from sentinel.checks.drained.returned import judge_returned_node
from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.cluster import Node
from sentinel.core.model import Status
from sentinel.testing import START
from tests.checks.drained.test_check import NODE, run

UNDRAINED = ActionRecord(
    id="a",
    action="undrain",
    target="n1",
    reason="",
    by="root",
    at=START,
    outcome=ActionOutcome.DONE,
)
FREE = replace(NODE, flags=frozenset(), state="IDLE")


@pytest.mark.parametrize(
    ("node", "records", "words"),
    [
        (FREE, [UNDRAINED], "back in service: undrained by root"),
        (FREE, [], "back in service: resumed in Slurm, which does not record by whom"),
        (
            FREE,
            [replace(UNDRAINED, outcome=ActionOutcome.NO_EFFECT)],
            "back in service: resumed in Slurm, which does not record by whom",
        ),
        (replace(NODE, reason="RMA 17"), [], "still drained, now for another reason: RMA 17"),
        (
            replace(FREE, state="DOWN"),
            [UNDRAINED],
            "not drained any more, and still out of service (DOWN)",
        ),
        (
            replace(FREE, flags=frozenset({"MAINTENANCE"})),
            [],
            "not drained any more, and takes no jobs yet (IDLE+MAINTENANCE)",
        ),
    ],
)
def test_only_what_is_known(node, records, words) -> None:  # type: ignore[no-untyped-def]
    found = judge_returned_node(node, records)
    assert (found.subject, found.status, found.summary) == ("n1", Status.OK, words)


@pytest.mark.parametrize(
    "node", [replace(FREE, state="UNKNOWN"), replace(FREE, flags=frozenset({"NEW_WORD"}))]
)
def test_a_node_whose_state_is_not_known_is_not_told_as_back(node: Node) -> None:
    """slurmctld has not heard from it since its own start, or prints a word of a newer Slurm. It stays
    a problem until its state is known."""
    told = {"told": ["n1"]}
    report = run(nodes=[node], memory=told)
    (found,) = report.findings
    assert found.status is Status.UNKNOWN
    assert "not known" in found.summary
    (well,) = run(nodes=[FREE], memory=report.memory).findings
    assert (well.status, well.summary[:15]) == (Status.OK, "back in service")


def test_a_node_that_was_told_is_told_once_when_it_is_back() -> None:
    """Not one of which nobody heard, and not at the look after that."""
    told = {"told": ["n1"]}
    (found,) = run(nodes=[FREE], memory=told).findings
    assert found.summary.startswith("back in service")
    assert run(nodes=[FREE]).findings == ()
    again = run(nodes=[FREE], memory=told).memory
    assert run(nodes=[FREE], memory=again).findings == ()
