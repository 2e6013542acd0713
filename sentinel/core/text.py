"""Untrusted text stays text: job names, reasons, log lines, answers of servers."""

import re
import unicodedata
from collections.abc import Iterable

_NUMBER_PATTERN = re.compile(r"[0-9]+")


def visible(text: str) -> str:
    """One line with nothing a terminal, header or log would obey.

    Control, format (bidirectional marks, zero width) and surrogate characters become
    visible escapes, newlines and tabs too; letters of every script stay as they are.
    """
    if text.isascii() and text.isprintable():
        return str(text)
    return "".join(_escape_unsafe(c) for c in text)


def visible_lines(text: str) -> str:
    """As `visible`, but the line structure stays (log tails, message bodies).

    Only LF and CRLF end a line: what str.splitlines also takes for one (form feed, NEL,
    U+2028) would let a log line forge the next. A newline at the very end is dropped.
    """
    lines = text.removesuffix("\n").split("\n")
    return "\n".join(visible(line.removesuffix("\r")) for line in lines)


def _escape_unsafe(char: str) -> str:
    if char == " " or unicodedata.category(char)[0] not in "CZ":
        return char
    return " " if char == "\N{NO-BREAK SPACE}" else char.encode("unicode_escape").decode("ascii")


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, an ellipsis in place of what was cut from the end."""
    return text if len(text) <= limit else (text[: limit - 1] + "…") if limit > 0 else ""


def shorten_to_line(text: str, limit: int) -> str:
    """Inert, on one line, at most `limit` characters; never looks at megabytes."""
    return shortened(visible(text[: limit + 1].strip()), limit)


def strip_names(text: str, names: Iterable[str]) -> str:
    """What alike texts have in common: without these names, and with every number as 0."""
    for name in sorted({*names} - {""}, key=len, reverse=True):
        text = text.replace(name, "")
    return _NUMBER_PATTERN.sub("0", text)


def format_ranges(numbers: Iterable[int]) -> str:
    """`0-2,4-63`."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)
