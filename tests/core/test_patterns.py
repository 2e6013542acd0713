"""A user's pattern means what `re` means by it, and a search without an end is given up."""

import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sentinel.core.errors import CannotTell
from sentinel.core.patterns import (
    _WITNESSES,
    Guarded,
    Unsure,
    _frozen,
    _members,
    _tree,
    by_line,
    compiled,
    harmless,
)

HARMLESS = [
    r"iteration\s+(\d+)/",
    r"step (\d+)",
    r"^step=(\d+),",
    r"epoch (\d+)$",
    r"(?i)error",
    r"(?:INFO|WARN) step (\d+)",
    r"saved|saving",
    r"loss: ([0-9.]+) \|",
    r"checkpoint-(\d+)-.*",
    r"(?m)^.*iteration\s+(\d+)/",
    r"(?m)^(.*?) step (\d+)$",
    r"\A.*error",
]
DOUBTFUL = [
    r"(a+)+b",
    r"(a|aa)+$",
    r"(\d+)/(\d+)",
    r"a.*b",
    r"x\s*\s*y",
    r"(?:ab)+",
    r"loss: [^|]+\|",
    r"a{1,9}a{1,99}b",
    r"x(?:a?){20}y",
    r"([ab])\1+c",
    "é+x",
    r"^.*a.*b",
    r"^.*\d+x",
    r"(?ms)^.*x",
    r"(?m)^x?.*y",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_takes_time_in_proportion_to_the_text_is_left_to_re(text: str) -> None:
    assert isinstance(compiled(text), re.Pattern)


@pytest.mark.parametrize("text", DOUBTFUL)
def test_in_doubt_a_pattern_is_guarded(text: str) -> None:
    assert not harmless(text, 0)
    assert isinstance(compiled(text), Guarded)


def test_a_search_without_an_end_is_given_up_and_names_the_pattern_and_its_line() -> None:
    pattern = Guarded(re.compile("(a|aa)+$"), "sentinel.yaml:7", limit=0.05)
    with pytest.raises(CannotTell, match=r"'\(a\|aa\)\+\$' \(sentinel.yaml:7\)"):
        pattern.search("a" * 200 + "c")
    with pytest.raises(CannotTell):  # and is not tried again at once
        pattern.search("harmless")


def test_all_matches_together_have_one_limit() -> None:
    pattern = Guarded(re.compile("(a|aa)+$"), "", limit=0.05)
    with pytest.raises(CannotTell):
        pattern.finditer("aab" + "a" * 200 + "c")


def test_lines_are_meant_and_the_place_is_kept() -> None:
    pattern = by_line(compiled("^a.*b$", where="x.yaml:3"))
    assert isinstance(pattern, Guarded)
    assert [m[0] for m in pattern.finditer("no\na1b\na2b\n")] == ["a1b", "a2b"]
    assert pattern.where == "x.yaml:3"


def test_what_depends_on_an_earlier_group_is_refused_where_it_cannot_be_guarded() -> None:
    with pytest.raises(re.error, match="earlier group"):
        compiled(r"(a+)?(?(1)b|c)+")


def _together(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        inner.map(lambda one: f"({one})"),
        st.tuples(inner, st.sampled_from("*+?")).map(lambda two: f"(?:{two[0]}){two[1]}"),
        st.tuples(inner, st.sampled_from(["*?", "+?", "{1,3}"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
        inner.map(lambda one: f"(?={one})"),
        inner.map(lambda one: f"(?!{one})"),
    )


_LEAVES = [
    "a", "b", "A", "é", "k", "ſ", " ", "\n", ".", "^", "$",
    r"\d", r"\w", r"\s", r"\W", r"\D", r"\b", r"\B", r"\A", r"\Z",
    "[ab]", "[^a]", "[a-c1]", "[é-ü]", "(?i:s)",
]  # fmt: skip
_PATTERNS = st.recursive(st.sampled_from(_LEAVES), _together, max_leaves=8)
_TEXTS = st.text("aAbc1é \n_ſKsk\u0301\x1c٣█", max_size=9)
_FLAGS = st.sampled_from([0, re.I, re.M, re.S, re.A, re.M | re.I])


@settings(max_examples=600, deadline=None)
@given(_PATTERNS, _FLAGS, st.lists(_TEXTS, min_size=1, max_size=3))
def test_a_guarded_pattern_means_what_re_means(text: str, flags: int, seen: list[str]) -> None:
    # Python 3.10 tells of groups inside (?!…) what they matched there.
    assume("(?!" not in text or sys.version_info >= (3, 11))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = re.compile(text, flags)
    guarded = Guarded(plain, "", limit=0.2)
    for one in seen:
        for name in ("search", "match", "fullmatch"):
            try:
                said = getattr(guarded, name)(one)
            except (CannotTell, Unsure):
                return
            assert _where(said) == _where(getattr(plain, name)(one)), (name, one)
        try:
            found = [*guarded.finditer(one)]
        except CannotTell:
            return
        assert [m.regs for m in found] == [m.regs for m in plain.finditer(one)]


def _ends(nodes: list[Any], text: str, at: int, flags: int, count: list[int]) -> Iterator[int]:
    """Where these may end, in the order in which a search that goes back tries it; each look at a
    character is counted."""
    if not nodes:
        yield at
        return
    (op, value), rest = nodes[0], nodes[1:]
    name = str(op)
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        for end in _repeats(value, name == "MIN_REPEAT", text, at, flags, count):
            yield from _ends(rest, text, end, flags, count)
        return
    if name in ("SUBPATTERN", "BRANCH"):
        for inner in [value[3]] if name == "SUBPATTERN" else value[1]:
            for end in _ends(list(inner), text, at, flags, count):
                yield from _ends(rest, text, end, flags, count)
        return
    count[0] += 1
    if name == "AT":
        begins = str(value).startswith("AT_BEGINNING")
        if (text[at - 1 : at] if begins else text[at : at + 1]) in ("", "\n"):
            yield from _ends(rest, text, at, flags, count)
    elif at < len(text) and text[at] in _members(_frozen((op, value)), flags, _WITNESSES):
        yield from _ends(rest, text, at + 1, flags, count)


def _repeats(
    value: Any, lazy: bool, text: str, at: int, flags: int, count: list[int]
) -> Iterator[int]:
    """Of a repetition: of one character at a time, so that no depth is needed."""
    least, most, body = value
    ends, more = [at], True
    while more and len(ends) <= most:
        if lazy and len(ends) > least:
            yield ends[-1]
        end = next(_ends(list(body), text, ends[-1], flags, count), None)
        more = end is not None and end != ends[-1]
        ends += [end] if end is not None and more else []
    if not lazy:
        yield from reversed(ends[least:])
    elif more and len(ends) > least:
        yield ends[-1]


def _steps(pattern: str, text: str) -> int:
    """Of a search for all matches in it."""
    tree, count, at = _tree(pattern, re.M), [0], 0
    while at < len(text):
        found = next(_ends(list(tree), text, at, re.M | re.U, count), at)
        at = max(found, at + 1)
    return count[0]


def _grows(pattern: str, head: str, unit: str, tail: str) -> bool:
    """Whether four times the text costs clearly more than four times the steps: of what goes
    with the square it is sixteen times."""
    one, four = (_steps(pattern, head + unit * n + tail + "\n") for n in (16, 64))
    return four > 6 * one + 100


_PIECES = [
    "^", "a", "b", "1", "=", r"\n", ".", "[^a]", r"\d+", ".*", ".*?", ".+", "[^=]*", "[^a]+", "a?",
    "(?:a|b)", "(?:=|a1)", "a{0,2}", "(.*)", r"\s+", r"\s*", "$",
]  # fmt: skip
_UNITS = st.text("ab1= \n", min_size=1, max_size=3)


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(["", "^.*", "^", r"\n[^=]*", "^(.*?)"]),
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=5).map("".join),
    _UNITS,
    _UNITS,
    _UNITS,
)
def test_what_is_called_harmless_is_linear(
    begin: str, rest: str, head: str, unit: str, tail: str
) -> None:
    """Counted by a matcher that goes back as `re` does, on texts that repeat themselves."""
    pattern = begin + rest
    if harmless(pattern, re.M):
        assert not _grows(pattern, head, unit, tail)


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [("a.*b", "a"), ("^.*a.*b", "a"), (r"^.*\d+x", "1"), ("[^b]*b", "a"), (r"\s+$", " ")],
)
def test_the_count_sees_what_is_not_linear(pattern: str, unit: str) -> None:
    assert _grows(pattern, "", unit, "c")
    assert not harmless(pattern, re.M)


def _where(match: "re.Match[str] | None") -> object:
    return match and (match.regs, match.lastgroup)
