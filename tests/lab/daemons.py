"""A background process that the lab started: the only kind of process it ever signals."""

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.lab.ledger import Ledger, end, started
from tests.lab.needs import SYSTEM_PATH


class Daemon:
    """One running process; output is appended to `log`."""

    def __init__(self, argv: Sequence[str], log: Path) -> None:
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env={"PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8"},
            )
        self.pid = self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """SIGSTOP: alive, holding its sockets, answering nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def cont(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self, sig: int = signal.SIGKILL) -> None:
        """Send the signal (a stopped process is let go on first) and wait for the end."""
        self._process.send_signal(sig)
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            end([(self.pid, started(self.pid))])
            self._process.wait(10)


class Daemons:
    """All of a lab: each is written into the ledger as it starts."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._all: list[Daemon] = []

    def start(self, name: str, argv: Sequence[str], log: Path) -> Daemon:
        daemon = Daemon(argv, log)
        self._ledger.add_process(daemon.pid, name)
        self._all.append(daemon)
        return daemon

    def end(self) -> None:
        """Kill and reap whatever still runs."""
        for daemon in self._all:
            if daemon.running:
                daemon.kill()
