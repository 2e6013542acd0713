"""Counts in the columns of a table, by the words that stand above them. Pure."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from sentinel.checks.log.progress_words import PROGRESS_WORD_PATTERN, WEAK_WORD_PATTERN

_HEADER_PATTERN = re.compile(
    r"^(?:[A-Z]{2,12}: )?[ \t#|│┃┆]*['\"]?[^\W\d](?:[^\n=:;{}]{3,400}"
    r"|\w{1,23}(?: ?\([^)\n]{1,20}\))?[ \t]{2,60}[A-Za-z(][^\n]{0,400})$",
    re.M,
)
_EXPLAINED_PATTERN = re.compile(
    r"^# *col(?:umn)?s?\.? +(\d{1,2})[ \t]*[^\w\n]{1,12}(\w{2,24})", re.M
)
"""`# column   1     --> step : …` (i-pi/i-pi, ipi/engine/outputs.py): a line for each column."""

_LABEL_REGEX = r"(?:[A-Z]{2,12}: )?"
"""What NAMD has before the words, and before the numbers: `ETITLE:`, `ENERGY:`."""

_COUNT_REGEX = r"(\d+(?:\.\d+)?(?:[eE]\+?\d+)?)"
_CELL_REGEX = r"(?:\[?[-+]?[\d.*]\S*|(?i:\[?[-+]?(?:nan|inf)\S*|none|null|n/a|-+))"
_LEFT_EDGE_REGEX = r"[ \t|│┃┆]*"
_ROW_LINES = 4
"""How many lines below a header are searched for its first row. One or two rulers may stand
between."""

MAX_COLUMNS = 40
OTHER_HEADINGS = frozenset(("#", "ts", "nfev"))
"""Headings that count only in a table: those of NAMD, spaCy and optimisers."""


def find_counted_columns(text: str) -> Iterator[tuple[str, str]]:
    """The name of each column whose heading is a word for progress, and a pattern for its rows.
    Only the last line with such headings counts."""
    for column in _EXPLAINED_PATTERN.finditer(text):
        if _is_progress_heading(column[2]):
            yield column[2], _make_explained_row(int(column[1]) - 1)
            return
    headers = [one for one in _HEADER_PATTERN.finditer(text) if _names_progress(one[0])]
    for header in reversed(headers[-3:]):
        below = text[header.end() + 1 : header.end() + 2000].split("\n")[:_ROW_LINES]
        columns = [*_match_columns(header[0], below)] or [*_match_first_column(header[0], below)]
        if columns:
            yield from columns
            return


def _names_progress(line: str) -> bool:
    return any(map(_is_progress_heading, re.split(r"[,|│┃┆\t]|  +|(?<=\w) (?=\w)", line)))


@lru_cache(maxsize=1000)
def _is_progress_heading(cell: str) -> bool:
    """Cached, because the lines of a log mostly have the same cells."""
    name = re.sub(r" ?[(\[].*|['\"]", "", cell).strip("# \"'.").replace(" ", "_") or cell.strip()
    return name.lower() in OTHER_HEADINGS or any(
        pattern.fullmatch(name) for pattern in (PROGRESS_WORD_PATTERN, WEAK_WORD_PATTERN)
    )


def _match_columns(header: str, below: list[str]) -> Iterator[tuple[str, str]]:
    header = re.sub(f"^{_LABEL_REGEX}", "", header)
    for names, make in _split_heading(header):
        if not 2 <= len(names) <= MAX_COLUMNS:
            continue
        found = [
            (names[n].strip(" #\"'") or names[n].strip(), make(n, len(names)))
            for n in range(len(names))
            if _is_progress_heading(names[n])
        ]
        found = [one for one in found if any(re.search(one[1], line) for line in below)]
        if found:
            yield from found
            return


def _match_first_column(header: str, below: list[str]) -> Iterator[tuple[str, str]]:
    """The first column alone, of a table whose cells have spaces in them."""
    name = re.split(r"[ \t]{2,}|[|│┃┆,\t]|[ \t]?[(\[]", header.strip("#|│┃┆ \t"))[0].strip()
    pattern = rf"^{_LEFT_EDGE_REGEX}(\d+)(?: ?\([^)\n]{{1,20}}\))?[ \t|│┃┆,;]+{_CELL_REGEX}"
    if _is_progress_heading(name) and any(re.search(pattern, line) for line in below):
        yield name, pattern


def _split_heading(header: str) -> Iterator[tuple[list[str], Callable[[int, int], str]]]:
    """The ways to divide a heading into names, each with the function that makes the pattern for a
    column."""
    bare = header.strip()
    if "," in bare:
        yield bare.split(","), _make_comma_row
    elif bare.count('"') > 2:
        yield re.findall(r'"([^"]{1,60})"', bare), _make_space_row
    if re.search(r"[|│┃┆]", bare):
        yield re.split(r"[|│┃┆]", bare.strip("|│┃┆ \t")), _make_bar_row
    if "\t" in bare:
        yield re.split(r"\t+", bare), _make_space_row
    yield re.split(r"[ \t]{2,}", bare), _make_space_row
    yield bare.lstrip("# ").split(), _make_space_row


def _make_explained_row(column: int) -> str:
    return (
        rf"^[ \t]*(?:{_CELL_REGEX}[ \t]+){{{column}}}{_COUNT_REGEX}(?:[ \t]+{_CELL_REGEX})*[ \t]*$"
    )


def _make_comma_row(column: int, count: int) -> str:
    after = count - column - 1
    return rf"^(?:[^,\n]*,){{{column}}}[ \"]*{_COUNT_REGEX}[ \"]*(?:,[^,\n]*){{{after}}}$"


def _make_bar_row(column: int, count: int) -> str:
    """A pattern for a row whose cells are divided by bars. No two repetitions beside each other
    match the same blanks, so that a line of blanks is read only once."""
    after = count - column - 1
    bar, cell = "[|│┃┆]", r"[^|│┃┆\n]*"
    return (
        rf"^(?:[ \t]*{bar})?(?:{cell}{bar}){{{column}}}[ \t]*{_COUNT_REGEX}[ \t]*"
        rf"(?:{bar}{cell}){{{after}}}(?:{bar}[ \t]*)?$"
    )


def _make_space_row(column: int, count: int) -> str:
    after = count - column - 1
    return (
        rf"^{_LABEL_REGEX}[ \t]*(?:{_CELL_REGEX}[ \t]+){{{column}}}{_COUNT_REGEX}"
        rf"(?:[ \t]+{_CELL_REGEX}){{{after}}}[ \t]*$"
    )
