"""A number that advances in a log of any shape, found by looking. Pure.

Lines that differ in nothing but their numbers have one shape. In a shape that comes several times,
a whole number that only ever grows may be the progress; it is where a word for it stands before it.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

NEWEST = 2**17
"""Characters of the end that are looked at."""

LONGEST = 1000
"""Characters of a line."""

LINES = 5
"""Of one shape, before anything is concluded."""

_NUMBER = re.compile(r"(?:(?<![\w.:/-])|(?<=[^\W\d]:)|(?<=[^\W\d]['\"]:))\d{1,15}(?![\w:.-]*[\d:])")
_DIGITS = re.compile(r"\d[\d.,:e+-]*")
_WORD = re.compile(r"(?<![\w-])([^\W\d_][^\W\d]*)['\"]?[ =:\[(|#]{0,8}$")
_PROGRESS = re.compile(
    r"(?i)(?:num_|global_|train_)?"
    r"(?:steps?|iter|iters|iterations?|it|updates?|batch|epoch|samples?|tokens?|round|episode|trial)"
)


def advancing(text: str) -> tuple[bool, list[tuple[str, str]]]:
    """Numbers that only ever grow, as (name, pattern), the likeliest first, and whether the first
    is beyond doubt: a word for progress stands before it, and before no other one."""
    found: dict[tuple[str, str], int] = {}
    for lines in _shapes(text[-NEWEST:]):
        for name, pattern in _growing(lines):
            found[name, pattern] = found.get((name, pattern), 0) + len(lines)
    clear = [one for one in found if _PROGRESS.fullmatch(one[0]) and _still(one[1], text)]
    finest = _finest(clear, text)
    rest = sorted((one for one in found if one not in finest), key=lambda one: -found[one])
    return len(finest) == 1, [*finest, *rest][:3]


def _shapes(text: str) -> Iterator[list[str]]:
    shapes: dict[str, list[str]] = {}
    for line in text.splitlines()[1:]:
        if len(line) <= LONGEST and any(c.isdigit() for c in line):
            shapes.setdefault(_DIGITS.sub("0", line), []).append(line)
    yield from (lines for lines in shapes.values() if len(lines) >= LINES)


def _growing(lines: list[str]) -> Iterator[tuple[str, str]]:
    rows = [[*_NUMBER.finditer(line)] for line in lines]
    if len({len(row) for row in rows}) != 1:
        return
    for column in zip(*rows, strict=True):
        values = [int(match[0]) for match in column]
        steps = [b - a for a, b in pairwise(values)]
        word = _WORD.search(column[0].string[: column[0].start()])
        if word and min(steps) >= 0 and sum(step > 0 for step in steps) >= LINES - 1:
            yield word[1], _pattern(word)


def _pattern(word: "re.Match[str]") -> str:
    between = r"\s*".join(["", *map(re.escape, word[0][len(word[1]) :].strip()), ""])
    return rf"(?<![\w-]){word[1]}{between}(\d+)"


def _still(pattern: str, text: str) -> bool:
    """Whether all that the pattern finds in the text grows, whatever line it is in."""
    values = [int(value) for value in re.findall(pattern, text[-NEWEST:])]
    return values == sorted(values)


def _finest(clear: list[tuple[str, str]], text: str) -> list[tuple[str, str]]:
    """Of several on the same lines (epoch, step, samples) the first that moves with every line."""
    moves = {one: len({*re.findall(one[1], text[-NEWEST:])}) for one in clear}
    most = max(moves.values(), default=0)
    lively = [one for one in clear if moves[one] >= 0.9 * most]
    together = {len(re.findall(one[1], text[-NEWEST:])) for one in lively}
    return lively[:1] if len(together) == 1 else lively
