"""Runs commands on this host, without any network."""

import os
import socket
from collections.abc import Sequence

from sentinel.core.node_answers import NotAsked, Unreached


class Local:
    """A way to one node: the host that sentinel runs on, by any of its names."""

    name = "local"

    def __init__(self) -> None:
        self._name = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        self.env = dict(os.environ)

    def barred(self, node: str) -> str:
        """Why that node cannot be asked this way; empty for this host."""
        if node.partition(".")[0] in (self._name.partition(".")[0], "localhost"):
            return ""
        return f"via: local reaches only this host, {self._name}"

    def command(self, node: str, argv: Sequence[str]) -> list[str]:
        """The command unchanged."""
        return list(argv)

    def failure(self, said: str, code: int) -> Unreached | None:
        """The failure if a signal ended the command; else None: a local command that was found
        always starts."""
        return NotAsked(f"the command was ended by signal {-code}") if code < 0 else None
