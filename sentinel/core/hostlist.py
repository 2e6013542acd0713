"""Slurm's hostlists, both ways: `node-[0-3,7],gpu08` and the names that it stands for.

It reads them as src/common/hostlist.c of Slurm does (22.05 to 26.05, compared name by name); what
it refuses although Slurm takes it is in docs/slurm.md.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod

from sentinel.core.errors import Invalid
from sentinel.core.text import shortened, visible

MAX_NAMES = 100_000
"""Names one list may stand for: `n[0-9999][0-9999]` is a slip of the finger, not a cluster."""

MAX_RANGE_NUMBERS = 65_536
"""Numbers in one range, and in a bracket before the last one (MAX_RANGE and MAX_PREFIX_CNT of
hostlist.h): a cluster has no more nodes."""

_STRANGE_CHAR_PATTERN = re.compile(r"[^A-Za-z0-9._,\[\] \t-]")
_ITEM_REGEX = r"((?:[^,\[\] \t]|\[[^\[\]]*\]){0,%d})([ \t]*,[ \t]*|[ \t]+|$)"
_TYPED, _PRINTED = re.compile(_ITEM_REGEX % 253), re.compile(_ITEM_REGEX % 4096)
_BRACKET_PATTERN = re.compile(r"\[([^\[\]]*)\]")
_RANGE_PATTERN = re.compile(r"([0-9]{1,64})(?:-([0-9]{1,64}))?")
_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_NUMBERED_PATTERN = re.compile(r"(.*[^0-9])?([0-9]+)")
_LONG_NUMBER_PATTERN = re.compile(r"[0-9]{20,}\Z")
_MAX_NODE_NUMBER = (
    2**64 - 2
)  # hostlist.c keeps numbers in an unsigned long, and all ones mean "empty"

_Range = tuple[int, int, int]
"""First, last, and the width to which all are filled up with zeros: that of the first."""


def expand_hostlist(text: str) -> tuple[str, ...]:
    """The names, each once, in the order of `scontrol show hostnames`; Invalid for whatever is not
    plainly a list of nodes, before more than MOST names are made."""
    return tuple(dict.fromkeys(_expand_names(text)))


def expand_printed(text: str) -> tuple[str, ...]:
    """As `expand_hostlist`, for a list that Slurm printed: a name that Slurm takes and nobody else does
    (`-oProxyCommand=x`) stands for itself, so that it blinds no other. Never for what is typed."""
    if _NAME_PATTERN.fullmatch(text):  # one of 10,000 nodes, each in a record of its own
        return (text,)
    return tuple(dict.fromkeys(_expand_names(text, typed=False)))


def get_first_name(text: str) -> str:
    """The first of the names; Invalid as of `expand_hostlist`."""
    return next(_expand_names(text))


def check_name(name: str) -> str:
    """The name itself if it can be nothing but a node's: no option, user, path or command."""
    if not _is_node_name(name):
        raise Invalid(f"{_quote_text(name)} is no name of a node")
    return name


def fold_hostlist(names: Iterable[str]) -> str:
    """A short hostlist that stands for these names, each once, sorted: `expand_hostlist` and every Slurm
    read it alike. Brackets only where a name ends (slurm.conf(5), NodeName: `unit[0-31]rack` is
    invalid)."""
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
    """As `fold_hostlist`, for people to read: a name that only Slurm takes (`expand_printed`) stands for itself
    behind the others, so that it keeps nobody from being told of them."""
    every = list(dict.fromkeys(names))
    try:
        return fold_hostlist(every)
    except Invalid:
        odd = [name for name in every if not _is_node_name(name)]
        plain = fold_hostlist(set(every).difference(odd))
        return ",".join([*([plain] if plain else []), *(visible(name) for name in odd)])


def describe_nodes(names: Sequence[str]) -> str:
    """What a deed is about to touch: `5 nodes: node[18-19,110-112]`; the number is never cut."""
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
    """What stands between commas or blanks, brackets taken whole."""
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
    """`texts` stand before, between and behind the brackets. The last bracket runs fastest, then
    the first, the second and so on (_push_range_list() of hostlist.c)."""
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
    """`7` or `[08-10,12]`; a range goes on while the width of its first gives the next."""
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
