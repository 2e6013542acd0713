"""What is said of an end before anything has followed it: a maintenance, an owner, a wait."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.job.memory import GoneJob, Memory
from sentinel.checks.job.rhythm import find_wait
from sentinel.checks.job.succession import (
    find_maintenance,
    find_wait_since_death,
    is_cancelled_by_owner,
    learn_delays,
    list_maintenances,
)
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import JobEnd, Reservation
from sentinel.testing import START
from tests.checks.job.making import NOW, job
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


@pytest.mark.parametrize(
    ("more", "is_listed"),
    [
        ({}, True),
        ({"starts": NOW, "ends": NOW + 1}, True),
        ({"starts": NOW + 1}, False),
        ({"ends": NOW}, False),
        ({"flags": frozenset({"DAILY"})}, False),
        ({"flags": MAINT | {"TIME_FLOAT"}}, False),
        ({"nodes": frozenset({"node-1", "node-2"})}, False),
        ({"nodes": frozenset(), "flags": EVERY}, True),
    ],
)
def test_a_maintenance_of_all_nodes_of_a_job_is_planned(
    more: dict[str, Any], is_listed: bool
) -> None:
    """One that leaves it nodes, or that will never begin, excuses nothing."""
    whole = {"nodes": frozenset(f"node-{n}" for n in range(4)), **more}
    plan = [reserved(**whole)]
    assert list_maintenances(gone(), plan, START) == (plan if is_listed else [])
    unknown = on_nodes("node-[0-", "")
    assert list_maintenances(unknown, plan, START) == (plan if "ALL_NODES" in plan[0].flags else [])
    some = [reserved()]
    assert list_maintenances(None, some, START) == some


def test_the_wait_is_that_of_the_job_that_ran() -> None:
    """A submission that was cancelled before it began says nothing of when it ended."""
    last = gone("TIMEOUT")
    unbegun = JobEnd(job_id="12", state="CANCELLED", nodes="", started=None, ended=NOW - 1)
    never = replace(
        last, seen=replace(last.seen, id="12", job_id="12", state="PENDING"), end=unbegun
    )
    memory = replace(after(60, 60, 60, kind="TIMEOUT"), gone=(never, last))
    assert find_wait_since_death(memory, None) == find_wait(last, memory, None)
    assert find_wait(never, memory, None) != find_wait(last, memory, None)
    alone = replace(memory, gone=(never,))
    assert find_wait_since_death(alone, None) == find_wait(never, memory, None)
    assert find_wait_since_death(Memory(), None).seconds == 0


def element(job_id: str, array: str, *, state: str = "FAILED", started: int = NOW) -> GoneJob:
    """A job that began after the last look and has ended."""
    last = gone(state)
    assert last.end is not None
    return replace(
        last,
        seen=replace(last.seen, id=job_id, job_id=job_id, array_id=array, started=started),
        end=replace(last.end, job_id=job_id, started=started, ended=started + 5),
    )


@pytest.mark.parametrize(
    ("unseen", "learned"),
    [
        ([element("11", "11")], [2.0]),
        ([element("11", "10")], []),
        ([element("11", "11"), element("12", "11", started=NOW + 1)], [2.0]),
        ([element("11", "11"), element("12", "12", started=NOW + 20)], [2.0, 15.0]),
        ([element("11", ""), element("12", "", started=NOW + 20)], [2.0, 15.0]),  # no arrays
    ],
)
def test_elements_of_an_array_do_not_follow_one_another(
    unseen: list[GoneJob], learned: list[float]
) -> None:
    """They were submitted at once, and tell nothing of what comes after an end."""
    now = shift_instant(START, 60)
    last = element("10", "10", started=NOW - 7)
    before = Memory(gone=(last,))
    found = learn_delays(
        before, Memory(gone=(last, *(replace(one, at=now) for one in unseen))), [], now
    )
    assert [d.seconds for kind in found.delays.values() for d in kind] == learned


def test_what_was_gone_before_or_never_ran_is_no_follower() -> None:
    """Only what came and went between two looks is."""
    now = shift_instant(START, 60)
    last, earlier = element("10", "10", started=NOW - 7), element("11", "11")
    assert learn_delays(Memory(gone=(last,)), Memory(gone=(last, earlier)), [], now).delays == {}
    alive = Memory(gone=(last,), seen=(earlier.seen,))
    ended = replace(earlier, at=now)
    assert learn_delays(alive, Memory(gone=(last, ended)), [], now).delays == {}
    assert learn_delays(Memory(gone=(last,)), Memory(gone=(last, ended)), [], now).delays != {}
    never = replace(earlier, at=now, seen=replace(earlier.seen, state="PENDING"), end=None)
    assert learn_delays(Memory(gone=(last,)), Memory(gone=(last, never)), [], now).delays == {}


@pytest.mark.parametrize(
    ("after_end", "automatic"),
    [(-121, []), (-120, [True]), (-1, [True]), (0, [False]), (60, [False])],
)
def test_what_a_job_submitted_in_its_last_two_minutes_is_automatic(
    after_end: int, automatic: list[bool]
) -> None:
    """A trap submits before the end, a person after it; what was queued all along says nothing."""
    before = Memory(gone=(gone(),))
    new = job("11", submitted=NOW - 2 + after_end, started=NOW + 70)
    found = learn_delays(before, before, [new], shift_instant(START, 60))
    assert [d.automatic for kind in found.delays.values() for d in kind] == automatic


def test_of_several_jobs_the_one_that_was_submitted_first_has_followed() -> None:
    """What came later says nothing of how long a training stood."""
    before, now = Memory(gone=(gone(),)), shift_instant(START, 60)
    jobs = [job(str(10 + n), submitted=NOW + n * 10, started=NOW + 70) for n in (3, 1, 2)]
    found = learn_delays(before, before, jobs, now)
    assert found.delays == learn_delays(before, before, jobs[1:2], now).delays != {}
