"""Keys and configuration that let root of this machine log in to every node."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.lab.needs import SYSTEM_PATH
from tests.lab.node import Node

SSHD = """\
HostKey {folder}/key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
PidFile none
SetEnv PATH={path}
"""
CLIENT = """\
Host *
  User root
  IdentityFile {folder}/key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""


def write(folder: Path, nodes: Iterable[Node]) -> Path:
    """Make the keys, sshd_config and ssh_config in `folder`; returns the ssh_config."""
    folder.mkdir()
    keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab"]
    subprocess.run([*keygen, "-f", str(folder / "key")], check=True)
    (folder / "sshd_config").write_text(SSHD.format(folder=folder, path=SYSTEM_PATH))
    hosts = "".join(f"Host {node.name}\n  HostName {node.address}\n" for node in nodes)
    config = folder / "ssh_config"
    config.write_text(hosts + CLIENT.format(folder=folder))
    return config
