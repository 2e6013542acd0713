"""Rules of reading a growing file piece by piece, without any file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.checks.log.file_offset import (
    MAX_LINE_BYTES,
    MAX_READ_BYTES,
    SEAM_BYTES,
    FileStat,
    ReadPosition,
    decode_new_lines,
    is_continuation,
    select_new_range,
    select_whole_range,
)
from sentinel.core.logtext import decode_log
from sentinel.core.long_lines import count_cut_lines


class Reader:
    """Reads a file in memory as the check reads a real one."""

    def __init__(self) -> None:
        self.place: ReadPosition | None = None
        self.bytes = 0

    def read(self, data: bytes, inode: str = "1", mtime: float = 0) -> str:
        look = FileStat(size=len(data), inode=inode, mtime=mtime)
        span, place = select_new_range(self.place, look), self.place
        got = data[span.start : span.start + span.size]
        if not is_continuation(place, span, got):
            span = select_whole_range(look)
            got = data[span.start : span.start + span.size]
        self.bytes = len(got)
        self.place, text = decode_new_lines(look, span, got)
        return text


def test_only_what_is_new_is_read() -> None:
    """And the few bytes before it, by which the file is known again."""
    reader = Reader()
    assert reader.read(b"one\ntwo\n" * 1000).count("\n") == 2000
    assert reader.read(b"one\ntwo\n" * 1000 + b"three\n") == "three\n"
    assert reader.bytes == SEAM_BYTES + len("three\n")


def test_a_line_that_is_being_written_waits_for_its_end() -> None:
    """It may hold half a number."""
    reader = Reader()
    assert reader.read(b"at 41\nat 4") == "at 41\n"
    assert reader.read(b"at 41\nat 42\n") == "at 42\n"


def test_a_single_line_without_an_end_is_all_there_is() -> None:
    """A heartbeat file; written anew in place it is read anew."""
    reader = Reader()
    assert reader.read(b"step 1") == "step 1"
    assert reader.read(b"step 2", mtime=1) == "step 2"
    assert reader.read(b"step 2\n", mtime=2) == "step 2\n"
    assert reader.read(b"step 3\n", mtime=3) == "step 3\n"


@pytest.mark.parametrize(
    ("data", "inode"),
    [
        pytest.param(b"new\n", "2", id="renamed and made anew"),
        pytest.param(b"new\n", "1", id="cut, as copytruncate does"),
        pytest.param(b"new\n" + b"x" * 100 + b"\n", "1", id="cut, and longer again than before"),
        pytest.param(b"\0" * 60 + b"new\n", "1", id="cut, by a writer that keeps its offset"),
    ],
)
def test_another_file_is_read_from_its_beginning(data: bytes, inode: str) -> None:
    """However the log was rotated, an inode that is used again included."""
    reader = Reader()
    reader.read(b"old line\n" * 5)
    assert reader.read(data, inode).startswith("new\n")


def test_of_a_long_file_the_end_is_read() -> None:
    """From the first whole line on: ten gigabytes cost no more than one megabyte."""
    reader = Reader()
    text = reader.read(b"line 123456\n" * (MAX_READ_BYTES // 6))
    assert reader.bytes == MAX_READ_BYTES
    assert set(text.splitlines()) == {"line 123456"}


def test_of_a_long_progress_bar_the_end_is_read() -> None:
    """tqdm ends its lines by a return alone."""
    text = Reader().read(b"line 123456\r" * (MAX_READ_BYTES // 6))
    assert set(text.splitlines()) == {"line 123456"}


def test_of_much_that_is_new_the_end_is_read() -> None:
    """What came before it is left out."""
    reader = Reader()
    reader.read(b"a\n")
    assert reader.read(b"a\n" + b"b\n" * MAX_READ_BYTES).count("\n") == MAX_READ_BYTES // 2 - 1
    assert reader.read(b"a\n" + b"b\n" * MAX_READ_BYTES + b"c\n") == "c\n"


def test_a_line_without_end_does_not_hold_up_reading_for_ever() -> None:
    """Binary output, or a progress bar of a strange kind."""
    reader = Reader()
    reader.read(b"one\n")
    text = reader.read(b"one\n" + b"x" * (MAX_LINE_BYTES + 1))
    assert (text[:99], text[-99:], count_cut_lines(text)) == ("x" * 99, "x" * 99, 1)
    assert reader.read(b"one\n" + b"x" * (MAX_LINE_BYTES + 1) + b"y\n") == "y\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param("größe 1\n".encode(), "größe 1\n", id="UTF-8"),
        pytest.param("größe 1\n".encode("latin-1"), "gr\\xf6\\xdfe 1\n", id="Latin-1"),
        pytest.param("at 7\n".encode("utf-16-le"), "at 7\n", id="UTF-16"),
        pytest.param(b"5/9\r6/9\r", "5/9\n6/9\n", id="progress bars end in a return"),
        pytest.param(b"a\r\nb\r\n", "a\nb\n", id="lines of Windows"),
        pytest.param(b"\x1b[1;32mat 7\x1b[0m\x1b[K\n", "at 7\n", id="colours"),
        pytest.param(b"\x1b[\x1b7 \x1b]0;x\x07", "\x1b[\x1b7 \x1b]0;x\x07", id="other escapes"),
    ],
)
def test_every_encoding_gives_readable_digits(data: bytes, text: str) -> None:
    """Nothing raises, and a number is a number."""
    assert decode_log(data) == text


def test_a_place_knows_a_file_that_cannot_have_changed() -> None:
    """Nothing is read then."""
    place = ReadPosition(inode="1", size=5, mtime=2)
    assert place.is_unchanged(FileStat(size=5, inode="1", mtime=2))
    assert not place.is_unchanged(FileStat(size=5, inode="1", mtime=3))
    assert not place.is_unchanged(FileStat(size=6, inode="1", mtime=2))
    assert not place.is_unchanged(FileStat(size=5, inode="2", mtime=2))


@given(st.lists(st.binary(max_size=200), max_size=12))
def test_pieces_give_every_whole_line_once(pieces: list[bytes]) -> None:
    """However a file grows, what is read is what stands in it."""
    reader, data, text = Reader(), b"start\n", ""
    text += reader.read(data)
    for piece in pieces:
        data += piece.replace(b"\r", b"")
        text += reader.read(data, mtime=len(data))
    assert text == decode_log(data[: data.rfind(b"\n") + 1])
