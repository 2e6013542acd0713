"""Follows the rows of a log: lines that differ only in their numbers. Pure.

A number may stand still while its training goes on: `epoch 0.02` is rounded, a pattern misses `18,160`, a
bar has another total. Then the other values of its rows still change. So a row of a kind that carried the
number, with values that are new and no clocks, is life too. Of a training that hangs, a timer may
draw its row again and again. So such a row counts only as long as the number does not stand for far more rows
than it ever did.
"""

import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.row_counts import is_resource

MAX_KINDS = 64
"""How many kinds of rows are remembered. The one that was not seen for longest makes room."""

MAX_KEPT_ROWS = 16
"""How many rows of a kind are remembered, as a hash of 32 bits each: a timer may draw those of several ranks."""

MAX_ROW_CHARS = 1000
"""How many characters of a row are read."""

SEARCHED_CHARS = 2**15
"""How many characters at the end of a text are searched for rows."""

MAX_KIND_CHARS = 160
"""How many characters of its words tell one kind of rows from another."""

MAX_WORD_CHARS, MAX_UNIT_CHARS = 60, 20
"""How many characters before a number may hold its word, and behind it its unit."""

MAX_VALUE_CHARS = 40
"""How many characters of a number are remembered."""

MIN_KNOWN_MOVES = 3
"""How often a number moves in rows of a kind before it is known for how many of them it usually stands."""

MIN_STANDING_ROWS, WHOLE_FACTOR, ROUNDED_FACTOR = 8, 4, 16
"""A number may stand for so many rows in any case, and for so many times as many as it did before. With
decimals it may be rounded: of three digits, ten is ten times as coarse as nine."""

_NO_WORDS_PATTERN = re.compile(r"\d[\w.,:+/-]*|(?<![^\W_])(?i:nan|inf)(?![^\W_])|[\W_]+")
_CLOCK_REGEX = (
    r"\d{4}[-/.]\d\d[-/.]\d\d|\d{1,3}(?::\d\d){1,2}(?:[.,]\d{1,9})?|\d{1,4}(?:h\d{1,2}m|m)\d{1,2}s?|1[5-9]\d{8}(?:\d{3}|\.\d{1,9})?(?!\d)"
    r"|0x[0-9a-f]{1,16}|\d{1,3}(?:\.\d{1,3}){3}"
)
_NUMBER_PATTERN = re.compile(
    rf"(?<!\w)(?:(?P<clock>{_CLOCK_REGEX})|[-+]?\d[\d.,_]*(?:[eE][-+]?\d{{1,4}})?|(?i:nan|inf)(?!\w))"
)
_WORD_PATTERN = re.compile(r"([^\W\d]\w{0,40})[^\w\n]{0,12}$")
_COUNT_PATTERN = re.compile(r"(?<![\w.,:/-])(\d{1,12})(?: ?/ ?| of )(\d{2,12})(?![\w%]|[.,:/-]\d)")


class RowKind(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is remembered of one kind of rows."""

    number: str  # Name of the number that they carry.
    value: str = ""  # The number on the last of them, as it is printed.
    run: int = 0  # Rows since it has this value.
    longest: int = 0  # The most rows for which it had another.
    moves: int = 0  # How often it moved from one of them to the next.
    chosen: bool = False  # Whether most rows were of this kind when the number was chosen.
    recent: tuple[int, ...] = ()  # Hashes of the values on the last rows since it moved.

    @property
    def carries(self) -> bool:
        """Whether its rows tell of the training's steps, and not only once by chance."""
        return self.chosen or self.moves > 1

    @property
    def may_stand(self) -> bool:
        """Whether the number does not stand for far more rows than it ever did."""
        factor = ROUNDED_FACTOR if "." in self.value else WHOLE_FACTOR
        most = max(MIN_STANDING_ROWS, factor * self.longest)
        return self.moves < MIN_KNOWN_MOVES or self.run <= most


class RowSpan(Struct, frozen=True, kw_only=True):
    """What one text shows of one kind of rows.

    runs: Each value of the number, as it is printed, and on how many rows in a row it stands: the first, the last, and
        the longest between them.
    moves: How often the number moved.
    recent: As in RowKind.
    """

    number: str
    rows: int = 0  # How many there are.
    runs: tuple[tuple[str, int], ...] = ()
    moves: int = 0
    recent: tuple[int, ...] = ()


def find_rows(
    text: str, number: str, told: Sequence[tuple[int, str]], carriers: Collection[str] = ()
) -> Iterator[tuple[str, RowSpan]]:
    """The kinds of the rows at the end of this text, and what they show. `told` has each place of the number
    with its value as it is printed. `carriers` are kinds whose rows count without the number too."""
    begin = text.find("\n", len(text) - SEARCHED_CHARS - 1) + 1 if len(text) > SEARCHED_CHARS else 0
    values = {text.rfind("\n", 0, at) + 1: value for at, value in told if at >= begin}
    moved = len({*values.values()}) > 1
    rows: dict[str, list[tuple[str, str]]] = {}
    for start in values if moved or not carriers else _find_line_starts(text, begin):
        line = text[start : start + MAX_ROW_CHARS].partition("\n")[0]
        kind = _name_kind(number, line)
        if start in values or kind in carriers:
            rows.setdefault(kind, []).append((values.get(start, "")[:MAX_VALUE_CHARS], line))
    for kind, those in [*rows.items()][-MAX_KINDS:]:
        yield kind, _sum_up(number, those, 1 if moved else MAX_KEPT_ROWS)


def add_rows(
    kinds: Mapping[str, RowKind], found: Sequence[tuple[str, RowSpan]]
) -> tuple[dict[str, RowKind], set[str]]:
    """The kinds after these further rows, and the names of the numbers whose rows show life."""
    known, alive = dict(kinds), set[str]()
    for name, span in found:
        before = known.pop(name, RowKind(number=span.number))
        if before.value or span.runs:
            after = known[name] = _add_span(before, span)
            new = after.moves > before.moves or not {*span.recent} <= {*before.recent}
            if new and after.carries and (after.may_stand or not span.runs):
                alive.add(span.number)
    first: dict[str, tuple[int, str]] = {}
    for name, span in found:
        if name in known:
            first[span.number] = max(first.get(span.number, (0, "")), (span.rows, name))
    chosen = {kind.number for kind in known.values() if kind.chosen}
    for number in first.keys() - chosen:
        known[first[number][1]] = replace(known[first[number][1]], chosen=True)
    spare = [name for name, kind in known.items() if not kind.chosen]
    return {n: known[n] for n in known if n not in spare[: max(0, len(known) - MAX_KINDS)]}, alive


def list_carriers(kinds: Mapping[str, RowKind]) -> tuple[str, ...]:
    """The kinds whose rows show life even without the number."""
    return tuple(name for name, kind in kinds.items() if kind.carries)


def find_counts(text: str, own: Collection[int]) -> Iterator[tuple[int, str, int]]:
    """Counts of a total at the end of this text, such as `12/500`: place, kind, value. Of each kind the first
    and the highest. `own` are the places of numbers that are followed already.

    Whatever is counted goes on until its total: an evaluation, parts of a file. A timer has no total."""
    kinds: dict[str, list[tuple[int, int]]] = {}
    for match in _COUNT_PATTERN.finditer(text, max(0, len(text) - SEARCHED_CHARS)):
        at, end = match.span()
        before = text[text.rfind("\n", 0, at) + 1 : at]
        after = text[end : end + MAX_UNIT_CHARS].partition("\n")[0]
        word = _WORD_PATTERN.search(before[-MAX_WORD_CHARS:])
        if at not in own and not is_resource(word[1] if word else "", after):
            kinds.setdefault(f"{_name_kind(match[2], before)}", []).append((int(match[1]), at))
    for kind, told in [*kinds.items()][-MAX_KINDS:]:
        for value, at in {told[0], max(told)}:
            yield at, kind, value


def hash_values(line: str) -> int:
    """The values on this row that are no clocks, rates, amounts of memory or the like, as one number."""
    values: list[str] = []
    end = 0
    for one in _NUMBER_PATTERN.finditer(line, 0, MAX_ROW_CHARS):
        word = _WORD_PATTERN.search(line, max(end, one.start() - MAX_WORD_CHARS), one.start())
        after = line[one.end() : one.end() + MAX_UNIT_CHARS]
        if not one["clock"] and not is_resource(word[1] if word else "", after):
            values.append(one[0])
        end = one.end()
    return crc32(" ".join(values).encode())


def _add_span(kind: RowKind, span: RowSpan) -> RowKind:
    recent, moves, runs = kind.recent, kind.moves, [*span.runs]
    if runs and runs[0][0] == kind.value:
        runs[0] = (kind.value, kind.run + runs[0][1])
    elif runs and kind.value:
        runs, moves = [(kind.value, kind.run), *runs], moves + 1
    if len(runs) > 1:
        recent = ()
    value, run = runs[-1] if runs else (kind.value, kind.run)
    kept = [one for one in recent if one not in span.recent]
    return replace(
        kind,
        value=value,
        run=run,
        longest=max([kind.longest, *(count for _, count in runs[:-1])]),
        moves=moves + span.moves,
        recent=(*kept, *span.recent)[-MAX_KEPT_ROWS:],
    )


def _sum_up(number: str, rows: Sequence[tuple[str, str]], kept: int) -> RowSpan:
    runs: list[tuple[str, int]] = []
    newest = deque[str](maxlen=kept)
    for value, line in rows:
        if value and runs and runs[-1][0] == value:
            runs[-1] = (value, runs[-1][1] + 1)
        elif value:
            runs.append((value, 1))
            newest.clear()
        newest.append(line)
    between = max(runs[1:-1], key=lambda run: run[1], default=None)
    return RowSpan(
        number=number,
        rows=len(rows),
        runs=(*runs[:1], *([between] if between else []), *runs[1:][-1:]),
        moves=max(0, len(runs) - 1),
        recent=tuple(dict.fromkeys(map(hash_values, newest))),
    )


def _name_kind(number: str, line: str) -> str:
    """What is the same for all rows of a kind: their words, without their numbers and signs."""
    words = _NO_WORDS_PATTERN.sub("", line)[:MAX_KIND_CHARS]
    return f"{crc32(f'{number} {words}'.encode(errors='replace')):x}"


def _find_line_starts(text: str, begin: int) -> Iterator[int]:
    while 0 <= begin < len(text):
        yield begin
        begin = text.find("\n", begin) + 1 or len(text)
