"""Finds where the last of several runs begins in one log. Pure."""

import re
from collections.abc import Sequence

_TIME_PATTERN = re.compile(
    r"^[\[(]?(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? )?(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6} )?[\d:.,/TZ +-]{4,32}(?:(?:[AP]M )?[A-Z]{3,4} \d{4})?[\])]?"
)
"""The time before a line, which differs where the same program begins again."""

MIN_BEGINNING_CHARS, MAX_BEGINNING_CHARS = 30, 1000
"""How long the two lines are by which the beginning of a run is known again."""

MAX_BEGINNING_LINES = 12
"""Among how many lines these two are."""

_WORD_PATTERN = re.compile(r"[^\W\d_]{2}")

MAX_TRIED = 50
"""How many places are tried that have the first of the two lines."""


def find_last_beginning(text: str, causes: Sequence[int]) -> int:
    """Where the last of several runs in this text begins that has an error of its own. 0 if it is one run.
    `causes` are the positions of errors.

    A job that is requeued, or a script that is started again by hand, appends to its log: the first two lines of
    the text stand there again. Numbers must be the same, so that steps are no beginnings.
    """
    if len(causes) < 2:
        return 0
    first, second = _read_telling_lines(text[:MAX_BEGINNING_CHARS])
    if len(first + second) < MIN_BEGINNING_CHARS or not second or first.startswith("Traceback"):
        return 0  # several ranks may die of the same
    begin = text.rfind(first, causes[0], causes[-1])
    for _ in range(MAX_TRIED):
        if begin <= causes[0]:
            break
        start = text.rfind("\n", 0, begin) + 1
        if _read_telling_lines(text[start : start + MAX_BEGINNING_CHARS]) == (first, second):
            return start
        begin = text.rfind(first, causes[0], begin)
    return 0


def _read_telling_lines(text: str) -> tuple[str, str]:
    """The first two lines that have a word in them, without their times."""
    lines = (_TIME_PATTERN.sub("", line).strip() for line in text.split("\n")[:MAX_BEGINNING_LINES])
    told = [line for line in lines if _WORD_PATTERN.search(line)]
    first, second = [*told, "", ""][:2]
    return first, second
