"""Marks in a node's Comment that the node was returned to service. Sentinels without a common state
use them to count together. Opt-in (`guard: {mark: true}`). A comment of somebody else is never
replaced."""

from __future__ import annotations

from collections.abc import Iterable

from sentinel.core.actions import Answer
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Hands
from sentinel.slurm.node_notes import RETURNED_MARK

MARK_WINDOW_S = 3600
"""For how many seconds a mark counts. Caps look back as long."""


class NotMarkedError(Exception):
    """The reason why a node has no mark from sentinel, in one sentence."""


class CommentInUseError(NotMarkedError):
    """The comment contains somebody else's text, which is kept."""


def make_mark(record_id: str, now: Instant) -> str:
    """The mark of one return: its time in epoch seconds of this host, and the id of its record."""
    return f"sentinel:returned:{now.wall // SECOND}:{record_id}"


def find_marked_nodes(nodes: Iterable[Node], now: Instant) -> frozenset[str]:
    """Nodes that were marked within the window. A mark from the future counts too."""
    today = now.wall // SECOND
    times = ((n.name, RETURNED_MARK.fullmatch(n.comment)) for n in nodes if n.comment)
    return frozenset(
        name for name, found in times if found and today - int(found[1]) < MARK_WINDOW_S
    )


def write_mark(hands: Hands, name: str, mark: str) -> None:
    """Write the mark if the Comment is empty or has an older mark. Raises NotMarkedError."""
    try:
        node = hands.node(name)
    except CannotTell as error:
        raise NotMarkedError(f"its Comment could not be read: {error}") from None
    if node is None:
        raise NotMarkedError("Slurm knows no such node")
    if node.comment and not RETURNED_MARK.fullmatch(node.comment):
        raise CommentInUseError("its Comment is in use")
    reply = hands.change(_make_comment_command(name, mark))
    if reply.answer is not Answer.ACCEPTED:
        raise NotMarkedError(f"it could not be marked: {reply.text}")


def remove_mark(hands: Hands, name: str, mark: str) -> None:
    """Empty the Comment if it is still this mark. If that fails, others only wait longer."""
    try:
        node = hands.node(name)
    except CannotTell:
        return
    if node is not None and node.comment == mark:
        hands.change(_make_comment_command(name, ""))


def _make_comment_command(name: str, mark: str) -> tuple[str, ...]:
    return ("scontrol", "update", f"NodeName={name}", f"Comment={mark}")
