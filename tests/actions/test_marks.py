"""Marks that a node was returned: what a sentinel without a common state reads in a node's Comment."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace

from sentinel.actions.marks import (
    CommentInUseError,
    NotMarkedError,
    find_marked_nodes,
    make_mark,
    remove_mark,
    write_mark,
)
from sentinel.core.actions import Answer, Reply
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell

NOW = Instant(wall=1_790_000_000 * SECOND, mono=0, boot="b")
MARK = "sentinel:returned:1790000000:0123456789ab"
OLD = "sentinel:returned:1780000000:ba9876543210"


class Comments:
    """A Slurm of one node, which keeps its Comment."""

    def __init__(self, comment: str = "", answer: Answer = Answer.ACCEPTED) -> None:
        self.kept, self.answer = Node(name="n1", state="IDLE", comment=comment), answer
        self.is_silent = False
        self.asked: list[Sequence[str]] = []

    def node(self, name: str) -> Node | None:
        if self.is_silent:
            raise CannotTell("slurmctld does not answer")
        return self.kept if name == "n1" else None

    def change(self, argv: Sequence[str]) -> Reply:
        self.asked.append(argv)
        program, verb, name, comment = argv
        assert (program, verb, name) == ("scontrol", "update", "NodeName=n1")
        if self.answer is Answer.ACCEPTED:
            self.kept = replace(self.kept, comment=comment.removeprefix("Comment="))
        return Reply(self.answer, "" if self.answer is Answer.ACCEPTED else "no such right")

    @property
    def hands(self) -> Any:
        return cast("Any", self)


def test_a_mark_holds_the_time_and_the_record() -> None:
    assert make_mark("0123456789ab", NOW) == MARK


@pytest.mark.parametrize(
    ("comment", "age", "counts"),
    [
        (MARK, 0, True),
        (MARK, 3599, True),
        (MARK, 3600, False),
        (MARK, -600, True),  # of a host whose clock is ahead
        ("", 0, False),
        (f"{MARK} bad fan", 0, False),
        (f"rack 7 {MARK}", 0, False),
        ("sentinel:returned:1790000000:0123456789aB", 0, False),
    ],
)
def test_what_counts_as_marked(comment: str, age: int, counts: bool) -> None:
    """Within the hour, from the future too, and nothing but a whole mark."""
    now = replace(NOW, wall=NOW.wall + age * SECOND)
    nodes = [Node(name="n1", state="IDLE", comment=comment), Node(name="n2", state="IDLE")]
    assert find_marked_nodes(nodes, now) == ({"n1"} if counts else set())


@pytest.mark.parametrize("before", ["", OLD])
def test_a_mark_is_written_over_nothing_and_over_an_older_mark(before: str) -> None:
    slurm = Comments(before)
    write_mark(slurm.hands, "n1", MARK)
    assert slurm.kept.comment == MARK


def test_the_comment_of_somebody_else_stays() -> None:
    slurm = Comments("fan replaced, ask kim")
    with pytest.raises(CommentInUseError, match="its Comment is in use"):
        write_mark(slurm.hands, "n1", MARK)
    remove_mark(slurm.hands, "n1", MARK)
    assert (slurm.kept.comment, slurm.asked) == ("fan replaced, ask kim", [])


def test_what_could_not_be_marked_says_why() -> None:
    silent = Comments()
    silent.is_silent = True
    with pytest.raises(NotMarkedError, match="could not be read: slurmctld does not answer"):
        write_mark(silent.hands, "n1", MARK)
    with pytest.raises(NotMarkedError, match="Slurm knows no such node"):
        write_mark(Comments().hands, "n2", MARK)
    for answer in (Answer.REFUSED, Answer.UNSURE):
        with pytest.raises(NotMarkedError, match="it could not be marked: no such right"):
            write_mark(Comments(answer=answer).hands, "n1", MARK)


def test_only_its_own_mark_is_removed() -> None:
    """Not one that another sentinel has written since; what cannot be read stays."""
    slurm = Comments(MARK)
    remove_mark(slurm.hands, "n1", OLD)
    assert slurm.asked == []
    slurm.is_silent = True
    remove_mark(slurm.hands, "n1", MARK)
    remove_mark(Comments().hands, "n2", MARK)
    slurm.is_silent = False
    assert slurm.kept.comment == MARK
    remove_mark(slurm.hands, "n1", MARK)
    assert slurm.kept.comment == ""
