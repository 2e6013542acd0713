"""Patterns of modules that a start imports and mostly does not use."""

import re
from typing import Any, cast


class _LazyPattern:
    def __init__(self, text: str, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        """A method of the pattern; kept, so that this is asked once for each."""
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found


def lazy_pattern(text: str, flags: int = 0) -> "re.Pattern[str]":
    """As re.compile, at the first use of one of its methods. For literals that a test has tried: a
    slip in one is met late."""
    return cast("re.Pattern[str]", _LazyPattern(text, flags))
