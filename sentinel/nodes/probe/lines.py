"""What the parsers of sections share."""

import re

from sentinel.core.errors import SentinelError


class Strange(SentinelError):
    """A line is not of the known form: then the section says nothing at all."""


def matched(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    """The line in its parts; raises Strange."""
    match = pattern.fullmatch(line)
    if not match:
        raise Strange(f"a line that is not understood: {line}")
    return match
