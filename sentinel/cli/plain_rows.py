"""Tables for output to a pipe: rows with tabs between their cells, without the rendering of a
terminal."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence

from sentinel.core.model import Status
from sentinel.core.shown import GPU_PREFIX

COLUMN_SEPARATOR = "\t"
GPU_CHARS = 12
"""How many of the 40 characters of a GPU's UUID tell it from the others of its node."""

_BREAKS = {ord(c): " " for c in "\t\r\n"}


def is_piped() -> bool:
    """Whether the output is no terminal, and no width was requested ($COLUMNS)."""
    return not sys.stdout.isatty() and not os.environ.get("COLUMNS")


def format_status_word(status: Status) -> str:
    """The status word before a line. On a terminal it is padded to the longest word."""
    word = status.value.upper()
    return f"{word:<9}" if sys.stdout.isatty() else f"{word} "


def print_rows(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a line for each row, as `tables.make_plain_table` does if the output is no terminal."""
    for row in (header, *rows):
        print(join_cells(row))


def join_cells(cells: Iterable[str]) -> str:
    """The cells with tabs between them; line breaks within a cell become blanks."""
    return COLUMN_SEPARATOR.join(cell.translate(_BREAKS).strip() for cell in cells)


def format_check_subject(check: str, subject: str) -> str:
    """`disks /scratch`; only one word if both are the same."""
    return check if subject in ("", check) else f"{check} {subject}"


def shorten_gpu(subject: str, labels: Mapping[str, str]) -> str:
    """The subject for people: of a GPU on a known node the node, and the beginning of its UUID."""
    node = labels.get("node")
    return f"{node} {subject[:GPU_CHARS]}" if node and subject.startswith(GPU_PREFIX) else subject
