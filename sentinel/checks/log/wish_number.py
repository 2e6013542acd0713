"""Searches the number of a user's own pattern, in the child process that reads logs. Its time is
counted, because each user has a budget."""

from __future__ import annotations

import re
import time
from collections import deque
from contextlib import suppress
from functools import cache
from typing import cast

from msgspec import Struct

from sentinel.checks.log.scan import parse_progress_number
from sentinel.core.errors import CannotTell
from sentinel.core.patterns import GuardedPattern, compile_by_line, compile_pattern
from sentinel.core.text import shortened, visible
from sentinel.core.wishes import refuse_pattern

MAX_WISH_CHARS = 2**18
"""Characters at the end of the new text that a user's own pattern searches: the last number counts."""

MIN_COST_S = 0.0002
"""CPU seconds that each search counts at least: the way to the child and back."""


class WishNumber(Struct, frozen=True):
    """What a user's own pattern found in new text.

    value: The last number; None: no line matched.
    refused: Why the pattern cannot be used.
    paused: The user's time is used up.
    seconds: CPU seconds that it took.
    """

    value: float | None = None
    refused: str = ""
    paused: bool = False
    seconds: float = 0.0


def find_wish_number(text: str, pattern: str, left: float) -> WishNumber:
    """The last number in the text, within `left` CPU seconds: the time limit of `regex` counts these
    too, so a busy machine is no fault of the author."""
    _load_libraries()
    begun = time.process_time()
    refused, value = refuse_pattern(pattern), None
    with suppress(CannotTell):  # it found no end in this time
        last = _find_last_match(text, pattern, left) if not refused else None
        if last:
            value = parse_progress_number(last[1])
            shown = visible(shortened(last[1] or "", 60))
            refused = f"`progress` captured {shown!r}, which is no number" if value is None else ""
    seconds = max(MIN_COST_S, time.process_time() - begun)
    return WishNumber(value, refused, seconds >= left, seconds)


@cache
def _load_libraries() -> None:
    """Load what the first search would load: no user pays for that."""
    compile_by_line(compile_pattern(r"(a+)+b (\d+)"))


def _find_last_match(text: str, pattern: str, left: float) -> re.Match[str] | None:
    found: object = compile_by_line(compile_pattern(pattern))
    if isinstance(found, GuardedPattern):
        found = GuardedPattern(re.compile(pattern, re.MULTILINE), "", left)
    matches = cast("re.Pattern[str]", found).finditer(text[-MAX_WISH_CHARS:])
    return next(iter(deque(matches, maxlen=1)), None)
