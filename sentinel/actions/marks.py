"""A mark in a node's Comment that it was returned to service: what sentinels without a common state
count together. Opt-in (`guard: {mark: true}`), and only where nobody else's text stands."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sentinel.core.actions import Answer
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Node
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Hands

MARK_WINDOW_S = 3600
"""Seconds for which a mark counts: as long as caps look back."""
_MARK_PATTERN = re.compile(r"sentinel:returned:(\d{1,12}):[0-9a-f]{12}")


class NotMarkedError(Exception):
    """Why a node carries no mark of ours; the text is one sentence."""


class CommentInUseError(NotMarkedError):
    """Somebody else's text stands there, and is left alone."""


def make_mark(record_id: str, now: Instant) -> str:
    """The mark of one return: when, in epoch seconds of this host, and by which record."""
    return f"sentinel:returned:{now.wall // SECOND}:{record_id}"


def find_marked_nodes(nodes: Iterable[Node], now: Instant) -> frozenset[str]:
    """Nodes that were marked within the window; a mark of the future is one of this moment."""
    today = now.wall // SECOND
    times = ((n.name, _MARK_PATTERN.fullmatch(n.comment)) for n in nodes if n.comment)
    return frozenset(
        name for name, found in times if found and today - int(found[1]) < MARK_WINDOW_S
    )


def write_mark(hands: Hands, name: str, mark: str) -> None:
    """Write the mark where the Comment is empty or holds an older mark; raises NotMarkedError."""
    try:
        node = hands.node(name)
    except CannotTell as error:
        raise NotMarkedError(f"its Comment could not be read: {error}") from None
    if node is None:
        raise NotMarkedError("Slurm knows no such node")
    if node.comment and not _MARK_PATTERN.fullmatch(node.comment):
        raise CommentInUseError("its Comment is in use")
    reply = hands.change(_make_comment_command(name, mark))
    if reply.answer is not Answer.ACCEPTED:
        raise NotMarkedError(f"it could not be marked: {reply.text}")


def remove_mark(hands: Hands, name: str, mark: str) -> None:
    """Empty the Comment, if it is still this mark; one that stays only makes others wait."""
    try:
        node = hands.node(name)
    except CannotTell:
        return
    if node is not None and node.comment == mark:
        hands.change(_make_comment_command(name, ""))


def _make_comment_command(name: str, mark: str) -> tuple[str, ...]:
    return ("scontrol", "update", f"NodeName={name}", f"Comment={mark}")
