"""What people write beside a node's reason: notes in its Comment or Extra. Pure.

Other programs keep text there all the time (cloud controllers, Slinky's JSON about its pod), so a text
alone is no note. One that changed since a node was drained is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

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
    """Whether the text has words that it did not have, in JSON too. A program changes its numbers and
    identifiers; whether a word is a person's cannot be told. A text that was cut or emptied says nothing new."""
    return bool(_count_words(now) - _count_words(before))


def _count_words(text: str) -> Counter[str]:
    """How often each word is there. Numbers and hexadecimal identifiers (`0abc12`) count as one word: they
    are values. A ticket (`INC0042`) is none, so another one is news."""
    words = _WORD_PATTERN.findall(text.lower())
    return Counter("0" if _IDENTIFIER_PATTERN.fullmatch(word) else word for word in words)
