"""A line is written whole or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel import proc
from sentinel.proc import appending
from sentinel.proc.append import _list_mount_users
from sentinel.proc.appending import NEVER, append_line
from tests.lab.fuse import Fuse
from tests.lab.waiting import HANG_LIMIT_S, wait_until
from tests.user_files.places import MALLORY, file_of, folder_of, shared_folder

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


@pytest.mark.root
def test_a_link_of_another_user_is_not_followed() -> None:
    """A line of root's, which holds that user's own words, would stand in any file of root's. Links of
    root's own are followed, also to what is not there yet; a file of the user's gets its line."""
    with shared_folder() as base:
        home = folder_of(MALLORY, base / "home")
        victim = file_of(0, base / "victim", "")
        links = {home / "file": victim, home / "new": base / "made", home / "folder": base}
        for link, to in links.items():
            link.symlink_to(to)
            os.chown(link, MALLORY, MALLORY, follow_symlinks=False)
        for path in (home / "file", home / "new", home / "folder" / "victim"):
            done = append_line(str(path), b"PULSE x", limit=10)
            assert (done.code, b"a link of uid 54321" in done.err) == (NEVER, True)
        assert (victim.read_text(), (base / "made").exists()) == ("", False)
        (base / "own").symlink_to("made")
        (base / "way").symlink_to(home)
        for path in (base / "own", base / "way" / "log", home / "log"):
            assert append_line(str(path), b"x", limit=10).code == 0
        assert ((base / "made").read_text(), (home / "log").read_text()) == ("x\n", "x\nx\n")


@pytest.mark.root
def test_a_link_on_a_user_s_mount_is_that_user_s(fuse: Fuse, tmp_path: Path) -> None:
    """The server of the mount says root owns it."""
    assert _list_mount_users(os.stat(fuse.point).st_dev) == {0}
    with Fuse(tmp_path / "their\rs", MALLORY) as theirs:
        assert _list_mount_users(os.stat(theirs.point).st_dev) == {MALLORY}
    assert _list_mount_users(os.stat(tmp_path).st_dev) == set()


@pytest.mark.root
def test_a_hard_link_in_a_folder_of_others_is_not_written(tmp_path: Path) -> None:
    """It leads to another file as a symbolic one does; in one's own folder it is one's own."""
    (tmp_path / "kept").write_text("kept\n")
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    (open_folder / "log").hardlink_to(tmp_path / "kept")
    open_folder.chmod(0o777)
    done = append_line(str(open_folder / "log"), b"x", limit=10)
    assert (done.code, b"has a second name" in done.err) == (NEVER, True)
    assert (tmp_path / "kept").read_text() == "kept\n"
    open_folder.chmod(0o755)
    assert append_line(str(open_folder / "log"), b"x", limit=10).code == 0


def test_links_without_an_end_lead_nowhere(tmp_path: Path) -> None:
    """Retrying would not help."""
    (tmp_path / "loop").symlink_to("loop")
    assert append_line(str(tmp_path / "loop"), b"x", limit=10).code == NEVER


def test_a_file_on_a_mount_that_hangs_gets_one_process(fuse: Fuse) -> None:
    """Who writes a line a minute would else leave one behind each time."""
    fuse.hold("open", "lookup")
    path = str(fuse.point / "data")
    with pytest.raises(proc.TimedOut) as first:
        append_line(path, b"x", limit=HANG_LIMIT_S)
    assert first.value.stuck is not None
    with pytest.raises(
        proc.TimedOut, match=f"process {first.value.stuck.pid} still waits"
    ) as again:
        append_line(path, b"x", limit=HANG_LIMIT_S)
    assert again.value.stuck == first.value.stuck
    fuse.release()
    wait_until(lambda: not proc.still_stuck(first.value.stuck), "the end of the first")
    assert append_line(path, b"x", limit=20).code == 1  # it answers, and takes no writes
