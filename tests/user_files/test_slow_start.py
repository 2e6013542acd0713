"""An interpreter that starts slowly: the limit of a file runs from when its reader is ready."""

import sys
from pathlib import Path

import pytest

from sentinel.core.errors import CannotTell
from sentinel.user_files.files import UserFiles
from sentinel.user_files.whose import Whose
from tests.lab.fuse import Fuse

LIMIT_S = 0.3


@pytest.fixture
def slow_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that is busy: the interpreter begins after three times the limit."""
    put_interpreter(tmp_path, monkeypatch, f'sleep {3 * LIMIT_S}; exec {sys.executable} "$@"')


def put_interpreter(place: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """A stand-in for the interpreter that this process runs on."""
    program = place / "python"
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def test_a_slow_start_is_not_a_file_that_hangs(slow_start: None, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("step 1\n")
    files = UserFiles(LIMIT_S, 60.0, {})
    assert files.read_tail(str(tmp_path / "log"), 9, Whose(literal=True)) == "step 1\n"


def test_a_file_that_hangs_is_known_after_a_slow_start_too(slow_start: None, fuse: Fuse) -> None:
    fuse.hold("lookup", "getattr")
    path = f"{fuse.point}/data"
    with pytest.raises(CannotTell, match=f"{path} hangs: no answer within 300ms"):
        UserFiles(LIMIT_S, 60.0, {}).read_tail(path, 9, Whose(literal=True))
    fuse.release()


def test_a_start_that_never_ends_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Once: what is asked for next has no time left."""
    put_interpreter(tmp_path, monkeypatch, "exec sleep 60")
    files = UserFiles(LIMIT_S, LIMIT_S, {})
    said = []
    for name in ("a", "b"):
        with pytest.raises(CannotTell) as caught:
            files.read_tail(str(tmp_path / name), 9, Whose(literal=True))
        said.append(str(caught.value).removeprefix(f"{tmp_path}/"))
    assert said[0].startswith("a was not looked at: its reader did not start within ")
    assert said[1] == "b was not looked at: others took all the time"
