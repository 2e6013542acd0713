"""What is said of an end before anything has followed it: a maintenance, an owner, a wait."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.job.memory import GoneJob
from sentinel.checks.job.rhythm import find_wait
from sentinel.checks.job.succession import (
    find_maintenance,
    find_wait_since_death,
    is_cancelled_by_owner,
)
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Reservation
from sentinel.testing import START
from tests.checks.job.making import NOW
from tests.checks.job.test_rhythm import after, gone

MAINT, EVERY = frozenset({"MAINT"}), frozenset({"MAINT", "ALL_NODES"})


def reserved(name: str = "m", **more: Any) -> Reservation:
    fields = {"starts": NOW - 10, "ends": NOW + 10, "nodes": frozenset({"node-1"}), "flags": MAINT}
    return Reservation(name=name, **{**fields, **more})


def on_nodes(seen: str, end: str | None) -> GoneJob:
    """A job that was seen on these nodes, and by its end ran on those."""
    last = gone()
    assert last.end is not None
    return replace(
        last,
        seen=replace(last.seen, nodes=seen),
        end=None if end is None else replace(last.end, nodes=end),
    )


@pytest.mark.parametrize(
    ("more", "is_cause"),
    [
        ({}, True),
        ({"starts": NOW}, True),
        ({"starts": NOW + 1}, False),
        ({"ends": NOW + 1}, True),
        ({"ends": NOW}, False),
        ({"flags": frozenset({"DAILY"})}, False),
        ({"nodes": frozenset({"node-9"})}, False),
        ({"nodes": frozenset({"node-9", "node-3"})}, True),
        ({"nodes": frozenset(), "flags": EVERY}, True),
        ({"nodes": frozenset(), "flags": frozenset({"ALL_NODES"})}, False),
    ],
)
def test_a_maintenance_is_the_cause_where_and_while_it_is(
    more: dict[str, Any], is_cause: bool
) -> None:
    assert find_maintenance(gone(), [reserved(**more)], START) == ("m" if is_cause else "")
    assert find_maintenance(gone(), [], START) == ""


@pytest.mark.parametrize(
    ("seen", "end", "is_there"),
    [
        ("node-1", "", True),
        ("node-1", None, True),
        ("node-9", "node-1", True),
        ("node-1", "node-9", False),
        ("node-[0-", "", False),
    ],
)
def test_the_nodes_of_an_end_are_those_of_its_last_run(
    seen: str, end: str | None, is_there: bool
) -> None:
    """A list that was cut, because it was too long, names none."""
    found = find_maintenance(on_nodes(seen, end), [reserved()], START)
    assert found == ("m" if is_there else "")


def test_of_several_the_one_that_ends_last_is_named() -> None:
    """And none for a job that never had a node."""
    both = [reserved("a", ends=NOW + 20), reserved("b")]
    assert find_maintenance(gone(), both, START) == "a"
    assert find_maintenance(gone(), both[::-1], START) == "a"
    waiting = replace(gone(), seen=replace(gone().seen, state="PENDING"), end=None)
    assert find_maintenance(waiting, both, START) == ""


@pytest.mark.parametrize(
    ("last", "is_owner"),
    [
        (gone("CANCELLED", by="alice"), True),
        (gone("CANCELLED", by="root"), False),
        (gone("CANCELLED"), False),
        (gone("CANCELLED", user=""), False),
        (gone("FAILED", by="alice"), False),
        (replace(gone(), end=None), False),
    ],
)
def test_whether_its_owner_cancelled_it(last: GoneJob, is_owner: bool) -> None:
    assert is_cancelled_by_owner(last) is is_owner


@pytest.mark.parametrize(
    ("dead", "first", "more"),
    [
        (-100.0, 0.0, 98.0),
        (-2.0, 0.0, 0.0),
        (5.0, 0.0, 0.0),
        (-100.0, -1.0, 0.0),  # it was seen before it ended: nothing was left then
        (None, 0.0, 0.0),
    ],
)
def test_a_job_that_no_look_saw_begins_the_wait_anew(
    dead: float | None, first: float, more: float
) -> None:
    """At its own end, two seconds ago; but never longer than 15 minutes in all."""
    last = gone()
    last = replace(last, seen=replace(last.seen, first=shift_instant(START, first)))
    memory = replace(
        after(60, 60, 60), gone=(last,), dead=None if dead is None else shift_instant(START, dead)
    )
    usual = find_wait(last, memory, None)
    assert usual.why
    assert find_wait_since_death(memory, None) == replace(usual, seconds=usual.seconds + more)
    if more:
        long_dead = replace(memory, dead=shift_instant(START, -2000.0))
        assert find_wait_since_death(long_dead, None).seconds == 900.0
        unasked = replace(memory, gone=(replace(last, end=None),))
        assert find_wait_since_death(unasked, None) == find_wait(unasked.gone[0], unasked, None)
