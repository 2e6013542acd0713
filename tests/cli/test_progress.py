"""What takes longer than two seconds says what it waits for, to people only."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel.cli import progress, work_line
from sentinel.core import work
from sentinel.nodes.fanout import ask_all
from tests.service.screen import Screen

SLOW = ("check", "exec", "--command", "sleep", "--command", "60")


def test_a_terminal_is_told_what_is_waited_for(tmp_path: Path) -> None:
    """By the name of the program that runs."""
    with Screen(SLOW, {"PATH": "/usr/bin:/bin"}, str(tmp_path)) as screen:
        screen.wait_for("waiting for sleep (Ctrl-C ends it)")


def test_a_pipe_is_told_nothing(tmp_path: Path) -> None:
    """A program reads what comes there."""
    program = (
        "import sys; from sentinel.cli import progress; progress.FIRST = 0.01; "
        "from sentinel.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "check", "exec", "--command", "sleep", "--command", "0.1"],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_who_is_asked_is_not_told_to_wait() -> None:
    """The clock stands still while a question is open."""
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 500, 500)
    with progress.pause_progress():
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getitimer(signal.ITIMER_REAL)[1] == 500
    progress.stop_progress()
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


@pytest.fixture
def wide_tree(tmp_path: Path) -> Path:
    """10,000 files: ten seconds of a walk at 1,000 calls a second."""
    for folder in range(40):
        (tmp_path / "tree" / str(folder)).mkdir(parents=True)
        for number in range(250):
            (tmp_path / "tree" / str(folder) / str(number)).touch()
    return tmp_path / "tree"


def test_a_walk_shows_how_far_it_is(wide_tree: Path, tmp_path: Path) -> None:
    """Files, rate and time on one line, which is gone when the table is printed."""
    words = ("check", "du", "--path", wide_tree, "--calls", "1000")
    with Screen(words, {**os.environ, "LANG": "C.UTF-8"}, str(tmp_path)) as screen:
        screen.wait_for("files and directories, ")
        assert screen.wait() == 0, screen.text
    drawn = screen.text.split("\r\x1b[2K")
    assert re.search(r"walking [\d,]+ files and directories, ", "".join(drawn)), drawn
    assert "tree" in drawn[-1]
    assert "walking" not in drawn[-1]
    assert "waiting for" not in screen.text


def test_a_plain_terminal_is_told_what_is_walked_and_not_by_which_interpreter(
    wide_tree: Path, tmp_path: Path
) -> None:
    """Where no line can be drawn anew."""
    words = ("check", "du", "--path", wide_tree, "--calls", "1000")
    with Screen(words, os.environ, str(tmp_path), TERM="dumb") as screen:
        screen.wait_for(f"walking {wide_tree} (Ctrl-C ends it)")
        assert screen.wait() == 0, screen.text
    assert "python" not in screen.text.replace(str(tmp_path), "")


def test_ctrl_c_leaves_how_far_it_was(wide_tree: Path, tmp_path: Path) -> None:
    """The last numbers stay on the terminal."""
    words = ("check", "du", "--path", wide_tree, "--calls", "300")
    with Screen(words, {**os.environ, "LANG": "C.UTF-8"}, str(tmp_path)) as screen:
        screen.wait_for("files and directories, ")
        screen.interrupt()
        assert screen.wait() == 130, screen.text
    last = screen.text.split("\r\x1b[2K")[-1]
    assert re.match(r"walking: [\d,]+ files and directories, .*ended after \d+s, /", last), last


def test_nothing_is_asked_to_tell_where_nobody_watches(wide_tree: Path, tmp_path: Path) -> None:
    """A pipe gets the answer alone."""
    words = ["check", "du", "--path", str(wide_tree), "--calls", "5000"]
    done = subprocess.run(
        [sys.executable, "-m", "sentinel", *words], capture_output=True, text=True, timeout=60,
        check=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.startswith("OK ")


def test_questions_to_nodes_are_counted() -> None:
    """Each answer advances the work, which is forgotten with the last one."""
    seen = []

    def ask(node: str, seconds: float) -> str:
        one = work.find_work()
        assert one is not None
        seen.append((one.label, one.total, one.unit))
        return node

    told = ask_all(
        ["a", "b"], ask, fanout=1, limit=10.0, patience=5.0, late=str, label="testing", unit="pairs"
    )
    assert told == {"a": "a", "b": "b"}
    assert set(seen) == {("testing", 2, "pairs")}
    assert work.find_work() is None


@pytest.mark.parametrize("columns", [80, 160])
def test_the_line_is_cut_to_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapped line could not be taken away again."""
    monkeypatch.setattr(os, "get_terminal_size", lambda _fd: os.terminal_size((columns, 24)))
    one = work.Work("asking", "nodes", 640)
    one.done, one.place = 320, "node-" + "x" * 300
    line = re.sub(r"\x1b\[[0-9;]*m", "", work_line.render_work(one, one.began + 8.0))
    assert len(line) == columns - 1
    assert line.startswith("asking ████████░░░░░░░░ 320 of 640 nodes, 40/s, about 8s left, 8s")
