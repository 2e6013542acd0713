"""Converts Slurm's host lists to names and back, e.g. `node-[0-3,7],gpu08`.

It reads them like src/common/hostlist.c of Slurm (22.05 to 26.05, compared name by name).
docs/slurm.md has the lists that it refuses although Slurm accepts them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod

from sentinel.core.errors import Invalid
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.text import shortened, visible

MAX_NAMES = 100_000
"""How many names one list may stand for. `n[0-9999][0-9999]` is a typing error, not a cluster."""

MAX_RANGE_NUMBERS = 65_536
"""How many numbers one range may have, and a bracket that is not the last one (MAX_RANGE and
MAX_PREFIX_CNT of hostlist.h). A cluster has no more nodes."""

_STRANGE_CHAR_PATTERN = lazy_pattern(r"[^A-Za-z0-9._,\[\] \t-]")
_ITEM_REGEX = r"((?:[^,\[\] \t]|\[[^\[\]]*\]){0,%d})([ \t]*,[ \t]*|[ \t]+|$)"
_TYPED, _PRINTED = lazy_pattern(_ITEM_REGEX % 253), lazy_pattern(_ITEM_REGEX % 4096)
_BRACKET_PATTERN = lazy_pattern(r"\[([^\[\]]*)\]")
_RANGE_PATTERN = lazy_pattern(r"([0-9]{1,64})(?:-([0-9]{1,64}))?")
_NAME_PATTERN = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_NUMBERED_PATTERN = lazy_pattern(r"(.*[^0-9])?([0-9]+)")
_LONG_NUMBER_PATTERN = lazy_pattern(r"[0-9]{20,}\Z")
_MAX_NODE_NUMBER = (
    2**64 - 2
)  # hostlist.c stores numbers as unsigned long, and all bits set means "empty"

_Range = tuple[int, int, int]
"""First number, last number, and the width to which all are padded with zeros (that of the
first)."""


def expand_hostlist(text: str) -> tuple[str, ...]:
    """The names, each once, in the order of `scontrol show hostnames`.

    Raises Invalid if the text is not a list of nodes, or stands for more than MAX_NAMES names."""
    return tuple(dict.fromkeys(_expand_names(text)))


def expand_printed(text: str) -> tuple[str, ...]:
    """As `expand_hostlist`, for a list that Slurm printed. Never use it for text that a person
    typed.

    A name that is valid for Slurm alone (`-oProxyCommand=x`) is kept as it is, so that one such
    name does not hide the other nodes."""
    if _NAME_PATTERN.fullmatch(text):  # fast path, e.g. for 10,000 records with one node each
        return (text,)
    return tuple(dict.fromkeys(_expand_names(text, typed=False)))


def get_first_name(text: str) -> str:
    """The first of the names. Raises Invalid like `expand_hostlist`."""
    return next(_expand_names(text))


def check_name(name: str) -> str:
    """Return the name if it can only be a node's, and not an option, user, path or command.

    Raises Invalid for any other."""
    if not _is_node_name(name):
        raise Invalid(f"{_quote_text(name)} is no name of a node")
    return name


def fold_hostlist(names: Iterable[str]) -> str:
    """A short, sorted hostlist that stands for these names. `expand_hostlist` and every version of
    Slurm
    read it alike: brackets are only at the end of a name (slurm.conf(5), NodeName:
    `unit[0-31]rack` is invalid). Raises Invalid for a name that cannot be a node's."""
    plain, numbers = set[str](), dict[str, set[str]]()
    for name in names:
        numbered = _NUMBERED_PATTERN.fullmatch(check_name(name))
        if numbered:
            numbers.setdefault(numbered[1] or "", set()).add(numbered[2])
        else:
            plain.add(name)
    folded = {prefix: _fold_numbers(found) for prefix, found in numbers.items()}
    items = [(prefix, f"{prefix}{text}") for prefix, text in folded.items()]
    return ",".join(item for _, item in sorted([*items, *((name, name) for name in plain)]))


def fold_for_people(names: Iterable[str]) -> str:
    """As `fold_hostlist`, for people to read; never raises. A name that is valid for Slurm alone
    (see `expand_printed`) is appended as it is, escaped."""
    every = list(dict.fromkeys(names))
    try:
        return fold_hostlist(every)
    except Invalid:
        odd = [name for name in every if not _is_node_name(name)]
        plain = fold_hostlist(set(every).difference(odd))
        return ",".join([*([plain] if plain else []), *(visible(name) for name in odd)])


def describe_nodes(names: Sequence[str]) -> str:
    """Number and names of the nodes that an action is about to change: `5 nodes:
    node[18-19,110-112]`. The names may be cut, the number never."""
    return f"{len(names)} node{'' if len(names) == 1 else 's'}: {shortened(fold_for_people(names), 1000)}"


def _is_node_name(name: str) -> bool:
    if not _NAME_PATTERN.fullmatch(name):
        return False
    numbered = _LONG_NUMBER_PATTERN.search(name)
    return numbered is None or int(numbered[0]) <= _MAX_NODE_NUMBER


def _expand_names(text: str, *, typed: bool = True) -> Iterator[str]:
    compact = text.strip()
    if not compact:
        raise Invalid("no node is named; write nodes like node-[0-3],gpu08")
    if typed and (strange := _STRANGE_CHAR_PATTERN.search(compact)):
        raise Invalid(
            f"{_quote_text(compact)} is no list of nodes: {strange[0]!r} is in no node name"
        )
    left = MAX_NAMES
    for item in _split_items(compact, _TYPED if typed else _PRINTED):
        brackets = [_parse_ranges(inside, compact) for inside in _BRACKET_PATTERN.findall(item)]
        left -= prod(map(_count_numbers, brackets))
        if any(_count_numbers(outer) > MAX_RANGE_NUMBERS for outer in brackets[:-1]):
            raise Invalid(_explain_too_wide(compact))
        if left < 0:
            raise Invalid(f"{_quote_text(compact)} stands for more than {MAX_NAMES} nodes")
        names = _combine_names(_BRACKET_PATTERN.split(item)[::2], brackets)
        yield from map(check_name, names) if typed else names


def _split_items(text: str, form: "re.Pattern[str]") -> Iterator[str]:
    """The items between commas or blanks; a bracket is never split. Raises Invalid."""
    place, more = 0, True
    while more:
        match = form.match(text, place)
        if not match or not match[1]:
            why = "a name or a bracket is missing, or a name is too long"
            raise Invalid(f"{_quote_text(text)} is no list of nodes: {why}")
        yield match[1]
        place, more = match.end(), bool(match[2])


def _parse_ranges(inside: str, text: str) -> list[_Range]:
    if inside.count(",") >= MAX_NAMES:
        raise Invalid(f"{_quote_text(text)} stands for more than {MAX_NAMES} nodes")
    return [_parse_range(part, text) for part in inside.split(",")]


def _parse_range(part: str, text: str) -> _Range:
    match = _RANGE_PATTERN.fullmatch(part)
    if not match:
        why = f"{shortened(part, 40)!r} is no range of numbers"
        raise Invalid(f"{_quote_text(text)} is no list of nodes: {why}")
    low, last = int(match[1]), int(match[2] or match[1])
    if last < low:
        raise Invalid(f"{_quote_text(text)} is no list of nodes: the range {part} runs backwards")
    if last - low >= MAX_RANGE_NUMBERS:
        raise Invalid(_explain_too_wide(text))
    return low, last, len(match[1])


def _explain_too_wide(text: str) -> str:
    return f"{_quote_text(text)} is no list of nodes: Slurm takes at most {MAX_RANGE_NUMBERS} numbers in a range"


def _count_numbers(ranges: Iterable[_Range]) -> int:
    return sum(last - low + 1 for low, last, _ in ranges)


def _combine_names(texts: Sequence[str], brackets: Sequence[Iterable[_Range]]) -> Iterator[str]:
    """All names. `texts` are the parts before, between and behind the brackets. The numbers of the
    last bracket change fastest, then those of the first, the second and so on
    (_push_range_list() of hostlist.c)."""
    if not brackets:
        yield texts[0]
        return
    *outer, inner = [[*_list_numbers(ranges)] for ranges in brackets]
    for chosen in product(*outer[::-1], inner):
        numbers = (*chosen[-2::-1], chosen[-1])
        yield "".join(t + n for t, n in zip(texts, (*numbers, ""), strict=True))


def _list_numbers(ranges: Iterable[_Range]) -> Iterator[str]:
    for low, last, width in ranges:
        yield from (str(number).zfill(width) for number in range(low, last + 1))


def _fold_numbers(numbers: Iterable[str]) -> str:
    """The numbers as one number or a bracket: `7` or `[08-10,12]`. A range continues as long as the
    next number is there, padded to the width of the first."""
    runs: list[list[str]] = []
    for number in sorted(numbers, key=lambda n: (int(n), len(n))):
        if runs and _is_next_number(number, runs[-1]):
            runs[-1][1] = number
        else:
            runs.append([number, number])
    parts = [low if low == last else f"{low}-{last}" for low, last in runs]
    return parts[0] if len(runs) == 1 and "-" not in parts[0] else f"[{','.join(parts)}]"


def _is_next_number(number: str, run: Sequence[str]) -> bool:
    low, last = run
    return (
        number == str(int(last) + 1).zfill(len(low)) and int(number) - int(low) < MAX_RANGE_NUMBERS
    )


def _quote_text(text: str) -> str:
    return repr(shortened(text, 60))
