"""A real sshd of whoever runs the tests, on this machine; no cluster, no root."""

import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sentinel.core.values import Duration
from sentinel.nodes.reach import Reach
from sentinel.nodes.settings import RemoteSettings
from sentinel.nodes.ssh import Ssh
from tests.lab.needs import find
from tests.lab.waiting import wait_until

SERVER = """\
HostKey {folder}/host
AuthorizedKeysFile {folder}/mine.pub
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PidFile none
"""
CLIENT = """\
Host *
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/mine
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known_hosts
"""


class Sshd:
    """Up inside `with`. Every name of a node leads to it."""

    def __init__(self, folder: Path, options: Sequence[str] = ()) -> None:
        self.folder, self._options = folder, options
        self.log = folder / "log"

    def __enter__(self) -> "Sshd":
        self.folder.mkdir(parents=True)
        for name in ("host", "mine"):
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]
            subprocess.run(argv, check=True)
        (self.folder / "sshd_config").write_text(SERVER.format(folder=self.folder))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        self.port = _free_port()
        self.vouch((self.folder / "host.pub").read_text())
        self.config = self.folder / "ssh_config"
        self.config.write_text(CLIENT.format(folder=self.folder, port=self.port))
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(10)

    def vouch(self, key: str) -> None:
        """What known_hosts says of every host from now on; an empty key: nothing."""
        words = key.split()
        line = f"* {words[0]} {words[1]}\n" if words else ""
        (self.folder / "known_hosts").write_text(line)

    def reach(
        self, options: str = "", *, timeout: float = 15.0, connect: float = 3.0, fanout: int = 8
    ) -> Reach:
        """The way sentinel goes; `options` are further words for ssh, before all others."""
        settings = RemoteSettings(
            ssh_options=f"{options} -F {self.config}",
            timeout=Duration(timeout),
            connect_timeout=Duration(connect),
        )
        return Reach(Ssh(settings), fanout=fanout, patience=timeout)

    def _start(self) -> None:
        argv = [str(find("sshd")), "-D", "-f", str(self.folder / "sshd_config")]
        argv += ["-o", f"ListenAddress=127.0.0.1:{self.port}", "-E", str(self.log)]
        self._process = subprocess.Popen([*argv, *self._options])
        wait_until(lambda: "Server listening" in _read(self.log), lambda: _read(self.log))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
