"""Untrusted text stays text: job names, reasons, log lines, answers of servers."""

import unicodedata


def visible(text: str) -> str:
    """One line with nothing a terminal, header or log would obey.

    Control, format (bidirectional marks, zero width) and surrogate characters become
    visible escapes, newlines and tabs too; letters of every script stay as they are.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(c) for c in text)


def visible_lines(text: str) -> str:
    """As `visible`, but the line structure stays (log tails, message bodies)."""
    return "\n".join(visible(line) for line in text.splitlines())


def _escape(char: str) -> str:
    if char == " " or unicodedata.category(char)[0] not in "CZ":
        return char
    return (
        char.encode("unicode_escape", "backslashreplace").decode("ascii")
        if ord(char) != 0xA0
        else " "
    )


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, an ellipsis in place of what was cut from the end."""
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"
