"""The end of a file that has to be somebody's own, on real files."""

import os
import pwd
from collections.abc import Sequence
from pathlib import Path

import pytest

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.proc.owned import NotSince, tail_of
from tests.lab.flipping import flipping

ME = pwd.getpwuid(os.geteuid()).pw_name


def run(argv: Sequence[str]) -> proc.Done:
    return proc.run(argv, limit=5.0, env={**os.environ, "LC_ALL": "C"})


def test_the_end_of_ones_own_file_is_read(tmp_path: Path) -> None:
    """Through a link too; named by user or uid; a folder may have any name."""
    file = tmp_path / "-$(echo x)\n log"
    file.write_bytes(b"one\ntwo\r\xff")
    (tmp_path / "link").symlink_to(file)
    for path, user in [(file, ME), (tmp_path / "link", str(os.geteuid()))]:
        assert tail_of(str(path), 5, user, run) == "two\n\\xff"
    (tmp_path / "empty").touch()
    assert tail_of(str(tmp_path / "empty"), 5, ME, run) == ""
    assert tail_of(str(tmp_path / "none"), 5, ME, run) is None
    assert tail_of(f"{file}/none", 5, ME, run) is None


def test_what_was_written_before_is_anothers(tmp_path: Path) -> None:
    """By whole seconds, as Slurm gives the start."""
    (tmp_path / "out").write_text("of before\n")
    os.utime(tmp_path / "out", (1000.9, 1000.9))
    assert tail_of(str(tmp_path / "out"), 99, ME, run, 1000.0) == "of before\n"
    with pytest.raises(NotSince, match="no output since it started: last written 1m before that"):
        tail_of(str(tmp_path / "out"), 99, ME, run, 1060.0)


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "somebody's", "loop"])
def test_nothing_else_is_read(tmp_path: Path, kind: str) -> None:
    """A pipe would hang, a link to another's file would be shown by root."""
    path = tmp_path / kind
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path)
    else:
        path.symlink_to("/etc/passwd")
    user = "nobody" if kind == "somebody's" else ME
    why = "Too many levels" if kind == "loop" else f"is no regular file of {user}"
    with pytest.raises(CannotTell, match=why):
        tail_of(str(path), 5, user, run)


def test_what_takes_the_place_of_a_file_meanwhile_is_not_opened(tmp_path: Path) -> None:
    """Its owner may point a link at /dev/watchdog, which reboots the host once it is opened."""
    path, file, said = tmp_path / "path", tmp_path / "file", set[str | None]()
    file.write_text("log\n")
    with flipping(path, file) as opened:
        for _ in range(60):
            try:
                said.add(tail_of(str(path), 9, None, run))
            except CannotTell as error:
                said.add(str(error))
        assert not opened
    assert said <= {"log\n", f"{path} is no regular file"}


def test_an_empty_owner_is_nobody(tmp_path: Path) -> None:
    """What a job's owner is not known to be owns nothing."""
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(CannotTell):
        tail_of(str(tmp_path / "fifo"), 5, "", run)
