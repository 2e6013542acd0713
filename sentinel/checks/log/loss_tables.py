"""Finds losses without a name beside them: a header names the columns, or there is no name at all."""

import re
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from math import inf, nan

MAX_HEADER_CHARS = 300
"""The longest line of column names, in characters."""

MAX_TABLE_ROWS = 2000
"""How many rows below such a line are read."""

LossValue = tuple[int, str, float]
"""Position, name and value of a loss. An infinite value counts as NaN."""

_COLUMN_GAP_PATTERN = re.compile(r"[ \t]*[|│┃,;\t][ \t]*|[ \t]{2,}")

_HEADER_PATTERN = re.compile(
    rf"^[^\n\d:=]{{0,{MAX_HEADER_CHARS}}}\b[a-z_]{{0,20}}loss\b[^\n\d:=]{{0,{MAX_HEADER_CHARS}}}$",
    re.M | re.I,
)

_RULER_PATTERN = re.compile(r"[-=+|│┃─━┼ \t:]*")


_UNNAMED_PATTERNS = (
    (" avg", re.compile(r"^ *\d+: ([-+\w.]+), [-+\w.]+ avg(?: loss)?, ", re.M)),
    (" train, step ", re.compile(r"\bep \d+ train, step \d+, ((?:[\w.:/-]+ [-+\w.]+, ){1,20})")),
    ("poch, ", re.compile(r"\b[Ee]poch, \d+, ([-+\w.]+), ")),
    ("learn: ", re.compile(r"^\d+:[ \t]+learn: ([-+\w.]+)", re.M)),
    ("G  ", re.compile(r"^ *\d+/\d+ +[\d.]+G((?: +(?:-?[nN]a[nN]|[\d.]+)){4,}):? ", re.M)),
)


def find_table_losses(text: str) -> Iterator[LossValue]:
    """Losses below a line of column names, as in fastai's output and CSV files.

    A table ends where the next one begins. So no line is read twice, whatever names it contains.
    """
    headers = _HEADER_PATTERN.finditer(text) if "oss" in text else iter(())
    for header, following in pairwise(chain(headers, [None])):
        names = (
            _split_columns(header[0]) if header and _COLUMN_GAP_PATTERN.search(header[0]) else []
        )
        names = names if len(names) > 1 or not header else _split_words(header[0])
        if header and len(names) > 1:
            begin, end = header.end() + 1, following.start() if following else len(text)
            yield from _parse_table_rows(text[begin:end], begin, names)


def _parse_table_rows(text: str, begin: int, names: "list[str]") -> Iterator[LossValue]:
    """The losses of the table at the beginning of this text. `begin` is the position of the text."""
    wanted = [number for number, name in enumerate(names) if "loss" in name.lower()]
    for line in islice(_iterate_lines(text), MAX_TABLE_ROWS):
        cells = _split_columns(line)
        cells = cells if len(cells) == len(names) else line.split()
        if len(cells) == len(names):
            found = [(names[n], _parse_cell(cells[n])) for n in wanted]
            yield from ((begin, name, value) for name, value in found if value is not None)
        elif not _RULER_PATTERN.fullmatch(line[:MAX_HEADER_CHARS]):
            return
        begin += len(line) + 1


def _iterate_lines(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = end if end >= 0 else len(text)
        yield text[at:end]
        at = end + 1


def _split_words(line: str) -> "list[str]":
    """Names of columns with one space between them: `epoch train_loss val_loss`. Empty for a
    sentence."""
    words = line.split()
    return words if words[0].lower() in ("epoch", "step", "iter", "iteration", "batch") else []


def _split_columns(line: str) -> "list[str]":
    return _COLUMN_GAP_PATTERN.split(line.strip(" \t|│┃"))


def _parse_cell(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def find_unnamed_losses(text: str) -> Iterator[LossValue]:
    """Losses whose name is in a header (YOLO: the first of them, or one that is NaN), after the
    value (darknet), can be anything (RETURNN), or is missing."""
    for mark, pattern in _UNNAMED_PATTERNS:
        if mark in text:
            for match in pattern.finditer(text):
                first, *_ = match[1].split()
                value = nan if "nan" in match[1].lower() else parse_loss_value(first)
                yield match.start(), "loss", value


def parse_loss_value(captured: str) -> float:
    """The value as printed: a number, NaN in any form, or infinity. 0 for anything else."""
    try:
        return float(captured)
    except ValueError:
        word = (
            captured.lower()
            .lstrip("+-.")
            .removeprefix("1.#q")
            .removeprefix("1.#s")
            .removeprefix("1.#")
        )
        word = "inf" if word.startswith("∞") else word
        word = "nan" if word.startswith("ind") else word
        return inf if word.startswith("inf") else nan if word.startswith("nan") else 0.0
