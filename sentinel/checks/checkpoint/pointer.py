"""Finds the step that `latest` names. It may be a link, or a file with a name, a number, a path,
TensorFlow's text or JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from sentinel.clean.mentions import (
    Mentions,
    find_lone_number,
    mentions_in_json,
    mentions_in_text,
)


class NamedCheckpoint(Protocol):
    """A checkpoint that a pointer may name."""

    @property
    def name(self) -> str:
        """The name of its file or folder."""

    @property
    def step(self) -> float:
        """The number that `match` caught."""


class CheckpointPointer(Struct, frozen=True, kw_only=True):
    """A link, or a file of text, that names a checkpoint."""

    text: str  # the target of the link, or the content of the file
    written: float  # when it was written, by the file server's clock

    @property
    def first_line_text(self) -> str:
        """The first line of its text, for a message."""
        lines = self.text.split("\n")
        return lines[0].strip()[:200]

    def find_step(self, entries: Sequence[NamedCheckpoint]) -> float | None:
        """The step that the pointer names. None if it names none.

        It is the step of the entry with that name or number. If there is no such entry, it is the
        number that is the whole text. In TensorFlow's text the first line counts, because the
        others list the checkpoints that are kept.
        """
        there = frozenset(e.name for e in entries)
        found = mentions_in_json(self.text, there)
        texts = (
            [found] if found else [mentions_in_text(line, there) for line in self.text.splitlines()]
        )
        for mentions in texts:
            if (step := _find_mentioned_step(mentions, entries)) is not None:
                return step
        alone = find_lone_number(self.text)
        return None if alone is None else float(alone)


def _find_mentioned_step(mentions: Mentions, entries: Sequence[NamedCheckpoint]) -> float | None:
    """The highest step of the entries whose whole name is mentioned. If there are none, of those
    whose step is mentioned, and then of those whose name begins with a mentioned word. None if no
    entry is mentioned."""
    exact = [e.step for e in entries if e.name in mentions.names]
    numbered = exact or [e.step for e in entries if e.step in mentions.numbers]
    begun = numbered or [e.step for e in entries if mentions.covers_name(e.name)]
    return max(begun, default=None)
