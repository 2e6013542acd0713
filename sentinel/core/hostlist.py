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

MOST = 100_000
"""Names one list may stand for: `n[0-9999][0-9999]` is a slip of the finger, not a cluster."""

WIDEST = 65_536
"""Numbers in one range, and in a bracket before the last one (MAX_RANGE and MAX_PREFIX_CNT of
hostlist.h): a cluster has no more nodes."""

_STRANGE = re.compile(r"[^A-Za-z0-9._,\[\] \t-]")
_ITEM = r"((?:[^,\[\] \t]|\[[^\[\]]*\]){0,%d})([ \t]*,[ \t]*|[ \t]+|$)"
_TYPED, _PRINTED = re.compile(_ITEM % 253), re.compile(_ITEM % 4096)
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,64})(?:-([0-9]{1,64}))?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_NUMBERED = re.compile(r"(.*[^0-9])?([0-9]+)")
_LONG = re.compile(r"[0-9]{20,}\Z")
_LARGEST = 2**64 - 2  # hostlist.c keeps numbers in an unsigned long, and all ones mean "empty"

_Range = tuple[int, int, int]
"""First, last, and the width to which all are filled up with zeros: that of the first."""


def expand(text: str) -> tuple[str, ...]:
    """The names, each once, in the order of `scontrol show hostnames`; Invalid for whatever is not
    plainly a list of nodes, before more than MOST names are made."""
    return tuple(dict.fromkeys(_names(text)))


def printed(text: str) -> tuple[str, ...]:
    """As `expand`, for a list that Slurm printed: a name that Slurm takes and nobody else does
    (`-oProxyCommand=x`) stands for itself, so that it blinds no other. Never for what is typed."""
    if _NAME.fullmatch(text):  # one of 10,000 nodes, each in a record of its own
        return (text,)
    return tuple(dict.fromkeys(_names(text, typed=False)))


def first(text: str) -> str:
    """The first of the names; Invalid as of `expand`."""
    return next(_names(text))


def check_name(name: str) -> str:
    """The name itself if it can be nothing but a node's: no option, user, path or command."""
    if not _is_name(name):
        raise Invalid(f"{_quoted(name)} is no name of a node")
    return name


def fold(names: Iterable[str]) -> str:
    """A short hostlist that stands for these names, each once, sorted: `expand` and every Slurm
    read it alike. Brackets only where a name ends (slurm.conf(5), NodeName: `unit[0-31]rack` is
    invalid)."""
    plain, numbers = set[str](), dict[str, set[str]]()
    for name in names:
        numbered = _NUMBERED.fullmatch(check_name(name))
        if numbered:
            numbers.setdefault(numbered[1] or "", set()).add(numbered[2])
        else:
            plain.add(name)
    folded = {prefix: _folded(found) for prefix, found in numbers.items()}
    items = [(prefix, f"{prefix}{text}") for prefix, text in folded.items()]
    return ",".join(item for _, item in sorted([*items, *((name, name) for name in plain)]))


def shown(names: Iterable[str]) -> str:
    """As `fold`, for people to read: a name that only Slurm takes (`printed`) stands for itself
    behind the others, so that it keeps nobody from being told of them."""
    every = list(dict.fromkeys(names))
    try:
        return fold(every)
    except Invalid:
        odd = [name for name in every if not _is_name(name)]
        plain = fold(set(every).difference(odd))
        return ",".join([*([plain] if plain else []), *(visible(name) for name in odd)])


def counted(names: Sequence[str]) -> str:
    """What a deed is about to touch: `5 nodes: node[18-19,110-112]`; the number is never cut."""
    return f"{len(names)} node{'' if len(names) == 1 else 's'}: {shortened(shown(names), 1000)}"


def _is_name(name: str) -> bool:
    if not _NAME.fullmatch(name):
        return False
    numbered = _LONG.search(name)
    return numbered is None or int(numbered[0]) <= _LARGEST


def _names(text: str, *, typed: bool = True) -> Iterator[str]:
    compact = text.strip()
    if not compact:
        raise Invalid("no node is named; write nodes like node-[0-3],gpu08")
    if typed and (strange := _STRANGE.search(compact)):
        raise Invalid(f"{_quoted(compact)} is no list of nodes: {strange[0]!r} is in no node name")
    left = MOST
    for item in _items(compact, _TYPED if typed else _PRINTED):
        brackets = [_ranges(inside, compact) for inside in _BRACKET.findall(item)]
        left -= prod(map(_size, brackets))
        if any(_size(outer) > WIDEST for outer in brackets[:-1]):
            raise Invalid(_too_wide(compact))
        if left < 0:
            raise Invalid(f"{_quoted(compact)} stands for more than {MOST} nodes")
        names = _unfolded(_BRACKET.split(item)[::2], brackets)
        yield from map(check_name, names) if typed else names


def _items(text: str, form: "re.Pattern[str]") -> Iterator[str]:
    """What stands between commas or blanks, brackets taken whole."""
    place, more = 0, True
    while more:
        match = form.match(text, place)
        if not match or not match[1]:
            why = "a name or a bracket is missing, or a name is too long"
            raise Invalid(f"{_quoted(text)} is no list of nodes: {why}")
        yield match[1]
        place, more = match.end(), bool(match[2])


def _ranges(inside: str, text: str) -> list[_Range]:
    if inside.count(",") >= MOST:
        raise Invalid(f"{_quoted(text)} stands for more than {MOST} nodes")
    return [_range(part, text) for part in inside.split(",")]


def _range(part: str, text: str) -> _Range:
    match = _RANGE.fullmatch(part)
    if not match:
        why = f"{shortened(part, 40)!r} is no range of numbers"
        raise Invalid(f"{_quoted(text)} is no list of nodes: {why}")
    low, last = int(match[1]), int(match[2] or match[1])
    if last < low:
        raise Invalid(f"{_quoted(text)} is no list of nodes: the range {part} runs backwards")
    if last - low >= WIDEST:
        raise Invalid(_too_wide(text))
    return low, last, len(match[1])


def _too_wide(text: str) -> str:
    return f"{_quoted(text)} is no list of nodes: Slurm takes at most {WIDEST} numbers in a range"


def _size(ranges: Iterable[_Range]) -> int:
    return sum(last - low + 1 for low, last, _ in ranges)


def _unfolded(texts: Sequence[str], brackets: Sequence[Iterable[_Range]]) -> Iterator[str]:
    """`texts` stand before, between and behind the brackets. The last bracket runs fastest, then
    the first, the second and so on (_push_range_list() of hostlist.c)."""
    if not brackets:
        yield texts[0]
        return
    *outer, inner = [[*_numbers(ranges)] for ranges in brackets]
    for chosen in product(*outer[::-1], inner):
        numbers = (*chosen[-2::-1], chosen[-1])
        yield "".join(t + n for t, n in zip(texts, (*numbers, ""), strict=True))


def _numbers(ranges: Iterable[_Range]) -> Iterator[str]:
    for low, last, width in ranges:
        yield from (str(number).zfill(width) for number in range(low, last + 1))


def _folded(numbers: Iterable[str]) -> str:
    """`7` or `[08-10,12]`; a range goes on while the width of its first gives the next."""
    runs: list[list[str]] = []
    for number in sorted(numbers, key=lambda n: (int(n), len(n))):
        if runs and _follows(number, runs[-1]):
            runs[-1][1] = number
        else:
            runs.append([number, number])
    parts = [low if low == last else f"{low}-{last}" for low, last in runs]
    return parts[0] if len(runs) == 1 and "-" not in parts[0] else f"[{','.join(parts)}]"


def _follows(number: str, run: Sequence[str]) -> bool:
    low, last = run
    return number == str(int(last) + 1).zfill(len(low)) and int(number) - int(low) < WIDEST


def _quoted(text: str) -> str:
    return repr(shortened(text, 60))
