"""The lab's nodes as sentinel reaches them by ssh: host keys checked, faults put in by tests."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sentinel.core.values import Duration
from sentinel.nodes.reach import Reach
from sentinel.nodes.settings import RemoteSettings
from sentinel.nodes.ssh import Ssh
from tests.lab.client import Done
from tests.lab.cluster import Lab

WORKPLACE = """\
place=/run/sentinel.$(uname -n)
mkdir -p -m 700 $place
grep -q " $place " /proc/mounts || mount -t tmpfs -o mode=700 lab $place
"""
"""Nodes of the lab share this machine's /run; a real node's is its own."""


class Nodes:
    """Reaches the lab's nodes; the ssh configuration is a file of its own in `folder`."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.known = folder / "known_hosts"
        key = (lab.ssh_config.parent / "key.pub").read_text().split()
        self.known.write_text(f"* {key[0]} {key[1]}\n")
        self.config = folder / "ssh_config"
        self.config.write_text(f"Include {lab.ssh_config}\n")
        for node in lab.nodes:
            self.on(node.name, WORKPLACE)

    def on(self, node: str, script: str) -> Done:
        """Run a script as root there, beside what is being tested."""
        return self.lab.run(["ssh", "-F", str(self.lab.ssh_config), node, script])

    def divert(self, node: str, port: int, host: str = "127.0.0.1") -> None:
        """Have that name lead to another server."""
        lines = f"Host {node}\n  HostName {host}\n  Port {port}\nHost *\n"
        self.config.write_text(lines + self.config.read_text())

    def logins(self, node: str) -> int:
        """How often anybody logged in there so far, by sshd's own log."""
        log = self.lab.folder / f"log/sshd-{node}"
        return log.read_text().count("Accepted publickey") if log.exists() else 0

    def reach(
        self, *, options: str = "", timeout: float = 15.0, connect: float = 3.0, fanout: int = 64
    ) -> Reach:
        """The way sentinel goes; `options` are further words for ssh."""
        given = f"-F {self.config} -o UserKnownHostsFile={self.known} {options}"
        settings = RemoteSettings(
            ssh_options=given, timeout=Duration(timeout), connect_timeout=Duration(connect)
        )
        return Reach(Ssh(settings), fanout=fanout, patience=timeout)


@contextmanager
def saying(words: bytes) -> Iterator[int]:
    """A server that says that to everybody and then no more; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                try:
                    line, _ = server.accept()
                except OSError:  # nobody came for a while, or the test is over
                    continue
                with line, suppress(OSError):
                    line.settimeout(5)
                    line.sendall(words)
                    line.shutdown(socket.SHUT_WR)
                    while line.recv(65536):  # a reset would overtake the words
                        pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        over.set()
        thread.join(5)
