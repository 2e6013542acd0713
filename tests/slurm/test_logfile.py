"""slurmctld's log from a moment on, and every way in which it is not that."""

import os
from pathlib import Path

import pytest

from sentinel.core.errors import CannotTell
from sentinel.slurm import logfile


def test_what_came_since(tmp_path: Path) -> None:
    """Through a link too; nothing of before."""
    (tmp_path / "real").write_text("before\n")
    (tmp_path / "log").symlink_to("real")
    place = logfile.log_position(str(tmp_path / "log"))
    assert logfile.read_log_since(place) == ""
    with (tmp_path / "real").open("ab") as file:
        file.write(b"after \xff\n")
    assert logfile.read_log_since(place) == "after \\xff\n"


def test_a_log_that_was_rotated_or_cut_is_not_read(tmp_path: Path) -> None:
    """What came between may stand in the other file."""
    log = tmp_path / "log"
    log.write_text("before\n")
    place = logfile.log_position(str(log))
    log.write_text("")
    with pytest.raises(CannotTell, match="rotated"):
        logfile.read_log_since(place)
    log.write_text("before\n")
    log.rename(tmp_path / "log.1")
    log.write_text("before\nafter\n")
    with pytest.raises(CannotTell, match="rotated"):
        logfile.read_log_since(place)


def test_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not there, no path, a FIFO that nobody writes: said, and not waited for."""
    monkeypatch.setattr(logfile, "LOG_LIMIT_S", 0.5)
    os.mkfifo(tmp_path / "fifo")
    fifo = tmp_path / "fifo"
    for path in (str(tmp_path / "none"), "", "log", str(fifo)):
        with pytest.raises(CannotTell):
            logfile.log_position(path)
    for place in ("", f"{fifo.stat().st_dev}:{fifo.stat().st_ino}:0 {fifo}"):
        with pytest.raises(CannotTell):
            logfile.read_log_since(place)


def test_a_log_whose_times_go_back_is_not_believed(tmp_path: Path) -> None:
    """A user's text may stand in it: shortly before the position, or behind it."""
    log, line = tmp_path / "log", "[2026-11-27T19:51:{}] x\n"
    log.write_text(line.format("12.142") + line.format("12.143"))
    place = logfile.log_position(str(log))
    with log.open("a") as more:
        more.write(line.format("12.144"))
    assert logfile.read_log_since(place) == line.format("12.144")
    with log.open("a") as more:
        more.write(line.format("12.143"))
    with pytest.raises(CannotTell, match=r"go back, from 2026-11-27T19:51:12.144"):
        logfile.read_log_since(place)
    with pytest.raises(CannotTell, match="go back"):
        logfile.log_position(str(log))
