"""Long lines are cut before any pattern sees them, and it is known how many were."""

import pytest

from sentinel.core.logtext import (
    MAX_LINE_CHARS,
    count_cut_lines,
    cut_long_lines,
    decode_log,
    describe_cut_lines,
)


def test_a_long_line_keeps_its_beginning_and_its_end() -> None:
    """What went wrong is said at the end of a structured line that holds a whole traceback."""
    line = "INFO begins here " + "a" * 2**20 + " CUDA out of memory"
    text = decode_log(f"before\n{line}\nafter\n".encode())
    first, cut, last, _ = text.split("\n")
    assert (first, last) == ("before", "after")
    assert cut.startswith("INFO begins here aaa")
    assert cut.endswith("aaa CUDA out of memory")
    assert len(cut) <= MAX_LINE_CHARS
    assert count_cut_lines(text) == 1


@pytest.mark.parametrize("text", ["", "short\n", "a" * MAX_LINE_CHARS, "ab\n" * 2**16])
def test_lines_of_usual_length_stay_as_they_are(text: str) -> None:
    assert cut_long_lines(text) == text
    assert count_cut_lines(text) == 0


@pytest.mark.parametrize("before", range(2990, 3070))
def test_no_half_of_a_number_stays_at_the_cut(before: int) -> None:
    """`step 123456`, cut in its middle, would be step 123, or 456."""
    line = " " * before + "123456" + " " * 4000 + "123456" + " " * (before - 2047)
    words = set(cut_long_lines(line).replace("…", " ").split())
    assert words <= {"123456", "[line", "was", "cut", "here]"}


def test_people_are_told_how_many_lines_were_cut() -> None:
    assert describe_cut_lines(0) == ""
    assert (
        describe_cut_lines(1) == "1 line was longer than 4096 characters and not read in the middle"
    )
    assert describe_cut_lines(3).startswith("3 lines were longer")
