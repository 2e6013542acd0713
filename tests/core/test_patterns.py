"""A user's pattern means what `re` means by it, and a search without an end is given up."""

import re
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.core.errors import CannotTell
from sentinel.core.pattern_tree import Unsure, harmless
from sentinel.core.patterns import Guarded, by_line, compiled

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


def _where(match: "re.Match[str] | None") -> object:
    return match and (match.regs, match.lastgroup)
