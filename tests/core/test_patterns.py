"""A user's pattern means what `re` means by it, and a search without an end is given up."""

import re
import sys
import time
import warnings

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sentinel.core.errors import CannotTell
from sentinel.core.pattern_rules import explain_ambiguity, is_harmless
from sentinel.core.patterns import GuardedPattern, compile_by_line, compile_pattern

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
    r"\berror\s+(\d+)",
    r"loss[:=]\s*(\d+\.\d+)",
    '"step": (\\d+)',
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
    r"\d+\b",
    r"\u0061+b",
    r"(?i:a)",
    r"(?=a)a",
    "a|" * 8 + "a",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_takes_time_in_proportion_to_the_text_is_left_to_re(text: str) -> None:
    assert isinstance(compile_pattern(text), re.Pattern)


@pytest.mark.parametrize("text", DOUBTFUL)
def test_in_doubt_a_pattern_is_guarded(text: str) -> None:
    assert not is_harmless(text, re.compile(text).flags)
    assert isinstance(compile_pattern(text), GuardedPattern)


def test_a_search_without_an_end_is_given_up_and_names_the_pattern_and_its_line() -> None:
    pattern = GuardedPattern(re.compile("(a|aa)+$"), "sentinel.yaml:7", limit=0.05)
    with pytest.raises(CannotTell, match=r"'\(a\|aa\)\+\$' \(sentinel.yaml:7\)"):
        pattern.search("a" * 200 + "c")
    with pytest.raises(CannotTell):  # and is not tried again at once
        pattern.search("harmless")


def test_all_matches_together_have_one_limit() -> None:
    pattern = GuardedPattern(re.compile("(a|aa)+$"), "", limit=0.05)
    with pytest.raises(CannotTell):
        pattern.finditer("aab" + "a" * 200 + "c")


def test_lines_are_meant_and_the_place_is_kept() -> None:
    pattern = compile_by_line(compile_pattern("^a.*b$", where="x.yaml:3"))
    assert isinstance(pattern, GuardedPattern)
    assert [m[0] for m in pattern.finditer("no\na1b\na2b\n")] == ["a1b", "a2b"]
    assert pattern.where == "x.yaml:3"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (r"(a+)?(?(1)b|c)+", "(?(; write it without"),
        (r"\B(a+)+", r"\B; write the characters themselves"),
        ("(?x)a+ a+b", "(?x); write it without blanks"),
        (r"(?:abc){e<=1}.*d.*", r"write \{ for the character"),
        (r"(a+)+{", r"write \{ for the character"),
        (r"(a{,})+", r"write \{ for the character"),
        (r"(?:[[ab]+)+", r"[ within [ ]; write a \ before it"),
        (r"(?:[[:alpha:]]+)+", r"[ within [ ]; write a \ before it"),
        (r"(?:[a-z--b]+)+", r"-- within [ ]; write a \ before it"),
        (r"(?:[a&&b]+)+", r"&& within [ ]; write a \ before it"),
        (r"(?:[a||b]+)+", r"|| within [ ]; write a \ before it"),
        (r"(?:[a~~b]+)+", r"~~ within [ ]; write a \ before it"),
        (r"(?#[)(a+)+", "(?#; write it without"),
        (r"(?:[^a]|(?:[^b]|c))+", "branches [^a] and [^b] of |"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_the_other_library_may_take_otherwise_is_refused(text: str, remedy: str) -> None:
    with pytest.raises(re.error) as caught:
        compile_pattern(text)
    assert remedy in str(caught.value)


@pytest.mark.parametrize("text", [r"\p{L}+", r"a\K", r"\m", r"\L<a>", "(?V1)a", "(?R)", "a{2}{e}"])
def test_what_only_the_other_library_knows_is_no_pattern(text: str) -> None:
    """`re` compiles first."""
    if text != "a{2}{e}":
        with pytest.raises(re.error):
            compile_pattern(text)
    else:  # here `re` means the characters
        assert compile_pattern(text).search("aa{e}")


@pytest.mark.parametrize(
    "text", [r"(?:[^\[\]]|\[)+", r'"(?:[^"\\]|\\.)*"', r"(?:\{a{2,3})+", r"(?:[]a]|[^]b])+"]
)
def test_what_both_libraries_take_alike_is_not_refused(text: str) -> None:
    assert explain_ambiguity(text, 0) == ""


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
    r"\d", r"\w", r"\s", r"\W", r"\D", r"\b", r"\A", r"\Z",
    "[ab]", "[^a]", "[a-c1]", "[é-ü]", "(?i:s)",
]  # fmt: skip
_PATTERNS = st.recursive(st.sampled_from(_LEAVES), _together, max_leaves=8)
_TEXTS = st.text("aAbc1é \n_ſKsk٣█", max_size=9)
_FLAGS = st.sampled_from([0, re.I, re.M, re.S, re.A, re.M | re.I])


@settings(max_examples=600, deadline=None)
@given(_PATTERNS, _FLAGS, st.lists(_TEXTS, min_size=1, max_size=3))
def test_a_guarded_pattern_means_what_re_means(text: str, flags: int, seen: list[str]) -> None:
    # Python 3.10 tells of groups inside (?!…) what they matched there.
    assume("(?!" not in text or sys.version_info >= (3, 11))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = re.compile(text, flags)
    assume(not explain_ambiguity(text, flags))
    guarded = GuardedPattern(plain, "", limit=0.2)
    for one in seen:
        for name in ("search", "match", "fullmatch"):
            try:
                said = getattr(guarded, name)(one)
            except CannotTell:
                return
            assert _where(said) == _where(getattr(plain, name)(one)), (name, one)
        try:
            found = [*guarded.finditer(one)]
        except CannotTell:
            return
        assert [m.regs for m in found] == [m.regs for m in plain.finditer(one)]


LONG = 18_000
"""Characters: a search that goes with the square of them takes more than 200 ms."""
LINEAR_S = 0.05


def _is_slow(pattern: str, head: str, unit: str, tail: str) -> bool:
    """Whether a search through a text that repeats itself takes more than its length allows."""
    search = re.compile(pattern, re.M)
    text = (head + unit * LONG)[:LONG] + tail + "\n"

    def seconds() -> float:
        began = time.thread_time()
        for _ in search.finditer(text):
            pass
        return time.thread_time() - began

    return all(seconds() > LINEAR_S for _ in range(3))


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
    """On texts that repeat themselves."""
    pattern = begin + rest
    if is_harmless(pattern, re.M):
        assert not _is_slow(pattern, head, unit, tail)


_BEFORE = ["", "a", "=", "^", "a?", r"\b"]
_RUNS = [".*", "[^=]*", r"\d+", "a+", r"\s*", "[^a]+?"]
_BEHIND = ["", "a", "=", "$", r"\b", "a?", r"\d+ ", r"\d+"]


@pytest.mark.parametrize("run", _RUNS)
def test_each_run_between_two_parts_is_linear_if_it_is_called_harmless(run: str) -> None:
    """All of them, for a broken rule lets a few through only."""
    patterns = [before + run + behind for before in _BEFORE for behind in _BEHIND]
    rightly = [one for one in patterns if is_harmless(one, re.M)]
    slow = [
        (one, unit)
        for one in rightly
        for unit in ("a", "1", " ", "=1", "a1", "a ")
        if _is_slow(one, "", unit, "-")
    ]
    assert (slow, len(rightly) > 5) == ([], True)


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [("a.*b", "a"), ("^.*a.*b", "a"), (r"^.*\d+x", "1"), ("[^b]*b", "a"), (r"\s+$", " ")],
)
@pytest.mark.long
def test_the_measure_sees_what_is_not_linear(pattern: str, unit: str) -> None:
    assert _is_slow(pattern, "", unit, "c")
    assert not is_harmless(pattern, re.M)


def _where(match: "re.Match[str] | None") -> object:
    return match and (match.regs, match.lastgroup)
