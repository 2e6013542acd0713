"""A command on a terminal of its own (a pty), and everything that reaches the glass."""

import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType

from tests.lab.tied import tied
from tests.lab.waiting import wait_until

DECIDES = ("TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
"""What would speak for the terminal instead of it."""


class Screen:
    """`python -m sentinel WORDS...` inside `with`; stdin, stdout and stderr are the terminal.

    `changes` go into the environment, after what would speak for the terminal was taken out.
    """

    def __init__(
        self,
        words: Sequence[object],
        env: Mapping[str, str],
        cwd: str,
        columns: int = 80,
        **changes: str,
    ) -> None:
        self._words, self._cwd = [str(word) for word in words], cwd
        kept = {key: value for key, value in env.items() if key not in DECIDES}
        self._env = {**kept, "TERM": "xterm-256color", **changes}
        self._size = struct.pack("HHHH", 50, columns, 0, 0)
        self._seen = bytearray()

    @property
    def text(self) -> str:
        """All that was printed so far, escape sequences and all."""
        return self._seen.decode(errors="backslashreplace")

    def wait(self, limit: float = 60.0) -> int:
        """The exit code once it has ended, and everything was read."""
        code = self._process.wait(limit)
        self._reader.join(10)
        return code

    def interrupt(self) -> None:
        """As Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def wait_for(self, words: str, limit: float = 30.0) -> None:
        """Until the words have appeared."""
        wait_until(lambda: words in self.text, lambda: f"{words!r} in {self.text!r}", limit)

    def __enter__(self) -> "Screen":
        self._mine, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, self._size)
        self._process = subprocess.Popen(
            tied([sys.executable, "-m", "sentinel", *self._words]),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=self._env,
            cwd=self._cwd,
            start_new_session=True,
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(15)
            self._process.kill()
        self.wait(10)
        os.close(self._mine)

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # EIO once the last process has closed it
            while data := os.read(self._mine, 65536):
                self._seen += data
