"""Of many things of one owner and few of others."""

from sentinel.core.turns import interleave


def test_each_owner_s_first_comes_before_anybody_s_second() -> None:
    things = ["m1", "m2", "m3", "a1", "b1", "a2"]
    assert interleave(things, lambda one: one[0]) == ["m1", "a1", "b1", "m2", "a2", "m3"]


def test_the_things_of_one_owner_keep_their_order() -> None:
    assert interleave([3, 1, 2], lambda _: "") == [3, 1, 2]
