"""Regular expressions that are compiled at their first use, for modules that every start
imports."""

import re
from typing import Any, AnyStr, cast


class _LazyPattern:
    def __init__(self, text: Any, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        """A method of the compiled pattern. It is stored, so that each name is looked up here
        once."""
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found


def lazy_pattern(text: AnyStr, flags: int = 0) -> "re.Pattern[AnyStr]":
    """As re.compile, but the pattern is compiled at the first use of one of its methods.

    Only for literals that a test has compiled: an error in one shows late."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))
