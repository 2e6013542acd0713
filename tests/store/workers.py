"""Other processes with a state open, forked from one that has imported all they need."""

import os
import signal
import subprocess
import sys
from types import TracebackType
from typing import IO


class Workers:
    """`start` one that commits batches without end or counts up; their lines are read here."""

    def __enter__(self) -> "Workers":
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "tests.store.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._zygote.stdin
        self._zygote.stdin.close()
        self._zygote.wait(30)

    def start(self, task: str, state: str, count: int = 0) -> "Worker":
        """task: `commit`, `increment` or `number`; see tests.store.worker."""
        read, write = os.pipe()
        assert self._zygote.stdin
        target = f"/proc/{os.getpid()}/fd/{write}"
        self._zygote.stdin.write(f"{task}\t{state}\t{count}\t{target}\n")
        try:
            return Worker(os.fdopen(read))  # it reads the first line: the other end is open
        finally:
            os.close(write)


class Worker:
    """Another process; its first line is its pid, then one line for each thing done."""

    def __init__(self, lines: IO[str]) -> None:
        self.lines = lines
        self.pid = int(lines.readline())

    def kill(self) -> list[int]:
        """SIGKILL; the numbers of all it had reported by then."""
        os.kill(self.pid, signal.SIGKILL)
        with self.lines:
            return [int(line) for line in self.lines if line.endswith("\n")]

    def result(self) -> list[int]:
        """Wait for its end."""
        with self.lines:
            return [int(line) for line in self.lines]
