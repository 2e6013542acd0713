"""Decides how long a regular expression may search, and which parts of it two libraries read
differently. Pure.

docs/patterns.md has the rule for what is harmless, so that everybody can apply it. This module
reads the text of a pattern that `re` has accepted; `re` itself decides which characters a part
matches."""

import re
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from sentinel.core.lazy_pattern import lazy_pattern

MAX_WAY_PRODUCT = 32
"""The largest allowed product of the numbers of ways of all `?`, `{m,n}` and `|` in one pattern."""

MAX_BRANCHES = 8
"""Branches of `|` outside of groups at most; each is judged separately."""

_PART_PATTERN = lazy_pattern(
    r"""(?:
      (?P<set> \[ \^? \]? (?: [^\]\\] | \\. )* \] )
    | (?P<escape> \\ . )
    | (?P<flags> \( \? [a-zA-Z]+ \) )
    | (?P<open> \( (?: \? (?: P<\w+> | P=\w+ (?=\)) | <?[=!] | [a-zA-Z-]* : | > | . ) )? )
    | (?P<close> \) )
    | (?P<or> \| )
    | (?P<edge> [\^$] )
    | (?P<one> . )
    ) (?P<repeat> (?: [*+?] | \{ (?: \d+ ,? \d* | , \d* ) \} )? ) (?P<way> [?+]? )""",
    re.VERBOSE | re.DOTALL,
)
"""One part of a pattern with its repetition. Every pattern is a sequence of such parts."""

_WITNESS_CHARS = frozenset({*map(chr, range(128)), *"\u0663\u00a0é█ſKİı"})
"""ASCII, and outside of it one of each kind that `re` tells apart: a digit, a space, a letter,
anything else, and the letters that (?i) takes for ASCII ones (Lib/re/_casefix.py)."""

_OTHER_CHAR_PATTERN = lazy_pattern(r"[^\x00-\x7f]|\\[uUN]|\\x[89a-fA-F]")
_KNOWN_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.ASCII
_GROUP_PATTERN = lazy_pattern(r"\((?:\?(?::|P<\w+>))?")


class _Doubt(Exception):
    """The rule does not cover this form of pattern."""


class _Piece(NamedTuple):
    """A part within a sequence."""

    fits: frozenset[str]
    """The characters with which it may begin."""
    must: bool
    """Whether it cannot be empty."""
    ways: int = 1
    """Steps of a search at one position."""
    is_run: bool = False
    """Whether its repetition has no upper limit."""


def is_harmless(text: str, flags: int) -> bool:
    """Whether the time of a search is certainly proportional to the length of the text. False if
    that is not known."""
    if flags & re.VERBOSE or _OTHER_CHAR_PATTERN.search(text):
        return False
    try:
        branches = _split_branches(text, flags & _KNOWN_FLAGS)
    except _Doubt:
        return False
    if len(branches) > MAX_BRANCHES:
        return False
    return all(_count_ways(one) <= MAX_WAY_PRODUCT and _is_searched_once(one) for one in branches)


def _is_searched_once(pieces: Sequence[_Piece], *, inside: bool = False) -> bool:
    """Whether no text is searched twice. `inside`: the pieces follow a run, which tries them again
    at each of its positions; so a run at their end has to begin and end like any other."""
    for n, piece in enumerate(pieces):
        before, behind = pieces[:n], pieces[n + 1 :]
        if not piece.is_run or not (behind or inside):
            continue
        begins = any(p.must and not p.is_run and not p.fits & piece.fits for p in before)
        next_ = _get_first_chars(behind) if behind else frozenset[str]()
        if begins and next_ is not None and not next_ & piece.fits:
            continue
        # Or it can begin only at places where no other match can be, e.g. at the start of a line
        # (`^.*`).
        apart = bool(before) and before[-1].must and not before[-1].fits & piece.fits
        alone = not any(p.is_run for p in before)
        return apart and alone and _is_searched_once(behind, inside=True)
    return True


def _get_first_chars(pieces: Sequence[_Piece]) -> frozenset[str] | None:
    """The characters that may come first; None if all pieces may be empty."""
    found = frozenset[str]()
    for piece in pieces:
        found |= piece.fits
        if piece.must:
            return found
    return None


def _count_ways(pieces: Sequence[_Piece]) -> int:
    return prod(piece.ways for piece in pieces)


def _split_branches(text: str, flags: int) -> list[list[_Piece]]:
    """The branches of `|` outside of all groups. Raises _Doubt."""
    groups: list[list[list[_Piece]]] = [[[]]]
    for part in _PART_PATTERN.finditer(text):
        repeat = part["repeat"]
        if part["open"]:
            if not _GROUP_PATTERN.fullmatch(part["open"]):
                raise _Doubt
            groups.append([[]])
        elif part["or"]:
            groups[-1].append([])
        elif part["close"]:
            group = groups.pop()
            groups[-1][-1] += (
                _make_group_piece(group, repeat) if repeat or len(group) > 1 else group[0]
            )
        elif not part["flags"]:
            groups[-1][-1].append(_make_piece(part, repeat, flags))
    return groups[0]


def _make_group_piece(branches: list[list[_Piece]], repeat: str) -> list[_Piece]:
    """The one piece for a group with `|` or `?`. Raises _Doubt."""
    pieces = [piece for branch in branches for piece in branch]
    if repeat not in ("", "?") or any(piece.is_run for piece in pieces):
        raise _Doubt
    fits = frozenset[str]().union(*(piece.fits for piece in pieces))
    must = not repeat and all(any(piece.must for piece in branch) for branch in branches)
    return [_Piece(fits, must, sum(map(_count_ways, branches)) + bool(repeat))]


def _make_piece(part: "re.Match[str]", repeat: str, flags: int) -> _Piece:
    """The piece for a part. An edge counts as a character: a beginning as one before it, an end as
    one that follows. Raises _Doubt."""
    if part["edge"] or part["escape"] in (r"\A", r"\Z", r"\b"):
        if repeat:
            raise _Doubt
        return _make_edge_piece(part["edge"] or part["escape"], flags)
    text = part["set"] or part["escape"] or part["one"]
    if part["escape"] and re.fullmatch(r"\\[0-9xB]", text):
        raise _Doubt
    fits = _get_fitting_chars(text, flags)
    least, most = _parse_repeat(repeat)
    if most is None:
        return _Piece(fits, least > 0, max(1, least), is_run=True)
    return _Piece(fits, least > 0, max(1, least, most - least + 1))


def _make_edge_piece(text: str, flags: int) -> _Piece:
    if text == r"\b":  # it may be between any two characters
        return _Piece(_WITNESS_CHARS, must=False)
    if text == "$" or (text == "^" and flags & re.MULTILINE):
        return _Piece(frozenset("\n"), must=True)
    return _Piece(frozenset(), must=True)


def _parse_repeat(repeat: str) -> tuple[int, int | None]:
    """The smallest and largest number of repetitions; None: no upper limit."""
    if not repeat:
        return 1, 1
    if repeat in "*+?":
        return int(repeat == "+"), 1 if repeat == "?" else None
    least, comma, most = repeat[1:-1].partition(",")
    if not comma:
        return int(least), int(least)
    return int(least or 0), int(most) if most else None


@lru_cache(maxsize=4096)
def _get_fitting_chars(text: str, flags: int) -> frozenset[str]:
    """The witness characters that this part matches."""
    fits = re.compile(text, flags).fullmatch
    return frozenset(c for c in _WITNESS_CHARS if fits(c))


_KNOWN_ESCAPES = frozenset("AbdDsSwWZafnrtvxuUN0123456789")
_KNOWN_OPENINGS = lazy_pattern(r"\((?:\?(?:P<\w+>|P=\w+|<?[=!]|[aimsu-]*:|>))?")
_SET_SIGNS = lazy_pattern(r"\[|--|&&|\|\||~~")
_NOT_ONE_PATTERN = lazy_pattern(r"\[\^(?:\\.|.)\]", re.DOTALL)


def explain_ambiguity(text: str, flags: int) -> str:
    """The part of a pattern that the `regex` library may read differently from `re`, with the
    remedy; empty if there is none."""
    if flags & re.VERBOSE:
        return "with (?x); write it without blanks and comments"
    parts = [*_PART_PATTERN.finditer(text)]
    if sum(_is_branch_of_not_one(parts, n) for n in range(len(parts))) > 1:
        return "with branches [^a] and [^b] of |; write what both of them fit"
    return next(filter(None, map(_explain_part_ambiguity, parts)), "")


def _is_branch_of_not_one(parts: "Sequence[re.Match[str]]", n: int) -> bool:
    """Whether part n is a whole branch and matches all characters but one: from `[^a]|[^b]`, regex
    2026.11 makes a wrong pattern."""
    if parts[n]["repeat"] or not _NOT_ONE_PATTERN.fullmatch(parts[n]["set"] or ""):
        return False
    begins = n == 0 or bool(parts[n - 1]["open"] or parts[n - 1]["or"])
    end = parts[n + 1] if n + 1 < len(parts) else None
    return begins and (end is None or bool(end["close"] or end["or"]))


def _explain_part_ambiguity(part: "re.Match[str]") -> str:
    if part["set"]:
        inner = re.sub(r"\\.", "a", part["set"][1:], flags=re.DOTALL)
        sign = _SET_SIGNS.search(inner)
        return f"with {sign[0]} within [ ]; write a \\ before it" if sign else ""
    if (escape := part["escape"]) and escape[1].isalnum() and escape[1] not in _KNOWN_ESCAPES:
        return f"with {escape}; write the characters themselves, or a set [ ]"
    if part["open"] and not _KNOWN_OPENINGS.fullmatch(part["open"]):
        return f"with {part['open']}; write it without"
    if part["flags"] and not re.fullmatch(r"\(\?[aimsu]+\)", part["flags"]):
        return f"with {part['flags']}; write it without"
    if part["one"] == "{" or "{," in part["repeat"]:
        return "with { that is no repetition such as {2,3}; write \\{ for the character"
    return ""
