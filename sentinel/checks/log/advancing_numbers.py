"""Finds a number that advances in a log of any format. Pure.

Lines that differ only in their numbers have the same shape. If a shape occurs several times, a
whole number in it that only grows may be the progress, if a word for progress stands before it. A
count within an epoch starts again from time to time.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from string import ascii_letters
from typing import TypeVar

from sentinel.checks.log.bars import (
    NO_TRAINING_PATTERN,
    SCALE_FACTORS,
    parse_scaled_number,
)
from sentinel.checks.log.losses import has_loss
from sentinel.checks.log.progress_words import (
    FILLER_REGEX,
    FOLLOWING_WORD_PATTERN,
    GLUED_WORD_REGEX,
    PROGRESS_WORD_PATTERN,
    WEAK_WORD_PATTERN,
)
from sentinel.checks.log.row_counts import find_row_count, is_regular, is_resource
from sentinel.checks.log.table_columns import find_counted_columns

Found = TypeVar("Found")

LINES, CLEAR_LINES, FEW_LINES = 5, 3, 2
"""How many lines of one shape are needed to find a number: usually, at a word for progress with its
total behind it or a loss on its line, and in a log whose former number has ended."""

MAX_SEARCHED_CHARS = 2**17  # at the end of the log

MAX_HEADING_CHARS = 2**12  # at its beginning, where the words above the columns of a table stand

MAX_TRIED = 64
"""How many shapes, numbers and names are tried, the commonest. For each of them the log is searched."""

MAX_SHAPE_LINE_CHARS = 1000  # the longest line, in characters

MAX_CHARS_BEFORE = 40
"""How many characters before a number are searched for what it counts."""

MAX_WORD_CHARS, MAX_AFTER_CHARS = 80, 16
"""Characters before a number that may hold its word, and behind such a word that say what is done."""

MAX_STEPS_BEHIND = 2  # steps that a rank may be behind another whose lines stand between

MIN_STEPS_PER_RESTART = 4  # how often a number must grow on average before it starts again

_CJK_RANGES = "\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3"
"""Letters of languages that have no blanks beside a number."""

_NUMBER_PATTERN = re.compile(
    rf"(?:(?<![\w.:/-])|(?<=[{_CJK_RANGES}])|(?<=[^\W\d]:)|(?<=[^\W\d]['\"]:)|(?i:{GLUED_WORD_REGEX}))"
    r"(?:\d{1,3}(?:[,_'’]\d{3}){1,4}|\d{1,12}(?:\.\d{1,3})?[kKMBG](?![\w])|\d(?:\.\d{1,6})?e\+\d\d(?!\d)|\d{1,12}\.0{1,4}|\d{1,15})"
    rf"(?:(?=(?i:{FOLLOWING_WORD_PATTERN.pattern.removeprefix('(?i)')}))|(?=-\d{{1,12}}(?![\w.:/-]))|(?=[{_CJK_RANGES}])|(?![\w:.-]{{0,40}}\d|[\w-]| ?%))"
)

_VALUE_REGEX = rf"(?:\d{{1,3}}(?:[,_'’]\d{{3}}){{1,4}}(?![\d,_])|\d+)(?:\.\d+)?(?:e\+\d\d)?(?:[{''.join(SCALE_FACTORS)}](?!\w))?"

_RANGE_END_PATTERN = re.compile(r"-\d{1,12}(?![\w.:/-])")
"""`minibatches 40-49`: the last one counts."""

_OF_TOTAL_PATTERN = re.compile(r" {0,2}(?:/ {0,2}\d{2}|步|轮|次|[个個]?(?:epoch|批|迭代))")
"""What follows a count that is named by one letter: `i = 12 / 17800` (jcjohnson/torch-rnn,
train.lua), `第 12 步`."""

_TOTAL_PATTERN = re.compile(r" {0,2}(?:/|of) {0,2}(\d{1,15})(?![\w.:/-])")
"""What follows a count in the bars of other libraries than tqdm: rich, indicatif, alive-progress,
progressbar2."""

MAX_PLACE_CHARS = 3, 8
"""How many characters before and after a number identify it, if no word stands before it."""

COUNT_NAME, LONE_NAME, ROW_NAME = "count of a total", "number beside the loss", "round"
"""The names of numbers that have no word before them."""

_DIGITS_PATTERN = re.compile(r"(?:(?<![\w.-])[-+])?\d[\d.,:e+-]*")
_NAN_PATTERN = re.compile(r"(?<![\w.])[-+]?(?i:nan|inf)(?!\w)")
_PADDING_PATTERN = re.compile(r"[ \t]+")
_BLOCKS_REGEX = r"[\u2580-\u259f\u2800-\u28ff━╸╺]"
_BLOCKS_PATTERN = re.compile(rf"{_BLOCKS_REGEX}+ *")
_SAME_SIGNS_PATTERN = re.compile(r"([^\w\s])\1+")
"""What a bar is drawn with: blocks and dots of any width, or one sign again and again."""

_WORD_PATTERN = re.compile(
    rf"(?i)(?:(?<![\w-])|(?<=--))([^\W\d_](?:[^\W\d]*?[^\W\d_])??)(?:{FILLER_REGEX}['\"]?[ ,=:：\[(|#>→⇒\t_-]{{0,40}}(?:(?:(?<=['\"]: )|(?<==))[a-z][\w.]{{0,30}}\()?)['\"]?$"
)

_EPOCH_COUNT_PATTERN = re.compile(
    r"(?i)(?<![a-z])(?:train(?:ing)?|ep|epochs?)[ :=\[(#]{0,4}\d{1,9}(?:/\d{1,9})?[\]), :/|-]{1,6}[\[(]?(\d{1,9}) ?/ ?\d"
)
"""For example `[train: 17, 600 / 1000]` (pytracking, ltr/trainers/ltr_trainer.py), `Epoch 3
[600/1000]`."""

_FOLLOWING_PATTERN = re.compile(r"[^\d\n]{3,24}")


def find_advancing_numbers(
    text: str, lines: int = LINES, head: str = ""
) -> tuple[bool, list[tuple[str, str]]]:
    """Numbers that only ever grow, as (name, pattern), the likeliest first, and whether the first
    is beyond doubt: a word for progress stands before it, behind it or above it, and at no other one; else its
    total stands behind it; else it is the only one that grows on lines that tell a loss, whatever it is called.
    `head` is the beginning of the log, if the text is its end."""
    found: dict[tuple[str, str], int] = {}
    lone: set[tuple[str, str]] = set()
    beside: set[tuple[str, str]] = set()
    trained: set[tuple[str, str]] = set()
    nested: set[tuple[str, str]] = set()
    columns: list[tuple[list[str], bool, tuple[str, str, str]]] = []
    for shape in _group_by_shape(text, lines):
        growing = [*_find_growing_columns(shape, lines)]
        alone = len(growing) == 1 and has_loss(shape[0])
        columns += [(shape, alone, column) for column in growing]
    for shape, alone, (before, name, pattern) in _keep_commonest(columns, lambda one: len(one[0])):
        one = name, _pin_to_shape(pattern, shape[0], text)
        found[one] = found.get(one, 0) + len(shape)
        lone.update([one] if alone and not NO_TRAINING_PATTERN.search(name) else ())
        if NO_TRAINING_PATTERN.search(_cut_words_before(before)):
            beside.add(one)
            continue
        trained.add(one)
        if len(re.findall(one[1], text[-MAX_SEARCHED_CHARS:], re.M)) <= len(shape) + 1:
            nested.add(one)  # no other line tells it: it grows, or begins anew with another number
    fit = [
        one
        for one in found
        if one not in beside - trained and (one in nested or _is_growing_throughout(*one, text))
    ]
    ways: tuple[Callable[[], list[tuple[str, str]]], ...] = (
        lambda: [one for one in fit if PROGRESS_WORD_PATTERN.fullmatch(one[0])],
        lambda: _list_growing(find_counted_columns(_select_tables(text, head)), text, lines),
        lambda: _list_growing(_find_named_numbers(text), text, lines),
        lambda: [one for one in fit if WEAK_WORD_PATTERN.fullmatch(one[0])],
        lambda: [one for one in fit if one[0] == ROW_NAME],
        lambda: [one for one in fit if one[0] == COUNT_NAME],
        lambda: [one for one in fit if one in lone],
    )
    finest = _select_finest(next((told for way in ways if (told := way())), []), text)
    rest = sorted((one for one in found if one not in finest), key=lambda one: -found[one])
    return len(finest) == 1, [*finest, *rest][:3]


def _select_tables(text: str, head: str) -> str:
    """The end of the text, and the beginning of the log if it is not in it: a table may have its words only there."""
    if not head and len(text) <= MAX_SEARCHED_CHARS:
        return text
    return f"{(head or text)[:MAX_HEADING_CHARS]}\n{text[-MAX_SEARCHED_CHARS:]}"


def _list_growing(named: Iterable[tuple[str, str]], text: str, least: int) -> list[tuple[str, str]]:
    """The most frequent of the named numbers that have at least `least` different values and grow
    throughout."""
    counts = Counter(named)
    return [
        one
        for one in _keep_commonest([*counts], counts.__getitem__)
        if len({*re.findall(one[1], text[-MAX_SEARCHED_CHARS:], re.M)}) >= least
        and _is_growing_throughout(*one, text)
    ]


def _keep_commonest(found: Sequence[Found], count: Callable[[Found], int]) -> list[Found]:
    """The MAX_TRIED items with the highest counts, in their order."""
    best = sorted(range(len(found)), key=lambda at: -count(found[at]))[:MAX_TRIED]
    return [found[at] for at in sorted(best)]


def _find_named_numbers(text: str) -> Iterator[tuple[str, str]]:
    """Numbers at a word for progress, whatever else stands on their lines, which may be different each time."""
    for line in _list_searched_lines(text):
        for number in _find_numbers(line):
            named = _name_number(number)
            if (
                named
                and PROGRESS_WORD_PATTERN.fullmatch(named[1])
                and not NO_TRAINING_PATTERN.search(_cut_words_before(named[0]))
            ):
                yield named[1], named[2]


@lru_cache(maxsize=2000)
def _find_numbers(line: str) -> "tuple[re.Match[str], ...]":
    """The numbers of a line. Cached, because each line is searched twice."""
    return tuple(_NUMBER_PATTERN.finditer(line))


def _cut_words_before(before: str) -> str:
    """The words that say what a number counts, without names of loggers and runs before them."""
    return before.rstrip(": ").rpartition(": ")[2][-MAX_CHARS_BEFORE:]


def _list_searched_lines(text: str) -> list[str]:
    """The lines at the end of the text. Half a line at its beginning does no harm: its number is smaller than the next
    one. Long lines are not searched, nor those of MLPerf's library: their epochs and samples are those of evaluations,
    and their steps are known (`FALLBACK_TRAINERS`)."""
    lines = text[-MAX_SEARCHED_CHARS:].splitlines()
    return [one for one in lines if len(one) <= MAX_SHAPE_LINE_CHARS and ":::MLL" not in one]


def _group_by_shape(text: str, least: int) -> Iterator[list[str]]:
    shapes: dict[str, list[str]] = {}
    for line in _list_searched_lines(text):
        if _DIGITS_PATTERN.search(line):
            shapes.setdefault(_make_shape(line), []).append(line)
    yield from _keep_commonest(
        [same for same in shapes.values() if len(same) >= min(least, CLEAR_LINES)], len
    )


def _make_shape(line: str) -> str:
    """The line with each number as 0, however wide it is, and without signs: NaN is a number too. A bar is the
    same, however long it is."""
    shape = _NAN_PATTERN.sub("0", _DIGITS_PATTERN.sub("0", line))
    shape = _SAME_SIGNS_PATTERN.sub(r"\1", _BLOCKS_PATTERN.sub("█", shape))
    return _PADDING_PATTERN.sub(" ", shape)


def _find_growing_columns(lines: list[str], least: int) -> Iterator[tuple[str, str, str]]:
    """The text before each number that grows, the word at it, and a pattern for it."""
    columns = _list_columns(lines)
    told = [[one[0] for one in column] for column in columns]
    regular = [is_regular(one) and _is_growing([*map(parse_scaled_number, one)]) for one in told]
    for column in columns:
        values = [parse_scaled_number(match[0]) for match in column]
        named = _name_number(column[0])
        word = named[1] if named else ""
        known = PROGRESS_WORD_PATTERN.fullmatch(word) is not None
        grows = _is_growing(values, word) or (known and _begins_anew(values, columns))
        total = _find_total(column)
        total = total if known or len(total) > 1 else ""  # 1/3 without a word is no count
        clear = known and (total or has_loss(column[0].string))
        if not grows or _count_ups(values) < (min(least, CLEAR_LINES) if clear else least) - 1:
            continue
        after = column[0].string[column[0].end() :]
        if not known and is_resource(word, after):
            continue
        lone = regular.count(True) == 1
        if row := "" if total or not lone else find_row_count(column):
            yield "", ROW_NAME, row
        elif named and (known or not total or not has_loss(column[0].string)):
            yield named  # beside a loss, what has its total behind it needs no word
        elif count := _match_epoch_count(column[0]):
            yield column[0].string[: count.start()], "batch", _EPOCH_COUNT_PATTERN.pattern
        else:
            before = column[0].string[: column[0].start()]
            yield before, COUNT_NAME if total else LONE_NAME, _make_place_pattern(column[0])


def _list_columns(lines: list[str]) -> "list[list[re.Match[str]]]":
    """The whole numbers of lines of one shape, by their place. One that is whole on some of the lines, as of 3.0 and
    3.1, is none."""
    places: dict[int, list[re.Match[str]]] = {}
    for line in lines:
        starts = [one.start() for one in _DIGITS_PATTERN.finditer(line)]
        for number in _find_numbers(line):
            places.setdefault(bisect_right(starts, number.start()), []).append(number)
    most = min(max(map(len, places.values()), default=0), len(lines))
    return [column for _, column in sorted(places.items()) if len(column) == most]


def _name_number(number: "re.Match[str]") -> tuple[str, str, str] | None:
    """The text before it, the word at it, and a pattern for both; nothing where it has no word."""
    line, start = number.string, number.start()
    word = _WORD_PATTERN.search(line[max(0, start - MAX_WORD_CHARS) : start])
    following = FOLLOWING_WORD_PATTERN.match(line, number.end())
    glued = line[start - 1 : start] in {*"_-", *ascii_letters}
    if word and glued and line[max(0, start - len(word[0]) - 1)] == "/":
        return None  # a folder, such as a checkpoint's
    if following and not (word and PROGRESS_WORD_PATTERN.fullmatch(word[1])):
        if NO_TRAINING_PATTERN.search(line[following.end() : following.end() + MAX_AFTER_CHARS]):
            return None
        name = following[1].split()[-1]
        return line[:start], name, _make_following_pattern(line[:start], following)
    if word is None:
        return None
    if _RANGE_END_PATTERN.match(line, number.end()):
        return line[: start - len(word[0])], word[1], _make_number_pattern(word, r"\d+-")
    counted = len(word[1]) == 1 and _OF_TOTAL_PATTERN.match(line, number.end())
    return (
        line[: start - len(word[0])],
        "iteration" if counted else word[1],
        _make_number_pattern(word),
    )


def _find_total(column: "Sequence[re.Match[str]]") -> str:
    """The text after these numbers that names their total, such as `of 1000`. Empty unless it is
    the same after all of them."""
    totals = {
        total[1] if total else ""
        for total in (_TOTAL_PATTERN.match(one.string, one.end()) for one in column)
    }
    return totals.pop() if len(totals) == 1 else ""


def _make_place_pattern(number: "re.Match[str]") -> str:
    """A pattern for a number without a word, by the text around it."""
    line, (most_before, most_after) = number.string, MAX_PLACE_CHARS
    before = line[max(0, number.start() - most_before) : number.start()]
    after = line[number.end() : number.end() + most_after]
    start = "^" if number.start() <= most_before else ""
    return rf"{start}{_generalise(before)}(\d+){_generalise(after)}"


def _generalise(text: str) -> str:
    """A pattern for this text with any numbers and any spaces."""
    kinds = {"0": r"\d+", " ": r"\s+", "█": rf"{_BLOCKS_REGEX}*\s*"}
    plain = _BLOCKS_PATTERN.sub("█", re.sub(r"\d+", "0", text))
    return "".join(
        kinds.get(part[:1], re.escape(part))
        for part in re.split(r"([0 █])", re.sub(r"\s+", " ", plain))
        if part
    )


def _is_growing(values: Sequence[float], name: str = "") -> bool:
    """Whether they only ever grow, or fall back to where they began after several steps. Of a word for progress
    the lines of ranks may be mixed, one of which is a step behind another."""
    if PROGRESS_WORD_PATTERN.fullmatch(name):
        values = _drop_late_values(values)
    steps = [b - a for a, b in pairwise(values)]
    ups = _count_ups(values)
    falls = [b for a, b in pairwise(values) if b < a]
    near = min(values, default=0) + max((step for step in steps if step > 0), default=0)
    return len(falls) * MIN_STEPS_PER_RESTART <= ups and all(value <= near for value in falls)


def _begins_anew(values: Sequence[float], columns: "Sequence[Sequence[re.Match[str]]]") -> bool:
    """Whether another number on the same lines grows wherever this one falls, and falls nowhere: `epoch 3 iter 1`."""
    falls = [n for n, (a, b) in enumerate(pairwise(values)) if b < a]
    others = ([parse_scaled_number(one[0]) for one in column] for column in columns)
    return (
        len({*values}) >= MIN_STEPS_PER_RESTART - 1
        and len(falls) > 1
        and any(
            all(a <= b for a, b in pairwise(other)) and all(other[n] < other[n + 1] for n in falls)
            for other in others
        )
    )


def _count_ups(values: Sequence[float]) -> int:
    """How often they grow: what begins anew with each epoch may have few different values."""
    return sum(b > a for a, b in pairwise(values))


def _drop_late_values(values: Sequence[float]) -> Sequence[float]:
    """Drop those that a slower rank repeats a few steps later."""
    different = sorted({*values})
    if len(different) < MIN_STEPS_PER_RESTART + 1:
        return values
    step = min(b - a for a, b in pairwise(different))
    kept: list[float] = []
    for value in values:
        if not kept or value > kept[-1] or value < kept[-1] - MAX_STEPS_BEHIND * step:
            kept.append(value)
    return kept


def _make_number_pattern(word: "re.Match[str]", first: str = "") -> str:
    between = r"\s*".join(["", *map(re.escape, word[0][len(word[1]) :].strip()), ""])
    return rf"(?:(?<![\w-])|(?<=--)){word[1]}{between}{first}({_VALUE_REGEX})"


def _make_following_pattern(before: str, following: "re.Match[str]") -> str:
    """A pattern for a number by the word behind it, and what stands directly before it."""
    start = _generalise(before[-MAX_PLACE_CHARS[0] :])
    return rf"{start}({_VALUE_REGEX}){_generalise(following[0])}(?!\w)"


def _match_epoch_count(number: "re.Match[str]") -> "re.Match[str] | None":
    """A match if the number counts the batches of an epoch, and the epoch's own number stands
    before it."""
    return next(
        (
            match
            for match in _EPOCH_COUNT_PATTERN.finditer(number.string)
            if match.start(1) == number.start()
        ),
        None,
    )


def _pin_to_shape(pattern: str, line: str, text: str) -> str:
    """The pattern, with the text after the number, if other lines have other numbers after the same
    word.

    Examples are `step 204 - loss` beside `Checkpoint at step 192`, and `epoch 28/40` before `best epoch 22`.
    """
    match = re.search(pattern, line)
    if match is None or _is_growing_throughout("", pattern, text):
        return pattern
    if _TOTAL_PATTERN.match(line, match.end()):
        return rf"{pattern} {{0,2}}(?:/|of) {{0,2}}\d"
    following = _FOLLOWING_PATTERN.match(line, match.end())
    end = r"\s+".join(map(re.escape, following[0].split())) if following else ""
    return rf"{pattern}\s*{end}" if end else pattern


def _is_growing_throughout(name: str, pattern: str, text: str) -> bool:
    """Whether all that the pattern finds in the text grows, whatever line it is in."""
    told = re.findall(pattern, text[-MAX_SEARCHED_CHARS:], re.M)
    return _is_growing([parse_scaled_number(value) for value in told], name)


def _count_the_same(told: Sequence[Sequence[str]]) -> bool:
    """Whether all these numbers have nearly the same values: an epoch that its training and its validation tell."""
    values = [{*map(parse_scaled_number, one)} for one in told]
    every = set[float]().union(*values)
    return bool(every) and all(len(every - one) <= max(1, len(every) // 10) for one in values)


def _find_last_place(pattern: str, text: str) -> int:
    """Where its last number begins: what was told last says how far it is, also where it begins anew."""
    found = re.finditer(pattern, text[-MAX_SEARCHED_CHARS:], re.M)
    return max((match.start(1) for match in found), default=-1)


def _select_finest(clear: list[tuple[str, str]], text: str) -> list[tuple[str, str]]:
    """The numbers that change nearly as often as the one that changes most, because an epoch begins
    its steps anew. Of several on the same lines the first one is selected, or one that is called
    global."""
    told = {one: re.findall(one[1], text[-MAX_SEARCHED_CHARS:], re.M) for one in clear}
    moves = {one: sum(a != b for a, b in pairwise(values)) for one, values in told.items()}
    most = max(moves.values(), default=0)
    lively = [one for one in clear if moves[one] >= 0.9 * most]
    lively.sort(key=lambda one: "global" not in one[0].lower())
    places = {one: _find_last_place(one[1], text) for one in lively}
    begin, end = min(places.values(), default=0), max(places.values(), default=0)
    apart = "\n" in text[-MAX_SEARCHED_CHARS:][begin:end]
    if apart and _count_the_same([told[one] for one in lively]):
        return [max(lively, key=places.__getitem__)]
    if len({len(told[one]) for one in lively}) == 1:
        return lively[:1]
    finer = [one for one in lively if "epoch" not in one[0].lower()]
    return finer if len(finer) == 1 else lively  # an epoch is told by other lines as well
