"""Outlives a test process that is killed, and then removes its lab.

Run as `python -m tests.lab.reaper INDEX` with a pipe on stdin: the word "done" means that the
lab went down by itself; the end of the pipe without it means that the process is gone.
"""

import os
import subprocess
import sys

from tests.lab import claim, ledger, paths


class Reaper:
    """The handle of the process that uses the lab."""

    def __init__(self, index: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.lab.reaper", str(index)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd=paths.ROOT,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """The lab is down: the reaper has nothing to do any more."""
        self._process.communicate(b"done", timeout=10)


def reap(index: int) -> None:
    """Undo what lab `index` left, once nobody holds it."""
    held = claim.wait_claim(index)
    ledger.undo(paths.directory(index))
    os.close(held)


if __name__ == "__main__" and sys.stdin.read() != "done":
    reap(int(sys.argv[1]))
