"""Regular expressions that people write: they have the meaning of `re`, and a time limit.

`re` compiles each of them first. A pattern that is harmless by `pattern_rules` stays a plain
`re.Pattern`. Any other becomes a GuardedPattern with the same methods: the `regex` library
searches, and gives up after some time. Such a search raises CannotTell, since it is not known
whether the text matches. Patterns of sentinel itself need none of this."""

import re
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from sentinel.core.errors import CannotTell

SEARCH_TIMEOUT_S = 2.0
"""Seconds that one search in one block of text may take; a MiB of a log takes milliseconds."""

RETRY_AFTER_S = 60.0
"""Seconds for which a pattern that ran out of time is not tried again, since each try takes
SEARCH_TIMEOUT_S."""


class GuardedPattern:
    """The part of `re.Pattern` that sentinel uses, for a pattern that may search without an end.

    `where`: file, line and key of the configuration, or empty. A search that takes longer than
    `limit` seconds raises CannotTell.
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
        """Like `re.Pattern.search`."""
        return cast("re.Match[str] | None", self._search_within("search", text))

    def match(self, text: str) -> "re.Match[str] | None":
        """Like `re.Pattern.match`."""
        return cast("re.Match[str] | None", self._search_within("match", text))

    def fullmatch(self, text: str) -> "re.Match[str] | None":
        """Like `re.Pattern.fullmatch`."""
        return cast("re.Match[str] | None", self._search_within("fullmatch", text))

    def finditer(self, text: str) -> "Iterator[re.Match[str]]":
        """Like `re.Pattern.finditer`, but all matches are found at once, within one time limit."""
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
    """The error about a pattern whose search was given up, with its place in the configuration."""
    where, text = getattr(pattern, "where", ""), pattern.pattern
    place = f" ({where})" if where else ""
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return CannotTell(
        f"the regular expression {shown!r}{place} found no end within {limit:g} s; write "
        "it without a repetition inside a repetition, and with fixed text before .* and +"
    )


@lru_cache(maxsize=1024)
def compile_pattern(text: str, flags: int = 0, where: str = "") -> "re.Pattern[str]":
    """The pattern with the meaning of `re`; a GuardedPattern if it may search without an end.

    Raises what re.compile raises, and re.error for a pattern that may search without an end and
    that `regex` may read differently."""
    from sentinel.core.pattern_rules import explain_ambiguity, is_harmless  # rarely needed

    plain = re.compile(text, flags)
    if is_harmless(text, plain.flags):
        return plain
    if remedy := explain_ambiguity(text, plain.flags):
        raise re.error(f"it may search without an end, and cannot be limited {remedy}")
    _compile_with_timeout(text, plain.flags)
    return cast("re.Pattern[str]", GuardedPattern(plain, where))


def compile_by_line(pattern: "re.Pattern[str]") -> "re.Pattern[str]":
    """The same pattern, with `^` and `$` matching at each line of a text."""
    flags = pattern.flags | re.MULTILINE
    return compile_pattern(pattern.pattern, flags, getattr(pattern, "where", ""))


@lru_cache(maxsize=256)
def _compile_with_timeout(text: str, flags: int) -> Any:
    """The same pattern in the library whose searches have a time limit. Raises re.error."""
    import regex

    same = {re.I: regex.I, re.M: regex.M, re.S: regex.S, re.A: regex.A}
    try:
        return regex.compile(text, regex.V0 | sum(v for k, v in same.items() if flags & k))
    except regex.error as error:
        raise re.error(f"it may search without an end, and cannot be limited: {error}") from None
