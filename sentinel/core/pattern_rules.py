"""What a regular expression can cost, and what in it two libraries take for different things. Pure.

The rule for what is harmless stands in docs/configuration.md, so that everybody can apply it. It
reads the text of a pattern that `re` has accepted; which characters a part fits `re` itself says.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

MAX_WAY_PRODUCT = 32
"""The numbers of ways of all `?`, `{m,n}` and `|` that lie within one pattern, multiplied."""

MAX_BRANCHES = 8
"""Patterns that `|` joins to one; each is judged alone."""

_PART_PATTERN = re.compile(
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
"""A part of a pattern with what repeats it. Each text of a pattern is a row of such parts."""

_WITNESS_CHARS = frozenset({*map(chr, range(128)), *"\u0663\u00a0é█ſKİı"})
"""ASCII, and outside of it one of each kind that `re` tells apart: a digit, a space, a letter,
anything else, and the letters that (?i) takes for ASCII ones (Lib/re/_casefix.py)."""

_OTHER_CHAR_PATTERN = re.compile(r"[^\x00-\x7f]|\\[uUN]|\\x[89a-fA-F]")
_KNOWN_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.ASCII
_GROUP_PATTERN = re.compile(r"\((?:\?(?::|P<\w+>))?")


class _Doubt(Exception):
    """The rule does not cover this form."""


class _Piece(NamedTuple):
    """A part that has its place in a sequence."""

    fits: frozenset[str]
    """The characters that it may begin with."""
    must: bool
    """It cannot be empty."""
    ways: int = 1
    """Steps of a search at one place."""
    is_run: bool = False
    """It has no end of its own."""


def is_harmless(text: str, flags: int) -> bool:
    """Whether the time of a search is surely in proportion to the text; in doubt it is not."""
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
    """Whether no text is looked through twice. `inside`: the pieces follow a run, which tries them
    again at each of its places, so that a run at their end has to begin and end like any other."""
    for n, piece in enumerate(pieces):
        before, behind = pieces[:n], pieces[n + 1 :]
        if not piece.is_run or not (behind or inside):
            continue
        begins = any(p.must and not p.is_run and not p.fits & piece.fits for p in before)
        next_ = _get_first_chars(behind) if behind else frozenset[str]()
        if begins and next_ is not None and not next_ & piece.fits:
            continue
        # Or it begins only where no other of it can lie, such as the line of `^.*`.
        apart = bool(before) and before[-1].must and not before[-1].fits & piece.fits
        alone = not any(p.is_run for p in before)
        return apart and alone and _is_searched_once(behind, inside=True)
    return True


def _get_first_chars(pieces: Sequence[_Piece]) -> frozenset[str] | None:
    """The characters that may come first; None where all may be empty."""
    found = frozenset[str]()
    for piece in pieces:
        found |= piece.fits
        if piece.must:
            return found
    return None


def _count_ways(pieces: Sequence[_Piece]) -> int:
    return prod(piece.ways for piece in pieces)


def _split_branches(text: str, flags: int) -> list[list[_Piece]]:
    """What `|` joins outside of all groups. Raises _Doubt."""
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
    """A group with `|` or `?` is one piece."""
    pieces = [piece for branch in branches for piece in branch]
    if repeat not in ("", "?") or any(piece.is_run for piece in pieces):
        raise _Doubt
    fits = frozenset[str]().union(*(piece.fits for piece in pieces))
    must = not repeat and all(any(piece.must for piece in branch) for branch in branches)
    return [_Piece(fits, must, sum(map(_count_ways, branches)) + bool(repeat))]


def _make_piece(part: "re.Match[str]", repeat: str, flags: int) -> _Piece:
    """An edge is like a character: a beginning like one that stands before it, an end like one that
    follows."""
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
    if text == r"\b":  # may stand between any two characters
        return _Piece(_WITNESS_CHARS, must=False)
    if text == "$" or (text == "^" and flags & re.MULTILINE):
        return _Piece(frozenset("\n"), must=True)
    return _Piece(frozenset(), must=True)


def _parse_repeat(repeat: str) -> tuple[int, int | None]:
    """How often, at least and at most; None: without an end."""
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
    """The witnesses that this part fits."""
    fits = re.compile(text, flags).fullmatch
    return frozenset(c for c in _WITNESS_CHARS if fits(c))


_KNOWN_ESCAPES = frozenset("AbdDsSwWZafnrtvxuUN0123456789")
_KNOWN_OPENINGS = re.compile(r"\((?:\?(?:P<\w+>|P=\w+|<?[=!]|[aimsu-]*:|>))?")
_SET_SIGNS = re.compile(r"\[|--|&&|\|\||~~")
_NOT_ONE_PATTERN = re.compile(r"\[\^(?:\\.|.)\]", re.DOTALL)


def explain_ambiguity(text: str, flags: int) -> str:
    """What in a pattern the `regex` library may take for something else than `re` does, with the
    remedy; empty: nothing."""
    if flags & re.VERBOSE:
        return "with (?x); write it without blanks and comments"
    parts = [*_PART_PATTERN.finditer(text)]
    if sum(_is_branch_of_not_one(parts, n) for n in range(len(parts))) > 1:
        return "with branches [^a] and [^b] of |; write what both of them fit"
    return next(filter(None, map(_explain_part_ambiguity, parts)), "")


def _is_branch_of_not_one(parts: "Sequence[re.Match[str]]", n: int) -> bool:
    """Whether part n is all of a branch, and fits all but one character: of `[^a]|[^b]` regex
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
