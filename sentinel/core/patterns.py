"""Regular expressions that people write: with the meaning of `re`, and an end.

`re` compiles each of them first. What the rule of `pattern_rules` shows harmless stays a plain
`re.Pattern`. Anything else becomes a Guarded, which has the same methods: the `regex` library
searches, and gives up after some time. Such a search raises CannotTell, for nobody knows whether
the text fits. Patterns that are sentinel's own need none of this.
"""

import re
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from sentinel.core.errors import CannotTell
from sentinel.core.pattern_rules import explain_ambiguity, is_harmless

SEARCH_TIMEOUT_S = 2.0
"""Seconds that one search through one block of text may take: a MiB of a log takes milliseconds."""

RETRY_AFTER_S = 60.0
"""Seconds in which a pattern that ran out of time is not tried again: each try costs LIMIT."""


class GuardedPattern:
    """The part of `re.Pattern` that sentinel uses, for a pattern that may search without an end.

    `where`: file, line and key of the configuration, or empty. Every search raises CannotTell after LIMIT.
    """

    def __init__(
        self, plain: "re.Pattern[str]", where: str, limit: float = SEARCH_TIMEOUT_S
    ) -> None:
        self.pattern, self.flags = plain.pattern, plain.flags
        self.groups, self.groupindex = plain.groups, plain.groupindex
        self.where, self._limit = where, limit
        self._tired = float("-inf")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GuardedPattern) and self._identity_key() == other._identity_key()

    def __hash__(self) -> int:
        return hash(self._identity_key())

    def search(self, text: str) -> "re.Match[str] | None":
        """As `re.Pattern.search`."""
        return cast("re.Match[str] | None", self._search_within("search", text))

    def match(self, text: str) -> "re.Match[str] | None":
        """As `re.Pattern.match`."""
        return cast("re.Match[str] | None", self._search_within("match", text))

    def fullmatch(self, text: str) -> "re.Match[str] | None":
        """As `re.Pattern.fullmatch`."""
        return cast("re.Match[str] | None", self._search_within("fullmatch", text))

    def finditer(self, text: str) -> "Iterator[re.Match[str]]":
        """As `re.Pattern.finditer`, but all of them are found at once, within one LIMIT."""
        return iter(cast("list[re.Match[str]]", self._search_within("finditer", text)))

    def _search_within(self, name: str, text: str) -> Any:
        if time.monotonic() - self._tired < RETRY_AFTER_S:
            raise make_endless_error(self, self._limit)
        try:
            search = getattr(_compile_with_timeout(self.pattern, self.flags), name)
            found = search(text, timeout=self._limit, concurrent=True)
            return list(found) if name == "finditer" else found
        except TimeoutError:
            self._tired = time.monotonic()
            raise make_endless_error(self, self._limit) from None

    def _identity_key(self) -> tuple[str, int, str]:
        return self.pattern, self.flags, self.where


def make_endless_error(
    pattern: "re.Pattern[str] | GuardedPattern", limit: float = SEARCH_TIMEOUT_S
) -> CannotTell:
    """What is said of a pattern whose search was given up, with its place in the configuration."""
    where, text = getattr(pattern, "where", ""), pattern.pattern
    place = f" ({where})" if where else ""
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return CannotTell(
        f"the regular expression {shown!r}{place} found no end within {limit:g} s; write "
        "it without a repetition inside a repetition, and with fixed text before .* and +"
    )


@lru_cache(maxsize=1024)
def compile_pattern(text: str, flags: int = 0, where: str = "") -> "re.Pattern[str]":
    """The pattern as `re` understands it, a Guarded where it may search without an end.

    Raises what re.compile raises, and re.error for what may search without an end and holds
    something that `regex` may take otherwise.
    """
    plain = re.compile(text, flags)
    if is_harmless(text, plain.flags):
        return plain
    if remedy := explain_ambiguity(text, plain.flags):
        raise re.error(f"it may search without an end, and cannot be limited {remedy}")
    _compile_with_timeout(text, plain.flags)
    return cast("re.Pattern[str]", GuardedPattern(plain, where))


def compile_by_line(pattern: "re.Pattern[str]") -> "re.Pattern[str]":
    """The same pattern where `^` and `$` mean the lines of a text."""
    flags = pattern.flags | re.MULTILINE
    return compile_pattern(pattern.pattern, flags, getattr(pattern, "where", ""))


@lru_cache(maxsize=256)
def _compile_with_timeout(text: str, flags: int) -> Any:
    """The same pattern of the library whose searches can be given up. Raises re.error."""
    import regex

    same = {re.I: regex.I, re.M: regex.M, re.S: regex.S, re.A: regex.A}
    try:
        return regex.compile(text, regex.V0 | sum(v for k, v in same.items() if flags & k))
    except regex.error as error:
        raise re.error(f"it may search without an end, and cannot be limited: {error}") from None
