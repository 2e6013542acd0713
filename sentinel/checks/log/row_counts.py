"""Recognises a count by its behaviour and its unit, if no word names it. Pure.

A row of measures begins with its count: `[12] auc: 0.55`, `  12  0.31  nan`. Whatever the measures
are called, the count is the whole number at the beginning that grows by equal amounts.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

_MONTH_REGEX = r"(?:[A-Z][a-z]{2},? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2},? (?:\d{4},? )?"
_LEAD_PATTERN = re.compile(
    rf"(?:\[?(?:{_MONTH_REGEX})?\d[\d:.,/TZ+-]{{4,40}}\]?[ \t|,-]{{1,4}}){{0,3}}"
    r"(?:[\[(]?(?:TRACE|DEBUG|INFO|WARN|WARNING|info|root)[\])]?[ :|-]{1,6}){0,2}[^\w\n]{0,30}"
)
"""What may stand before the first number of a row: a time, a level, brackets and blanks."""

_DECIMAL_REGEX = r"[-+]?(?:\d{1,30}\.\d{0,30}(?:[eE][-+]?\d{1,4})?|(?i:nan|inf)(?!\w))"
_UNIT_REGEX = (
    r"[ ]?(?:[mun]?s|secs?|seconds?|mins?|minutes?|hours?|hrs?|h|%|[kKMGTP]?i?B|[bB]ytes?|W|°?C)(?![\w/=:])"
    r"|[ ]?[A-Za-z][A-Za-z_]{0,11}/[A-Za-z]"
)
_UNIT_PATTERN = re.compile(_UNIT_REGEX)
_MEASURE_PATTERN = re.compile(
    rf"(?:(?<![\w.:/-])|(?<=[^\W\d]:)){_DECIMAL_REGEX}(?![\d.:])(?!{_UNIT_REGEX})"
)
"""A number with decimals that has no unit of time, of memory or of speed behind it."""

_RESOURCE_WORD_PATTERN = re.compile(
    r"(?i)(?:\w{0,30}_)?(?:elapsed|time|uptime|eta|secs?|seconds?|mins?|minutes?|hours?|mem|memory|rss|vram|bytes"
    r"|usage|port|pid|seed|size|fps|ips|tps|qps|speed|rate|lr|temp|temperature|power|util\w{0,9}|heartbeat|alive"
    r"|rank|node|worker|gpu|device|attempt|retry|remaining|left|alloc\w{0,6}|reserved|used|free)"
)
"""Words at numbers that say nothing of how far a training is, though they may grow."""

_CELL_PATTERN = re.compile(r"((?:[^\w\n+./-]|[-+](?![\d.n])){1,12})([-+]?[\w.]{1,12})")

MAX_SEARCHED_AFTER_CHARS = 400
"""How many characters behind a count are searched for a measure."""


def is_resource(word: str, after: str) -> bool:
    """Whether the number with this word before it, and this text behind it, is a time, an amount of memory
    or the like."""
    return _RESOURCE_WORD_PATTERN.fullmatch(word) is not None or (
        _UNIT_PATTERN.match(after) is not None
    )


def find_row_count(column: "Sequence[re.Match[str]]") -> str:
    """A pattern for this number of a row of measures. Empty if it is no count: it is not the first number,
    it does not grow by equal amounts, or nothing is measured behind it."""
    first = column[0]
    before, after = first.string[: first.start()], first.string[first.end() :]
    if not _LEAD_PATTERN.fullmatch(before) or not is_regular([one[0] for one in column]):
        return ""
    cell = _CELL_PATTERN.match(after)
    if cell is None or not _MEASURE_PATTERN.search(after[:MAX_SEARCHED_AFTER_CHARS]):
        return ""
    lead = r"[ \t]*".join(["", *map(_generalise_digits, before.split()), ""])
    return rf"^{lead}(\d+)(?!\d)" + _generalise_cell(cell)


def is_regular(told: Sequence[str]) -> bool:
    """Whether all are whole numbers, and at least half of the steps upwards are equal."""
    if not all(text.isdigit() for text in told):
        return False
    steps = [b - a for a, b in pairwise(map(int, told)) if b > a]
    return bool(steps) and 2 * Counter(steps).most_common(1)[0][1] >= len(steps)


def _generalise_digits(text: str) -> str:
    return r"\d+".join(map(re.escape, re.split(r"\d+", text)))


def _generalise_cell(cell: "re.Match[str]") -> str:
    between = r"[ \t]+".join(map(re.escape, re.split(r"[ \t]+", cell[1])))
    name = cell[2]
    number = name.lstrip("+-")[:1].isdigit() or name.lower().lstrip("+-") in ("nan", "inf")
    return between + (r"(?:[-+]?\d|[-+]?(?i:nan|inf))" if number else re.escape(name))
