"""Keeps untrusted text plain text: job names, reasons, log lines, answers of servers."""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from sentinel.core.lazy_pattern import lazy_pattern

_NUMBER_PATTERN = lazy_pattern(r"[0-9]+")
_DIGITS_PATTERN = lazy_pattern(r"(\d+)")
_CLAUSE_END = lazy_pattern(r"[;:,] | \(")
_MIN_CLAUSE_SHARE = 0.3
"""A clause that is shorter than this share of the limit says too little, unless a parenthesis
follows."""


@lru_cache(maxsize=2**15)
def natural_sort_key(name: str) -> tuple[tuple[str, int], ...]:
    """n2 comes before n10. Digits beyond the twentieth of a number do not count."""
    parts = [*_DIGITS_PATTERN.split(name), "0"]
    return tuple(
        (text, int(digits[:20])) for text, digits in zip(parts[::2], parts[1::2], strict=True)
    )


def visible(text: str) -> str:
    """The text on one line, without anything that a terminal, header or log would obey.

    Control, format (bidirectional marks, zero width) and surrogate characters become visible
    escapes, newlines and tabs too; letters of every script stay as they are."""
    if text.isascii() and text.isprintable():
        return str(text)
    return "".join(_escape_unsafe(c) for c in text)


def visible_lines(text: str) -> str:
    """As `visible`, but the line structure stays (log tails, message bodies).

    Only LF and CRLF end a line. Other characters at which str.splitlines splits (form feed, NEL,
    U+2028) would let a line of a log forge the next line. A newline at the very end is dropped.
    """
    lines = text.removesuffix("\n").split("\n")
    return "\n".join(visible(line.removesuffix("\r")) for line in lines)


def _escape_unsafe(char: str) -> str:
    if char == " " or unicodedata.category(char)[0] not in "CZ":
        return char
    return " " if char == "\N{NO-BREAK SPACE}" else char.encode("unicode_escape").decode("ascii")


def shortened(text: str, limit: int) -> str:
    """The text with at most `limit` characters; an ellipsis stands for the end that was cut off."""
    return text if len(text) <= limit else (text[: limit - 1] + "…") if limit > 0 else ""


def first_lines(lines: Sequence[str], count: int) -> list[str]:
    """The first `count` lines, and one that says how many more there are."""
    more = [f"and {len(lines) - count} more"] if len(lines) > count else []
    return [*lines[:count], *more]


def shorten_to_line(text: str, limit: int) -> str:
    """The text, escaped, on one line, with at most `limit` characters. Only its beginning is
    read."""
    return shortened(visible(text[: limit + 1].strip()), limit)


def shorten_to_clauses(text: str, limit: int) -> str:
    """The first clauses of a text, up to the limit. If the first one is too long, its first words.
    An ellipsis marks the cut."""
    if len(text) <= limit:
        return text
    head = text[: max(0, limit - 2)]
    ends = [m.start() for m in _CLAUSE_END.finditer(text) if m.start() <= len(head)]
    whole = [end for end in ends if head[:end].count("(") == head[:end].count(")")]
    if whole and (whole[-1] >= _MIN_CLAUSE_SHARE * limit or text[whole[-1]] == " "):
        return f"{text[: whole[-1]]} …"
    words = head.rpartition(" ")[0]
    return f"{words} …" if len(words) >= limit / 2 else shortened(text, limit)


def keep_whole_commands(commands: Iterable[str], limit: int) -> tuple[str, ...]:
    """The commands, escaped; one that is longer than `limit` is left out. Cut, it would leave a
    quote open, and a shell into which all of them are pasted would run the text of the next."""
    return tuple(c.strip() for c in map(visible, commands) if len(c) <= limit)


def strip_names(text: str, names: Iterable[str]) -> str:
    """The text without these names, and with every number as 0. It is equal for similar texts."""
    for name in sorted({*names} - {""}, key=len, reverse=True):
        text = text.replace(name, "")
    return _NUMBER_PATTERN.sub("0", text)


def format_ranges(numbers: Iterable[int]) -> str:
    """The numbers as ranges: `0-2,4-63`."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def escape_formula(text: str) -> str:
    """A cell of CSV that a spreadsheet would take for a formula is marked as text
    (https://owasp.org/www-community/attacks/CSV_Injection)."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
