"""Finds what was new when a log ended: lines of a shape that it did not print while all was well. Pure.

No list of errors is needed for that. Novelty only chooses what is shown beside a known error. Healthy
logs are full of new lines, so it never decides whether something is wrong.
"""

import re
from bisect import bisect_left
from collections.abc import Collection

from msgspec import Struct

from sentinel.checks.log.last_words import (
    MAX_LINE_CHARS,
    is_carrier_line,
    is_error_line,
    is_plain_error_line,
    is_trailing_line,
)

MAX_END_CHARS = 2**18
"""How much of the end of a text is read."""

MIN_ROWS = 5
"""How many lines of one shape, with other numbers each, are rows of a program that is well."""

MAX_FIRST_LINES, MAX_LAST_LINES = 5, 3
"""How many new lines are shown, from the first one on and up to the last one."""

_LINE_PATTERN = re.compile(r"[^\r\n]+")
_MASK_PATTERN = re.compile(
    r"(['\"])[^'\"\n/]{0,200}/[^'\"\n]{0,200}\1|0x[0-9a-fA-F]+|\b[0-9a-f]{12,64}\b"
    r"|[-+]?\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?"
)
"""What differs between two lines of one shape: quoted paths, addresses, hashes, numbers."""

_ROW_PATTERN = re.compile(
    r"(?i)(?<![a-z])(?:steps?|iter(?:ation)?s?|it|updates?|batch(?:es)?|epochs?|samples?|tokens?)(?![a-z])|loss|0 ?/ ?0|0 of 0"
)
"""A shape that counts: by the name of a step, or as so many of so many."""

_MARK_PATTERN = re.compile(
    r"^(?:\[(?:rank|default)?\d+\]:? ?|\d{1,5}: |\([\w:.]+(?: pid=\d+)?(?:, ip=[\d.]+)?\) ?|[\[(]?\d[\d., TZ/-]{0,20}:\d\d[\d:., Z+-]{0,16}[\])]? ?)+"
)
"""The rank, process and time before a line, by which two lines do not differ."""

_CODE_PATTERN = re.compile(
    r"\s{4,}\S|[^\n]{0,100}(?:File \"[^\"\n]{1,300}\", line \d|Traceback \(most recent)|During handling|The above exc|[│╭╰]"
)
"""Lines of a traceback. The one below a place in a file is code."""

_NCCL_PATTERN = re.compile(r"\bNCCL WARN\b")
"""The level of NCCL's errors: it has no other one."""


class LogEnd(Struct, frozen=True):
    """The lines at the end of a text.

    lines: Where each line begins and ends. Lines of an earlier text have negative places.
    shapes: Their shapes.
    rows: The indices of lines that say that the program is well.
    """

    lines: tuple[tuple[int, int], ...]
    shapes: tuple[str, ...]
    rows: tuple[int, ...]

    @property
    def begin(self) -> int:
        """Where the part after the last such line begins. 0 without one."""
        return max(0, self.lines[self.rows[-1]][1]) if self.rows else 0

    def count_rows_after(self, position: int) -> int:
        """How many lines after this position say that the program is well."""
        return len(self.rows) - bisect_left(self.rows, position, key=lambda n: self.lines[n][0])


def make_shape(line: str) -> str:
    """The line without what differs between two lines of one shape."""
    return " ".join(_MASK_PATTERN.sub("0", line[:MAX_LINE_CHARS]).split())


def read_log_end(text: str, earlier: str = "") -> LogEnd:
    """The end of the text. `earlier` is what the log said before it."""
    earlier = earlier[len(earlier) - max(0, MAX_END_CHARS - len(text)) :] if earlier else ""
    before = [(*one.span(), one[0]) for one in _LINE_PATTERN.finditer(earlier)]
    after = _LINE_PATTERN.finditer(text, max(0, len(text) - MAX_END_CHARS))
    said = [(a - len(earlier), b - len(earlier), line) for a, b, line in before]
    said += [(*one.span(), one[0]) for one in after]
    shapes = [make_shape(line) for _, _, line in said]
    rows = _find_rows([line for _, _, line in said], shapes)
    return LogEnd(tuple((a, b) for a, b, _ in said), tuple(shapes), tuple(rows))


def _find_rows(lines: list[str], shapes: list[str]) -> list[int]:
    """The lines of each shape that counts, changes, and says nothing bad."""
    kinds: dict[str, list[int]] = {}
    for number, shape in enumerate(shapes):
        kinds.setdefault(shape, []).append(number)
    return sorted(
        number
        for shape, places in kinds.items()
        if len(places) >= MIN_ROWS and _ROW_PATTERN.search(shape)
        for number in (places if _is_row([lines[n] for n in places[-4 * MIN_ROWS :]]) else ())
    )


def _is_row(lines: list[str]) -> bool:
    """Whether these lines of one shape differ by more than their marks, and say nothing bad."""
    told = {_MARK_PATTERN.sub("", line) for line in lines}
    bad = is_error_line(lines[-1]) or is_plain_error_line(lines[-1])
    return len(told) >= MIN_ROWS and not bad and not _CODE_PATTERN.match(min(told))


def is_bad_line(line: str) -> bool:
    """Whether the line says in any form that something went wrong."""
    return bool(_NCCL_PATTERN.search(line)) or is_error_line(line) or is_plain_error_line(line)


def find_new_lines(
    text: str, end: LogEnd, echo: int, told: Collection[int]
) -> list[tuple[int, int]]:
    """The lines to show beside known errors: where they begin and end.

    `echo` is the position of the first error that follows from another one, `told` where lines
    begin that are shown already. In the middle of a run, the first and the last lines that are new,
    or else those before the end that were survived until then. At its start everything is new: the
    bad lines.
    """
    last = end.rows[-1] if end.rows else -1
    well = set(end.shapes[: last + 1])
    lines = _list_end_lines(text, end, echo, told)
    new = [place for place, shape in lines if shape not in well]
    if end.rows:
        shown = new[:MAX_FIRST_LINES] + new[MAX_FIRST_LINES:][-MAX_LAST_LINES:]
        if not any(end.begin <= begin < echo for begin in (*told, *(one[0] for one in new))):
            shown += [place for place, shape in lines if shape in well][-MAX_LAST_LINES:]
    else:
        shown = [one for one in new if is_bad_line(text[slice(*one)])][:MAX_FIRST_LINES]
    return sorted(shown)


def _list_end_lines(
    text: str, end: LogEnd, echo: int, told: Collection[int]
) -> list[tuple[tuple[int, int], str]]:
    """One line of each shape after the last row, and its shape. Lines of tracebacks are left out, those
    that only tell of another error, and after an echo what is not bad: the launcher says it."""
    found: dict[str, tuple[int, int]] = {}
    begin, code = end.rows[-1] + 1 if end.rows else 0, False
    for place, shape in zip(end.lines[begin:], end.shapes[begin:], strict=True):
        below, code = code, "File " in shape
        if place[0] < 0 or place[0] in told or shape in found or below:
            continue
        line = text[place[0] : min(place[1], place[0] + MAX_LINE_CHARS)]
        bare = _MARK_PATTERN.sub("", line)
        rest = _CODE_PATTERN.match(bare) or is_carrier_line(bare) or is_trailing_line(line)
        if not rest and (place[0] < echo or is_bad_line(line)):
            found[shape] = place
    return [(place, shape) for shape, place in found.items()]
