"""A line is written whole or not at all."""

import subprocess
import sys
from pathlib import Path

import pytest

from sentinel import proc
from sentinel.proc import appending
from sentinel.proc.appending import NEVER, append_line
from tests.lab.fuse import Fuse
from tests.lab.waiting import wait_until

PROGRAM = Path(appending.__file__).with_name("append.py")


def test_lines_are_appended(tmp_path: Path) -> None:
    """In the order of the calls, each with its newline."""
    book = tmp_path / "book"
    for line in (b"one", b"", "zwei ü".encode()):
        assert append_line(str(book), line, limit=10).code == 0
    assert book.read_text() == "one\n\nzwei ü\n"


def test_a_torn_last_line_is_closed_first(tmp_path: Path) -> None:
    """After a full disk or a crash of the machine."""
    book = tmp_path / "book"
    book.write_text("torn")
    append_line(str(book), b"whole", limit=10)
    assert book.read_text() == "torn\nwhole\n"


def test_a_line_that_did_not_arrive_whole_is_not_written(tmp_path: Path) -> None:
    """A sentinel that was killed while it handed the line over leaves half of it, or nothing:
    1,000 kills by hand left an empty line in the file once."""
    book = tmp_path / "book"
    for piece in (b"", b"hal"):
        done = subprocess.run(
            [sys.executable, PROGRAM, book, "4"], input=piece, capture_output=True, timeout=30
        )
        assert (done.returncode, done.stderr) == (1, b"the line did not arrive whole\n")
    assert not book.exists()


def test_what_is_no_file_is_refused_for_good(tmp_path: Path) -> None:
    """Retrying would not turn a directory into a file."""
    assert append_line(str(tmp_path), b"x", limit=10).code == NEVER


def test_a_file_on_a_mount_that_hangs_gets_one_process(fuse: Fuse) -> None:
    """Who writes a line a minute would else leave one behind each time."""
    fuse.hold("open", "lookup")
    path = str(fuse.point / "data")
    with pytest.raises(proc.TimedOut) as first:
        append_line(path, b"x", limit=0.5)
    assert first.value.stuck is not None
    with pytest.raises(
        proc.TimedOut, match=f"process {first.value.stuck.pid} still waits"
    ) as again:
        append_line(path, b"x", limit=0.5)
    assert again.value.stuck == first.value.stuck
    fuse.release()
    wait_until(lambda: not proc.still_stuck(first.value.stuck), "the end of the first")
    assert append_line(path, b"x", limit=20).code == 1  # it answers, and takes no writes
