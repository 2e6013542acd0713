"""What people write beside a node's reason: notes in its Comment or Extra. Pure.

Other programs keep text there all the time (cloud controllers, Slinky's JSON about its pod), so a text
alone is no note. One that somebody wrote since a node was drained is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from sentinel.core.cluster import Node
from sentinel.core.text import shortened, visible
from sentinel.slurm.node_states import reason_params

RETURNED_MARK = re.compile(r"sentinel:returned:(\d{1,12}):[0-9a-f]{12}")
"""A whole Comment that is sentinel's own mark (actions/marks.py): whoever writes behind it leaves a note."""
MAX_NOTE_CHARS = 120
_WORD_PATTERN = re.compile(r"\w+")
_IDENTIFIER_PATTERN = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")


def read_notes(node: Node) -> dict[str, str]:
    """The free texts beside the reason, by the name of the field. sentinel's own mark is none."""
    own = RETURNED_MARK.fullmatch(node.comment)
    return {"comment": "" if own else node.comment, "extra": node.extra}


def describe_new_note(before: Mapping[str, str], node: Node) -> str:
    """What somebody wrote into Comment or Extra since they held `before`, in words. Empty if nobody
    did, or if that is not known."""
    for name, text in read_notes(node).items():
        if name in before and is_note(before[name], text):
            return visible(f"its {name.capitalize()} says now: '{shortened(text, MAX_NOTE_CHARS)}'")
    return ""


def describe_changes(params: Mapping[str, str], node: Node) -> str:
    """What has changed on the node since the request, in words: its reason, or a note that somebody wrote.
    Empty if nothing has."""
    for key, value in reason_params(node).items():
        if key in params and params[key] != value:
            name = key.replace("_", " ")
            return visible(f"its {name} changed from '{params[key]}' to '{value}'")
    return describe_new_note(params, node)


def is_note(before: str, now: str) -> bool:
    """Whether the text has words that it did not have.

    A program changes its values: numbers and identifiers, and words that a JSON object holds. A sentence
    there is a person's, and so is what fills an empty place or makes a new one, at any depth.
    A text that was cut or emptied says nothing new.
    """
    first, second = _read_object(before), _read_object(now)
    if first is not None and second is not None:
        return bool(second - first)
    return bool(_count_words(now) - _count_words(before))


def _count_words(text: str) -> Counter[str]:
    """How often each word is there. Numbers and hexadecimal identifiers (`0abc12`) count as one word: they
    are values. A ticket (`INC0042`) is none, so another one is news."""
    words = _WORD_PATTERN.findall(text.lower())
    return Counter("0" if _IDENTIFIER_PATTERN.fullmatch(word) else word for word in words)


def _read_object(text: str) -> frozenset[str] | None:
    """What `_list_places` finds in a JSON object. None if the text is none."""
    try:
        found = msgspec.json.decode(text)
        return frozenset(_list_places(found, "")) if isinstance(found, dict) else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _list_places(value: object, place: str) -> Iterator[str]:
    """Every place below this one that holds something, and the words of every sentence there."""
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _list_places(one, f"{place}/{key}")
    elif isinstance(value, str) and " " in value.strip():
        yield from _count_words(value)
    if value not in (None, "", [], {}):
        yield place
