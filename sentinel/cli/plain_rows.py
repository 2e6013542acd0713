"""Tables for who reads from a pipe: rows of whole words, without the rendering of a terminal."""

import os
import sys
from collections.abc import Iterable, Sequence
from unicodedata import combining, east_asian_width

COLUMN_SEPARATOR = "  "


def is_piped() -> bool:
    """Whether nobody looks at a terminal, and no width was asked for ($COLUMNS)."""
    return not sys.stdout.isatty() and not os.environ.get("COLUMNS")


def print_rows(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their widest cell, as `tables.make_plain_table` has them off a terminal."""
    table = [header, *rows]
    widths = [max(_measure_text_width(row[place]) for row in table) for place in range(len(header))]
    for row in table:
        padded = (
            text + " " * (width - _measure_text_width(text))
            for text, width in zip(row, widths, strict=True)
        )
        print(COLUMN_SEPARATOR.join(padded))


def format_check_subject(check: str, subject: str) -> str:
    """`disks /scratch`; once where both are the same."""
    return check if subject in ("", check) else f"{check} {subject}"


def _measure_text_width(text: str) -> int:
    """How many columns of a terminal it takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
