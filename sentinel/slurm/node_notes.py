"""What people write beside a node's reason: notes in its Comment or Extra. Pure.

Other programs keep text there all the time (cloud controllers, Slinky's JSON about its pod), so a text
alone is no note. One that somebody wrote since a node was drained is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import msgspec

from sentinel.core.cluster import Node
from sentinel.core.text import shortened, visible

RETURNED_MARK = "sentinel:returned:"
"""sentinel's own marks in a Comment begin with this (actions/marks.py)."""
MAX_NOTE_CHARS = 120
_WORD_PATTERN = re.compile(r"\w+")
_IDENTIFIER_PATTERN = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")
_NUMBER_PATTERN = re.compile(r"[0-9]+")


def read_notes(node: Node) -> dict[str, str]:
    """The free texts beside the reason, by the name of the field. sentinel's own mark is none."""
    own = node.comment.startswith(RETURNED_MARK)
    return {"comment": "" if own else node.comment, "extra": node.extra}


def describe_new_note(before: Mapping[str, str], node: Node) -> str:
    """What somebody wrote into Comment or Extra since they held `before`, in words. Empty if nobody
    did, or if that is not known."""
    for name, text in read_notes(node).items():
        if name in before and is_note(before[name], text):
            return visible(f"its {name.capitalize()} says now: '{shortened(text, MAX_NOTE_CHARS)}'")
    return ""


def is_note(before: str, now: str) -> bool:
    """Whether the text has words that it did not have.

    A program changes its values: numbers and identifiers, and words that the keys of a JSON object hold.
    A sentence there is a person's.
    A text that was cut or emptied says nothing new.
    """
    first, second = _read_keys(before), _read_keys(now)
    if first is not None and second is not None:
        return bool(second - first)
    return bool(_count_words(now) - _count_words(before))


def _count_words(text: str) -> Counter[str]:
    """How often each word is there. Numbers and hexadecimal identifiers count as one word: they are values.
    In other words the digits do, so that a ticket (`INC0042`) is no instance (`0abc12`)."""
    words = _WORD_PATTERN.findall(text.lower())
    return Counter(
        "0" if _IDENTIFIER_PATTERN.fullmatch(word) else _NUMBER_PATTERN.sub("0", word)
        for word in words
    )


def _read_keys(text: str) -> frozenset[str] | None:
    """The keys of a JSON object, and the words of its values that hold several. None if the text is none."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    sentences = [one for one in found.values() if isinstance(one, str) and " " in one.strip()]
    return frozenset(map(str, found)) | _count_words(" ".join(sentences)).keys()
