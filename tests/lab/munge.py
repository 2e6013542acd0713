"""A munged of the lab's own: it can be stopped or killed without harm to anybody else.

Key and socket are the lab's; slurm.conf names the socket in AuthInfo, so clients that read the
lab's slurm.conf use it.
"""

import os
import signal
from pathlib import Path

from tests.lab.daemons import Daemon, Daemons
from tests.lab.waiting import wait_until


class Munge:
    """Running after `start`; `stop` makes clients wait, `kill` makes them fail."""

    def __init__(self, folder: Path, daemons: Daemons) -> None:
        self._folder, self._daemons = folder, daemons
        self._daemon: Daemon | None = None
        folder.mkdir()
        self._write_key()

    @property
    def socket(self) -> Path:
        return self._folder / "socket"

    def start(self) -> None:
        """Start unless it runs; returns when the socket is there."""
        if self._daemon and self._daemon.running:
            self._daemon.cont()
            return
        log = self._folder / "log"
        self._daemon = self._daemons.start("munged", self._argv(), log)
        wait_until(self.socket.exists, lambda: f"munged: {log.read_text()}")

    def stop(self) -> None:
        self._running().stop()

    def cont(self) -> None:
        self._running().cont()

    def kill(self) -> None:
        """End it and take its socket away, as the end of the service does."""
        self._running().kill(signal.SIGKILL)
        self.socket.unlink(missing_ok=True)

    def _running(self) -> Daemon:
        assert self._daemon is not None, "munge.start() comes first"
        return self._daemon

    def _argv(self) -> list[str]:
        files = {"socket": "socket", "key-file": "key", "seed-file": "seed", "pid-file": "pid"}
        options = [f"--{option}={self._folder / name}" for option, name in files.items()]
        return ["munged", "--foreground", "--force", *options]

    def _write_key(self) -> None:
        key = self._folder / "key"
        key.touch(0o600)
        key.write_bytes(os.urandom(128))
