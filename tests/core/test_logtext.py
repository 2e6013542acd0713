"""Long lines of a log are cut before any pattern sees them."""

from sentinel.core.logtext import decode_log
from sentinel.core.long_lines import MAX_LINE_CHARS, count_cut_lines


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
