"""A thousand nodes that are one small program in the place of ssh."""

import os
from pathlib import Path

from sentinel.core.values import Duration
from sentinel.nodes.reach import Reach
from sentinel.nodes.settings import RemoteSettings
from sentinel.nodes.ssh import Ssh

SSH = r"""#!/bin/sh
# The last two words are node and command, as for ssh; how a node is, its number says.
for word; do node=$command command=$word; done
echo "$node" >>"$COUNT"
case ${node#n} in
{dead}) exec sleep 3600 ;;
{gone}) echo "ssh: connect to host $node port 22: No route to host" >&2; exit 255 ;;
{half}) read -r mark; printf '\n%s begin\nha' "$mark"; exit 255 ;;
esac
[ -z "$CANNED" ] && eval "$command" && exit
read -r mark
while read -r line; do case $line in mark=*) inner=${line#mark=}; break ;; esac; done
printf '\n%s begin\n' "$mark" | tee /dev/stderr
sed "s/MARK/$inner/" "$CANNED"
printf '\n%s end 0\n' "$mark"
"""
DEAD, GONE, HALF = "*[05]0", "*13", "*37"
"""2% hang for ever, 1% are off the network, 1% break off: as shell patterns of numbers."""


class Cluster:
    """`size` nodes, reached by sentinel's own ssh way through the program in `folder`.

    `canned`: a file that every healthy node answers a probe with, MARK where its mark is;
    else they run what they are told, on this machine.
    """

    def __init__(
        self, folder: Path, size: int, *, dead: str = DEAD, canned: Path | None = None
    ) -> None:
        self.names = [f"n{number:04}" for number in range(size)]
        self.count = folder / "count"
        self.count.touch()
        ssh = folder / "ssh"
        text = SSH.replace("{dead}", dead).replace("{gone}", GONE).replace("{half}", HALF)
        ssh.write_text(text)
        ssh.chmod(0o755)
        path = f"{folder}:{os.environ['PATH']}"
        self.environ = {"PATH": path, "COUNT": str(self.count), "CANNED": str(canned or "")}

    def reach(self, *, fanout: int = 64, timeout: float = 3.0) -> Reach:
        """One node has `timeout` seconds."""
        settings = RemoteSettings(timeout=Duration(timeout), connect_timeout=Duration(1))
        return Reach(Ssh(settings, environ=self.environ), fanout=fanout, patience=timeout)

    def asked(self) -> list[str]:
        """Every start of the program, by node."""
        return self.count.read_text().split()
