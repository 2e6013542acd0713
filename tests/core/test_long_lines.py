"""What a tool printed becomes text in one place, which cuts what is long; and no half of a number
stays."""

import re

import pytest

from sentinel.core.long_lines import (
    MAX_LINE_CHARS,
    count_cut_lines,
    cut_line,
    cut_long_lines,
    decode_document,
    decode_lines,
    describe_cut_lines,
    is_cut,
)
from tests.core.decoded_places import find_decoded_places

ELSEWHERE = {
    ("sentinel.chain.timers", "done.out"): "a user's crontab, which is written back as it is",
    ("sentinel.proc", "done.err[5:]"): "one line of env(1)",
    ("sentinel.proc.dialogue", "self.stderr_bytes"): "one line of our own child",
    ("sentinel.nodes.node_test", "done.stdout"): "runs alone on a node, without the package",
    ("sentinel.nodes.node_measure", "out"): "runs alone on a node, and keeps 128 KiB",
    ("sentinel.training", "err"): "a training imports it without the package",
    ("sentinel.checks.exec", "err[:_MAX_SHOWN_CHARS]"): "cut where it stands",
}
"""What a command printed and becomes text otherwise, with the reason."""

OUTPUT = re.compile(r"\.(?:out|err|stdout|stderr)\b|\bstderr_bytes\b|^(?:out|err)\b")


def test_what_a_command_printed_becomes_text_in_one_place() -> None:
    """Who decodes it himself has no bound on the length of a line."""
    places = {tuple(place) for place in find_decoded_places() if OUTPUT.search(place.source)}
    assert places == {*ELSEWHERE}


def test_the_places_are_found() -> None:
    assert len([*find_decoded_places()]) > 40


@pytest.mark.parametrize("text", ["", "short\n", "a" * MAX_LINE_CHARS, "ab\n" * 2**16])
def test_lines_of_usual_length_stay_as_they_are(text: str) -> None:
    assert cut_long_lines(text) == text
    assert count_cut_lines(text) == 0
    assert not is_cut(text)


@pytest.mark.parametrize("before", range(2990, 3070))
def test_no_half_of_a_number_stays_at_the_cut(before: int) -> None:
    """`step 123456`, cut in its middle, would be step 123, or 456."""
    line = " " * before + "123456" + " " * 4000 + "123456" + " " * (before - 2047)
    words = set(cut_long_lines(line).replace("…", " ").split())
    assert words <= {"123456", "[line", "was", "cut", "here]"}


def test_a_number_of_a_thousand_digits_is_no_number_any_more() -> None:
    cut = decode_lines(b"used " + b"9" * 5000 + b" KiB\n")
    assert is_cut(cut)
    with pytest.raises(ValueError, match="invalid literal"):
        int(cut.split()[1])


def test_a_field_is_cut_whatever_stands_in_it() -> None:
    cut = cut_line("a\n" * 4000)
    assert len(cut) <= MAX_LINE_CHARS
    assert is_cut(cut)


def test_what_programs_read_is_whole() -> None:
    """JSON is one line however long it is."""
    assert decode_document(b'"' + b"a" * 5000 + b'"') == '"' + "a" * 5000 + '"'


def test_bytes_that_are_no_text_are_escapes_or_a_path() -> None:
    assert decode_lines(b"\xff") == "\\xff"
    assert decode_lines(b"\xff", "surrogateescape") == "\udcff"


def test_people_are_told_how_many_lines_were_cut() -> None:
    assert describe_cut_lines(0) == ""
    assert (
        describe_cut_lines(1) == "1 line was longer than 4096 characters and not read in the middle"
    )
    assert describe_cut_lines(3).startswith("3 lines were longer")
