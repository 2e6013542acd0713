"""Who is named for which hang. Each truth is a small job's dumps."""

from typing import Any

import pytest

from sentinel.stacks.parse.standstill import find_standstill
from sentinel.stacks.parse.standstill_words import describe_standstill
from tests.stacks.parse.recorded import WORLD, away, entry, read, waiting, written

ONE, OTHER = {**WORLD, "7": ("PAIR", (0, 1))}, {**WORLD, "8": ("OTHER", (2, 3))}


def named(dumps: dict[int, Any]) -> tuple[tuple[int, ...], str]:
    found = find_standstill(read(dumps))
    ranks = {rank for one in found.culprits for rank in one.ranks}
    return tuple(sorted(ranks)), describe_standstill(found)


@pytest.mark.parametrize("as_json", [False, True])
def test_who_has_not_come_to_a_collective_is_named_with_line_and_number(as_json: bool) -> None:
    dumps = {rank: away() if rank == 2 else waiting() for rank in range(4)}
    assert describe_standstill(find_standstill(read(dumps, as_json=as_json))) == (
        "rank 2 is not in the all_reduce (train.py:88) number 5 of default_pg, "
        "in which 3 others wait"
    )


def test_who_is_missing_because_it_waits_itself_is_no_culprit() -> None:
    """0 waits with 1 in the pair; 2 and 3 wait for both of them in the group of all."""
    pair = written([entry("7", 9)], {"0": (4, 4), "7": (9, 8)}, ONE)
    gone = written([], {"0": (4, 4), "7": (8, 8)}, ONE)
    rest = written([entry("0", 5)], {"0": (5, 4), "8": (8, 8)}, OTHER)
    who, words = named({0: pair, 1: gone, 2: rest, 3: rest})
    assert who == (1,)
    assert "rank 1 is not in" in words


def test_ranks_that_wait_for_each_other_are_told_as_that() -> None:
    """Each is first in the group in which the other comes second."""
    groups = {"7": ("A", (0, 1)), "8": ("B", (0, 1))}
    first = written([entry("7", 5)], {"7": (5, 4), "8": (4, 4)}, groups)
    second = written([entry("8", 5)], {"7": (4, 4), "8": (5, 4)}, groups)
    who, words = named({0: first, 1: second})
    assert who == (0, 1)
    assert "wait for each other" in words


def test_a_rank_for_which_nothing_ends_has_a_gpu_that_stands() -> None:
    """All have enqueued it, and it has ended for all others."""
    dumps = {rank: waiting(6) for rank in range(4)}
    dumps[3] = written([entry("0", 5), entry("0", 6)], {"0": (6, 4)})
    assert named(dumps) == (
        (3,),
        "rank 3 has not finished the all_reduce (train.py:88) number 5 of default_pg, "
        "as 3 others did: look at its GPU",
    )


@pytest.mark.parametrize("name", ["nccl:broadcast", "gloo:scatter", "nccl:reduce"])
def test_what_ends_early_for_its_root_accuses_nobody(name: str) -> None:
    dumps = {rank: waiting(name=name) for rank in range(4)}
    dumps[0] = written([], {"0": (5, 5)})
    assert named(dumps)[0] == ()


def test_a_collective_that_failed_is_not_taken_for_one_that_ended() -> None:
    """When a peer is gone gloo retires what waited for it: no rank can have finished what 2 never
    began."""
    failed = written([entry("0", 5, retired=True)], {"0": (5, 5)})
    assert named({0: failed, 1: waiting(), 2: away(), 3: failed})[0] == (2,)


@pytest.mark.parametrize(
    "odd", [waiting(name="nccl:broadcast"), waiting(input_sizes=[[4, 9]])], ids=["name", "shape"]
)
def test_who_is_in_another_collective_than_the_rest_is_named(odd: dict[str, Any]) -> None:
    who, words = named({0: waiting(), 1: odd, 2: waiting(), 3: waiting()})
    assert who == (1,)
    assert "the program goes another way there" in words


def test_a_rank_that_died_without_a_dump_is_named_as_that() -> None:
    who, words = named({0: waiting(), 1: waiting(), 3: waiting()})
    assert who == (2,)
    assert words.startswith("rank 2 left no dump, and 3 others wait with it in the all_reduce")


def test_of_few_dumps_nobody_is_accused() -> None:
    who, words = named({0: waiting(), 1: waiting()})
    assert who == ()
    assert "too few dumps" in words


def test_where_all_have_joined_the_network_is_looked_at() -> None:
    who, words = named({rank: waiting() for rank in range(4)})
    assert who == ()
    assert "4 ranks wait in collectives that all of them have joined" in words


def test_ranks_that_wait_for_nothing() -> None:
    assert named({rank: away() for rank in range(4)}) == ((), "no rank waits in a collective")


def test_a_pipeline_waits_for_the_rank_that_does_not_send() -> None:
    """A receive names its peer by its place in the group; numbers of pairs are no collective's."""
    groups = {"5": ("PIPE", (4, 6, 8))}

    def recv(me: int, other: int) -> dict[str, Any]:
        name = f"nccl:recv {me}<-{other}"
        return written([entry("5", 2, name, is_p2p=True, p2p_seq_id=70 + me)], {"5": (70, 69)}, groups)  # fmt: skip

    who, words = named({8: recv(2, 1), 6: recv(1, 0), 4: written([], {"5": (99, 99)}, groups)})
    assert who == (4,)
    assert words.startswith("rank 4 is not in the recv")


def test_gloo_names_no_ranks_and_all_of_them_are_in_the_first_group() -> None:
    def gloo(raw: dict[str, Any]) -> dict[str, Any]:
        return {**raw, "pg_config": {"": {"name": "", "desc": "", "ranks": "[0, 1]"}}}

    quiet = written([entry("0", 4, retired=True)], {"0": (4, 4)})
    dumps = {rank: gloo(quiet if rank == 3 else waiting()) for rank in range(4)}
    assert named(dumps)[0] == (3,)


def test_a_peer_without_a_dump_is_not_said_to_be_away() -> None:
    """4 may have sent, and 6 waits for it; 8 waits in its wake. With 4's dump it is known."""
    groups = {"5": ("PIPE", (4, 6, 8)), "6": ("PAIR", (6, 8))}
    recv = entry("5", 2, "nccl:recv 1<-0", is_p2p=True)
    behind = written([recv], {"5": (70, 69), "6": (8, 8)}, groups)
    ahead = written([entry("6", 9)], {"5": (70, 70), "6": (9, 8)}, groups)
    who, words = named({6: behind, 8: ahead})
    assert who == (4,)
    assert words.startswith("rank 4 left no dump, and 1 other waits with it in the recv")
