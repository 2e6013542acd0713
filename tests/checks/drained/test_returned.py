"""What is said of a node whose drain is over: only what is known."""

import pytest
from msgspec.structs import replace

from sentinel.checks.drained.returned import judge_returned_node
from sentinel.core.actions import ActionOutcome, ActionRecord
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
    ],
)
def test_only_what_is_known(node, records, words) -> None:  # type: ignore[no-untyped-def]
    found = judge_returned_node(node, records)
    assert (found.subject, found.status, found.summary) == ("n1", Status.OK, words)


def test_a_node_that_was_told_is_told_once_when_it_is_back() -> None:
    """Not one of which nobody heard, and not at the look after that."""
    told = {"told": ["n1"]}
    (found,) = run(nodes=[FREE], memory=told).findings
    assert found.summary.startswith("back in service")
    assert run(nodes=[FREE]).findings == ()
    again = run(nodes=[FREE], memory=told).memory
    assert run(nodes=[FREE], memory=again).findings == ()
