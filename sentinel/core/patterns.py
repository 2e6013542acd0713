"""Regular expressions that people write: with the meaning of `re`, and an end.

What is shown harmless is a plain `re.Pattern`. Anything else becomes a Guarded, which has the
same methods: it is written anew for the `regex` library, whose search can be given up, and a
search without an end raises CannotTell. Patterns that are sentinel's own need none of this.
"""

import re
import time
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import prod
from typing import Any, cast

from sentinel.core.errors import CannotTell

LIMIT = 2.0
"""Seconds that one search through one block of text may take: a MiB of a log takes milliseconds."""

REST = 60.0
"""Seconds in which a pattern that ran out of time is not tried again: each try costs LIMIT."""


class Guarded:
    """The part of `re.Pattern` that sentinel uses, for a pattern that may search without an end.

    `where`: file:line of the configuration, or empty. Every search raises CannotTell after LIMIT.
    """

    def __init__(self, plain: "re.Pattern[str]", where: str, limit: float = LIMIT) -> None:
        self.pattern, self.flags = plain.pattern, plain.flags
        self.groups, self.groupindex = plain.groups, plain.groupindex
        self.where, self._limit = where, limit
        self._tired = float("-inf")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guarded) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def search(self, text: str) -> "re.Match[str] | None":
        """As `re.Pattern.search`."""
        return cast("re.Match[str] | None", self._within("search", text))

    def match(self, text: str) -> "re.Match[str] | None":
        """As `re.Pattern.match`."""
        return cast("re.Match[str] | None", self._within("match", text))

    def fullmatch(self, text: str) -> "re.Match[str] | None":
        """As `re.Pattern.fullmatch`."""
        return cast("re.Match[str] | None", self._within("fullmatch", text))

    def finditer(self, text: str) -> "Iterator[re.Match[str]]":
        """As `re.Pattern.finditer`, but all of them are found at once, within one LIMIT."""
        return iter(cast("list[re.Match[str]]", self._within("finditer", text)))

    def _within(self, name: str, text: str) -> Any:
        if time.monotonic() - self._tired < REST:
            raise endless(self, self._limit)
        strange = frozenset(c for c in text if c > "\x7f") if not text.isascii() else frozenset()
        try:
            search = getattr(_made(self.pattern, self.flags, strange), name)
            found = search(text, timeout=self._limit, concurrent=True)
            return list(found) if name == "finditer" else found
        except TimeoutError:
            self._tired = time.monotonic()
            raise endless(self, self._limit) from None

    def _key(self) -> tuple[str, int, str]:
        return self.pattern, self.flags, self.where


def endless(pattern: "re.Pattern[str] | Guarded", limit: float = LIMIT) -> CannotTell:
    """What is said of a pattern whose search was given up, with its place in the configuration."""
    where, text = getattr(pattern, "where", ""), pattern.pattern
    place = f" ({where})" if where else ""
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return CannotTell(
        f"the regular expression {shown!r}{place} found no end within {limit:g} s; write "
        "it without a repetition inside a repetition, and with fixed text before .* and +"
    )


@lru_cache(maxsize=1024)
def compiled(text: str, flags: int = 0, where: str = "") -> "re.Pattern[str]":
    """The pattern as `re` understands it, a Guarded where it may search without an end.

    Raises what re.compile raises, and re.error for the few forms that cannot be guarded.
    """
    plain = re.compile(text, flags)
    if harmless(text, plain.flags):
        return plain
    try:
        _made(text, plain.flags, frozenset())
    except Unsure as error:
        raise re.error(f"it may search without an end, and {error}") from None
    return cast("re.Pattern[str]", Guarded(plain, where))


def by_line(pattern: "re.Pattern[str]") -> "re.Pattern[str]":
    """The same pattern where `^` and `$` mean the lines of a text."""
    flags = pattern.flags | re.MULTILINE
    return compiled(pattern.pattern, flags, getattr(pattern, "where", ""))


@lru_cache(maxsize=256)
def _made(text: str, flags: int, strange: frozenset[str]) -> Any:
    """For texts of ASCII and the characters in `strange`; those `re` itself puts into classes."""
    import regex

    return regex.compile(rewritten(text, flags, strange), regex.V0)


# What a regular expression can cost, and the same expression in few words. Pure.
#
# Both read the tree that `re` itself makes of it (Lib/re/_parser.py of CPython), so that nothing is
# parsed a second way. It is no public interface: a form that is not known here is not harmless, and
# is not rewritten.


try:
    from re import _compiler, _parser  # type: ignore[attr-defined]
except ImportError:  # before Python 3.11
    import sre_compile as _compiler
    import sre_parse as _parser

MOST = 32
"""Steps that a harmless pattern may take at each place of a text, beside its one open run."""

_ASCII = frozenset(map(chr, range(128)))
_WITNESSES = _ASCII | {*"\u0663\u00a0é█ſKİı"}
"""ASCII, and outside of it one of each kind that `re` tells apart: a digit, a space, a letter,
anything else, and the letters that (?i) takes for ASCII ones (Lib/re/_casefix.py)."""

_SINGLE = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
_REPEATS = {"MAX_REPEAT": "", "MIN_REPEAT": "?", "POSSESSIVE_REPEAT": "+"}
_SCOPED = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.ASCII
_OPEN = 100
"""Repetitions from which on a run counts as open."""


class Unsure(ValueError):
    """The pattern holds what may mean something else in another library."""


Chars = frozenset[str]
Node = tuple[Any, Any]


def harmless(text: str, flags: int) -> bool:
    """Whether the time of a search is surely in proportion to the text; in doubt it is not.

    Every open run (`\\d+`) ends at a character that it cannot hold itself, and something before
    it cannot lie within it: then no text is looked through twice. Or it begins where a character
    stands that it cannot hold (`^.*`): then runs do not overlap, and as what follows is looked for
    once at each of their places, that has to be harmless alone.
    """
    tree = _tree(text, flags)
    nodes = list(tree)
    if len(nodes) == 1 and str(nodes[0][0]) == "BRANCH" and len(nodes[0][1][1]) <= 8:
        return all(_linear(list(one), tree.state.flags) for one in nodes[0][1][1])
    return _linear(nodes, tree.state.flags)


def rewritten(text: str, flags: int, strange: Chars = frozenset()) -> str:
    """The same pattern of groups, repetitions and classes only, all flags worked in: it means the
    same for texts of ASCII and `strange`. Raises Unsure."""
    tree = _tree(text, flags)
    return "".join(_written(list(tree), tree.state.flags, _ASCII | strange))


def _tree(text: str, flags: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _parser.parse(text, flags & ~re.DEBUG)


class _Piece:
    """A part that has its place in a sequence: `chars` may begin it; `open`: it has no end of its
    own; `cost`: steps at one place; `must`: it cannot be empty."""

    __slots__ = ("chars", "cost", "must", "open")

    def __init__(self, chars: Chars, must: bool, cost: int = 1, open_: bool = False) -> None:
        self.chars, self.must, self.cost, self.open = chars, must, cost, open_


def _linear(nodes: list[Node], flags: int) -> bool:
    try:
        pieces = list(_pieces(nodes, flags))
    except Unsure:
        return False
    return prod(piece.cost for piece in pieces) <= MOST and _once(pieces)


def _once(pieces: list[_Piece], *, within: bool = False) -> bool:
    """Whether no text is looked through twice. `within`: it follows a run, which tries again where
    a last run (`.*`) does not end as is wanted: such a one needs its own beginning too."""
    for n, piece in enumerate(pieces):
        before, behind = pieces[:n], pieces[n + 1 :]
        if not piece.open or not (behind or within):
            continue
        begins = any(p.must and not p.open and not p.chars & piece.chars for p in before)
        ends = _first(behind) if behind else frozenset[str]()
        if not begins or ends is None or ends & piece.chars:
            return _apart(before, piece) and _once(behind, within=True)
    return True


def _apart(before: list[_Piece], run: _Piece) -> bool:
    """Whether such a run begins only where no other can be: right behind what it cannot hold."""
    if not before or any(p.open for p in before):
        return False
    return before[-1].must and not before[-1].chars & run.chars


def _first(pieces: list[_Piece]) -> Chars | None:
    """The characters that may come first; None where all may be empty."""
    found: Chars = frozenset()
    for piece in pieces:
        found |= piece.chars
        if piece.must:
            return found
    return None


def _pieces(nodes: Iterable[Node], flags: int) -> Iterator[_Piece]:
    for op, value in nodes:
        name = str(op)
        if name in _SINGLE:
            yield _Piece(_held((op, value), flags), must=True)
        elif name == "SUBPATTERN":
            yield from _pieces(value[3], _under(flags, value[1], value[2]))
        elif name in _REPEATS:
            yield _repeat(value, flags)
        elif name == "AT":
            yield _edge(str(value), flags)
        elif name == "BRANCH":
            several = [list(_pieces(one, flags)) for one in value[1]]
            first = [_first(one) for one in several]
            chars = frozenset[str]().union(*(c for one in several for p in one for c in [p.chars]))
            yield _Piece(chars, None not in first, sum(map(_closed, several)))
        else:
            raise Unsure(name)


def _repeat(value: Any, flags: int) -> _Piece:
    least, most, body = value
    if len(body) == 1 and str(body[0][0]) in _SINGLE:
        chars = _held(body[0], flags)
        if int(most) > _OPEN:
            if least > _OPEN:
                raise Unsure("a long run")
            return _Piece(chars, least > 0, max(1, least), open_=True)
        return _Piece(chars, least > 0, max(1, least, int(most) - least + 1))
    inside = list(_pieces(body, flags))
    if int(most) > 4:
        raise Unsure("a repetition of more than one character")
    cost = (1 + _closed(inside)) ** int(most)
    chars = frozenset[str]().union(*(p.chars for p in inside))
    return _Piece(chars, least > 0 and any(p.must for p in inside), cost)


def _closed(pieces: list[_Piece]) -> int:
    cost = 1
    for piece in pieces:
        if piece.open:
            raise Unsure("an open run within another form")
        cost *= piece.cost
    return cost


def _edge(name: str, flags: int) -> _Piece:
    """A beginning is like a character that stands before it, an end like one that follows."""
    line = flags & re.MULTILINE
    if name == "AT_BEGINNING" and line:
        return _Piece(frozenset("\n"), must=True)
    if name in ("AT_BEGINNING", "AT_BEGINNING_STRING", "AT_END_STRING"):
        return _Piece(frozenset(), must=True)
    if name == "AT_END":
        return _Piece(frozenset("\n"), must=True)
    raise Unsure(name)


def _held(node: Node, flags: int) -> Chars:
    """The witnesses that fit; Unsure where others would have to be asked."""
    name, value = str(node[0]), node[1]
    parts = value if name == "IN" else [node]
    for op, what in parts:
        if str(op) == "RANGE" and what[1] > 127:
            raise Unsure("a range outside of ASCII")
        if str(op) in ("LITERAL", "NOT_LITERAL") and what > 127:
            raise Unsure("a character outside of ASCII")
    return _members(_frozen(node), flags & _SCOPED, _WITNESSES)


def _frozen(node: Node) -> Any:
    op, value = node
    return (op, tuple(value)) if str(op) == "IN" else (op, value)


@lru_cache(maxsize=4096)
def _members(node: Any, flags: int, alphabet: Chars) -> Chars:
    """The characters that this part fits: `re` itself is asked, one by one."""
    op, value = node
    state = _parser.State()
    state.flags = flags if flags & re.ASCII else flags | re.UNICODE
    tree = _parser.SubPattern(state, [(op, list(value) if str(op) == "IN" else value)])
    fits = _compiler.compile(tree, state.flags).match
    return frozenset(c for c in alphabet if fits(c))


def _under(flags: int, added: int, removed: int) -> int:
    if added & re.UNICODE:
        removed |= re.ASCII
    return (flags | added) & ~removed


def _written(nodes: Iterable[Node], flags: int, alphabet: Chars) -> Iterator[str]:
    for op, value in nodes:
        name = str(op)
        if name in _SINGLE:
            yield _class(_members(_frozen((op, value)), flags & _SCOPED, alphabet))
        elif name == "SUBPATTERN":
            yield _group(value, flags, alphabet)
        elif name in _REPEATS:
            yield _repeated(name, value, flags, alphabet)
        elif name == "AT":
            yield _place(str(value), flags, alphabet)
        elif name == "BRANCH":
            yield f"(?:{'|'.join(_text(one, flags, alphabet) for one in value[1])})"
        elif name == "ATOMIC_GROUP":
            yield f"(?>{_text(value, flags, alphabet)})"
        elif name in ("ASSERT", "ASSERT_NOT"):
            way = "<" if value[0] < 0 else ""
            yield f"(?{way}{'=' if name == 'ASSERT' else '!'}{_text(value[1], flags, alphabet)})"
        elif name == "GROUPREF" and not flags & re.IGNORECASE:
            yield f"\\g<{value}>"
        else:
            raise Unsure(
                "what it asks of an earlier group may mean something else in a guarded search"
            )


def _text(nodes: Any, flags: int, alphabet: Chars) -> str:
    return "".join(_written(nodes, flags, alphabet))


def _group(value: Any, flags: int, alphabet: Chars) -> str:
    number, added, removed, body = value
    inner = _text(body, _under(flags, added, removed), alphabet)
    if number is None:
        return f"(?:{inner})"
    name = next((k for k, n in body.state.groupdict.items() if n == number), "")
    return f"(?P<{name}>{inner})" if name else f"({inner})"


def _repeated(name: str, value: Any, flags: int, alphabet: Chars) -> str:
    least, most, body = value
    end = "" if most is _parser.MAXREPEAT or most == _parser.MAXREPEAT else str(int(most))
    return f"(?:{_text(body, flags, alphabet)}){{{least},{end}}}{_REPEATS[name]}"


def _place(name: str, flags: int, alphabet: Chars) -> str:
    if name == "AT_BEGINNING":
        return r"(?<![^\n])" if flags & re.MULTILINE else r"\A"
    if name == "AT_END":
        return r"(?![^\n])" if flags & re.MULTILINE else r"(?=\n?\Z)"
    plain = {"AT_BEGINNING_STRING": r"\A", "AT_END_STRING": r"\Z"}
    if name in plain:
        return plain[name]
    word = _class(_members(_word(), flags & _SCOPED, alphabet))
    if name == "AT_BOUNDARY":
        return f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
    empty = "" if re.search(r"\B", "") else r"(?!\A\Z)"  # nothing has no \B before Python 3.14
    return f"{empty}(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"


def _word() -> Any:
    return _frozen(next(iter(_parser.parse(r"\w"))))


def _class(chars: Chars) -> str:
    """A class of these, never of what it is not: of `[^a]|.` regex 2026.11 makes a wrong one."""
    if len(chars) == 1:
        return f"\\U{ord(min(chars)):08x}"
    return f"[{_ranges(chars)}]" if chars else "(?!)"


def _ranges(chars: Chars) -> str:
    found: list[list[int]] = []
    for code in sorted(map(ord, chars)):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return "".join(f"\\U{a:08x}" + (f"-\\U{b:08x}" if b > a else "") for a, b in found)
