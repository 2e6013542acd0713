"""Makes text that may be shown to everybody: sentinel's own words, small numbers, and `***` for the
rest.

Secrets are not searched for, because nobody can list what a site keeps secret. Instead, a word is
shown only if it is in sentinel's own source, and in no name or text of the site.
"""

import builtins
import os
import re
from collections.abc import Iterable
from functools import lru_cache

from sentinel.core.text import shortened, visible
from sentinel.proc.own_package import PACKAGE_DIR

HIDDEN = "***"
MAX_LINE = 300
"""Characters of one text."""

_WORD = re.compile(r"[A-Za-z]+(?:[-_'][A-Za-z]+)*")
_NUMBER = re.compile(r"[-+]?\d{1,3}(?:[.:]\d{1,3}){0,2}(?:%|ms|[smhdw]|[kMGTPE]?i?B)?")
"""Codes of SMTP and HTTP, versions and durations; no job id, no address, no port."""

_EDGES = "\"'`()[]{}<>,.:;!?→-"
_SMALL_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "in",
        "is",
        "it",
        "no",
        "not",
        "of",
        "on",
        "or",
        "the",
        "to",
        "with",
    ]
)
"""These words are never hidden. They are no names, and a sentence in the configuration (a runbook)
would hide them everywhere."""

_SAMPLE_NAMES = frozenset(["alice", "bob", "carol", "dave", "eve", "mallory", "ada"])
"""People in examples of sentinel's own source."""


class PublicWords:
    """Hides every word that sentinel does not know, or that stands in one of the `private` texts."""

    def __init__(self, private: Iterable[str] = ()) -> None:
        self._private = {word for text in private for word in split_words(text)}

    def mask_text(self, text: str) -> str:
        """The text as one line. Consecutive hidden words are one `***`."""
        words = [self._mask_token(token) for token in visible(text).split()]
        kept = [w for i, w in enumerate(words) if w != HIDDEN or words[i - 1 : i] != [HIDDEN]]
        return shortened(" ".join(kept), MAX_LINE)

    def _mask_token(self, token: str) -> str:
        core = token.strip(_EDGES)
        if core and not self._is_public(core):
            return HIDDEN
        return token

    def _is_public(self, core: str) -> bool:
        if core.lower() in self._private:
            return False
        if _NUMBER.fullmatch(core):
            return True
        return bool(_WORD.fullmatch(core)) and core.lower() in read_vocabulary()


def split_words(text: str) -> set[str]:
    """The words of a name, path or address in small letters; a host's name has several."""
    return {word for word in re.split(r"[^\w-]+", text.lower()) if word} - _SMALL_WORDS


@lru_cache(maxsize=1)
def read_vocabulary() -> frozenset[str]:
    """Every word of sentinel's own source and of Python's errors, in small letters."""
    found = {name.lower() for name in dir(builtins)}
    found.update(_find_words(os.strerror(number) for number in range(1, 134)))
    for folder, _, names in os.walk(PACKAGE_DIR):
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    found.update(_find_words(file))
    return frozenset(found - _SAMPLE_NAMES)


def _find_words(lines: Iterable[str]) -> set[str]:
    return {word.lower() for line in lines for word in _WORD.findall(line)}
