"""What takes longer than two seconds says what it waits for, to people only."""

import signal
import subprocess
import sys
from pathlib import Path

from sentinel.cli import progress
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
