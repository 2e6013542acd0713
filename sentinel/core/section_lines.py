"""Lines of a section of a node's answer, as the parsers of all sections read them."""

import re

from sentinel.core.errors import SentinelError


class StrangeLine(SentinelError):
    """A line has no known form, so nothing of the section counts."""


def match_line(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    """The parts of the line. Raises StrangeLine if it does not match."""
    match = pattern.fullmatch(line)
    if not match:
        raise StrangeLine(f"a line that is not understood: {line}")
    return match
