"""Untrusted text stays text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.text import shortened, visible, visible_lines

ANY = st.text(st.characters())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe 訓練 обучение", "größe 訓練 обучение"),
        ("a\nb", "a\\nb"),
        ("a\r\nBcc: x", "a\\r\\nBcc: x"),
        ("a\tb", "a\\tb"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("\x7f", "\\x7f"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("a\u200bb", "a\\u200bb"),
        ("a\u2028b", "a\\u2028b"),
        ("a\x85b", "a\\x85b"),
        ("\udcff", "\\udcff"),
        ("\U000e0041", "\\U000e0041"),
        ("a\xa0b", "a b"),
        ("<b>[red]", "<b>[red]"),
    ],
)
def test_what_a_terminal_or_header_would_obey_becomes_visible(text: str, shown: str) -> None:
    """Letters of every script stay; controls, marks of direction and lone surrogates do not."""
    assert visible(text) == shown


@given(ANY)
def test_a_visible_text_is_one_printable_line(text: str) -> None:
    """Nothing of the categories control, format, surrogate or separator is left."""
    shown = visible(text)
    assert all(c == " " or unicodedata.category(c)[0] not in "CZ" for c in shown)
    assert len(shown.splitlines()) <= 1
    shown.encode()


@given(ANY)
def test_making_visible_twice_changes_nothing_more(text: str) -> None:
    """So it does no harm where a text passes two edges."""
    assert visible(visible(text)) == visible(text)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\nb", ["a", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\n\nb", ["a", "", "b"]),
        ("a\n\n", ["a", ""]),
        ("step\rdone", ["step\\rdone"]),
        ("a\x0cb\x1db", ["a\\x0cb\\x1db"]),
        ("a\u2028forged", ["a\\u2028forged"]),
        ("a\x85forged", ["a\\x85forged"]),
    ],
)
def test_only_line_feeds_make_lines(text: str, lines: list[str]) -> None:
    """A log line cannot forge the next one by a rarer line separator."""
    assert visible_lines(text).split("\n") == lines


@given(ANY)
def test_lines_are_each_visible(text: str) -> None:
    """The only control character that is left is the line feed."""
    assert all(visible(line) == line for line in visible_lines(text).split("\n"))


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("abc", 1, "…"),
        ("a", 1, "a"),
        ("abc", 0, ""),
        ("abc", -1, ""),
        ("", 0, ""),
    ],
)
def test_a_cut_text_ends_in_an_ellipsis(text: str, limit: int, short: str) -> None:
    """And is never longer than the limit, not even at 0."""
    assert shortened(text, limit) == short
