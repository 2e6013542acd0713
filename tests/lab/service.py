"""`sentinel` as a real process, seen from outside: its output, its signals, its end."""

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.lab.tied import tied
from tests.lab.waiting import wait_until


class Service:
    """`python -m sentinel ARGV...`; output goes to files, so it never waits for a reader."""

    def __init__(self, folder: Path, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self._out, self._err = folder / "stdout", folder / "stderr"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                tied([sys.executable, "-m", "sentinel", *argv]),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=dict(env),
                cwd=folder,
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def out(self) -> str:
        return self._out.read_text(errors="backslashreplace")

    @property
    def err(self) -> str:
        return self._err.read_text(errors="backslashreplace")

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait_for(
        self,
        predicate: Callable[[], object],
        what: str | Callable[[], str] = "",
        limit: float = 20.0,
    ) -> None:
        """Until the predicate is true; fails at once, with the output, where the process ends."""

        def missing() -> str:
            return f"{what if isinstance(what, str) else what()}: {self._said()}"

        def done() -> bool:
            if predicate():
                return True
            if not self.running:
                raise AssertionError(f"sentinel ended: {self._said()}")
            return False

        wait_until(done, missing, limit)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def terminate(self, limit: float = 20.0) -> int:
        """SIGTERM; the exit code once it has ended, TimeoutExpired where it does not."""
        self._process.terminate()
        return self._process.wait(limit)

    def kill9(self) -> None:
        self._process.kill()
        self._process.wait(10)

    def wait(self, limit: float = 20.0) -> int:
        """The exit code once it has ended by itself; negative for a signal."""
        return self._process.wait(limit)

    def close(self) -> None:
        """End it whatever it does; SIGTERM first, so that its own children end too."""
        if not self.running:
            return
        self._process.send_signal(signal.SIGCONT)
        try:
            self.terminate(10.0)
        except subprocess.TimeoutExpired:
            self.kill9()

    def _said(self) -> str:
        code = self._process.poll()
        return f"exit {code}\n--- stdout\n{self.out[-4000:]}\n--- stderr\n{self.err[-4000:]}"
