"""Finds exceptions that their program survived, because it went on and then ended by another one. Pure."""

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from sentinel.checks.log.last_words import is_error_line, is_trailing_line
from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.trouble_kind import EXCEPTION, TRACEBACK

MIN_LINES_BETWEEN = 20
"""After how many lines of ordinary output a program has survived an exception. Other ranks print a few more when one
of them dies."""

MAX_CHARS_BETWEEN = 2**16
"""How much text after an exception is searched for these lines."""

_MISSING_PATTERN = re.compile(r"FileNotFoundError|No such file|NotFoundError|does not exist")
"""An exception that misses what an earlier one may have kept from being written: the earlier one says why."""

_TRACE_PATTERN = re.compile(
    r"[ \t]|Traceback |During handling|The above exc|frame #\d|[\w.]{1,80}(?:Error|Exception)\b"
)


def lower_survived(
    text: str, found: Sequence[tuple[int, LogTrouble]]
) -> list[tuple[int, LogTrouble]]:
    """The errors, with the rank lowered of each exception after which the same process went on until another one."""
    lowered = list(found)
    places = [n for n, (_, one) in enumerate(found) if one.kind == EXCEPTION]
    for earlier, later in pairwise(places):
        (begin, first), (end, last) = found[earlier], found[later]
        same = (first.rank, first.host) == (last.rank, last.host)
        if same and not _MISSING_PATTERN.search(last.line) and _goes_on(text, begin, end):
            lowered[earlier] = (begin, replace(first, kind=TRACEBACK))
    return lowered


def _goes_on(text: str, begin: int, end: int) -> bool:
    """Whether enough lines between two exceptions are neither of a traceback nor about an error."""
    lines = text[begin : min(end, begin + MAX_CHARS_BETWEEN)].splitlines()
    plain = 0
    for line in lines:
        if not (_TRACE_PATTERN.match(line) or is_trailing_line(line) or is_error_line(line)):
            plain += 1
            if plain >= MIN_LINES_BETWEEN:
                return True
    return False
