"""Whose turn it is: by the time that was spent on each owner."""

import time

import pytest

from sentinel.checks.turns import take_turns


def turns(things: list[str], costs: dict[str, float]) -> list[str]:
    """The order in which things such as `mallory/1` have their turn; `costs`: seconds, by owner,
    the only ones that pass."""
    now, order = 0.0, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now)
        for thing in take_turns(things, lambda one: one.partition("/")[0]):
            order.append(thing)
            now += costs.get(thing.partition("/")[0], 0.0)
    return order


def test_one_thing_of_alice_does_not_wait_for_all_of_mallory() -> None:
    mine = [f"mallory/{n}" for n in range(222)]
    order = turns([*mine, "alice/1"], {"mallory": 1.0, "alice": 1.0})
    assert order[:3] == ["mallory/0", "alice/1", "mallory/1"]
    assert sorted(order) == sorted([*mine, "alice/1"])


def test_time_counts_and_not_how_many_things_there_are() -> None:
    """Things of 5 s each, beside ones of 1 s: five of these for each of those."""
    things = [f"{who}/{n}" for n in range(20) for who in ("mallory", "alice")]
    order = turns(things, {"mallory": 5.0, "alice": 1.0})
    assert order[:7] == ["mallory/0", *(f"alice/{n}" for n in range(5)), "mallory/1"]


def test_things_of_one_owner_keep_their_order() -> None:
    things = ["a/1", "a/2", "b/1", "a/3"]
    assert turns(things, {"a": 1.0, "b": 9.0}) == ["a/1", "b/1", "a/2", "a/3"]


def test_without_things_there_are_no_turns() -> None:
    assert turns([], {}) == []
