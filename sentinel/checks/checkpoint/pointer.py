"""What `latest` says: a link, a name, a number, a path, TensorFlow's text, JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from sentinel.clean.mentions import Mentions, mentions_in_json, mentions_in_text


class NamedCheckpoint(Protocol):
    """A checkpoint by its name."""

    @property
    def name(self) -> str:
        """Of its file or folder."""

    @property
    def step(self) -> float:
        """The number that `match` caught."""


class CheckpointPointer(Struct, frozen=True, kw_only=True):
    """A link, or a file of text."""

    text: str  # where the link leads, or what the file holds
    written: float  # when, by the file server's clock

    @property
    def first_line_text(self) -> str:
        """Its first line, for a message."""
        lines = self.text.split("\n")
        return lines[0].strip()[:200]

    def find_step(self, entries: Sequence[NamedCheckpoint]) -> float | None:
        """The step that it names: of an entry of that name or number, or the number itself. Of
        TensorFlow's text the first line counts, the others list what is kept."""
        there = frozenset(e.name for e in entries)
        found = mentions_in_json(self.text, there)
        texts = (
            [found] if found else [mentions_in_text(line, there) for line in self.text.splitlines()]
        )
        for mentions in texts:
            if (step := _find_mentioned_step(mentions, entries)) is not None:
                return step
        word = self.text.strip()
        return float(word) if word.isascii() and word.isdigit() else None


def _find_mentioned_step(mentions: Mentions, entries: Sequence[NamedCheckpoint]) -> float | None:
    """By whole name, then by step, then by what names begin with; of several the highest."""
    exact = [e.step for e in entries if e.name in mentions.names]
    numbered = exact or [e.step for e in entries if e.step in mentions.numbers]
    begun = numbered or [e.step for e in entries if mentions.covers_name(e.name)]
    return max(begun, default=None)
