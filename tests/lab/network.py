"""One bridge per lab; every host of the lab is a network namespace with one leg on it.

Addresses: 10.77.INDEX.1 is this machine (the login node), .254 the controller, .10 and up the nodes.
"""

import subprocess
from collections.abc import Sequence

from tests.lab.ledger import Ledger
from tests.lab.paths import prefix

LOGIN, CONTROLLER, FIRST_NODE = 1, 254, 10


class Network:
    """The bridge of lab `index` and the legs on it."""

    def __init__(self, index: int, ledger: Ledger) -> None:
        self._index, self._ledger, self._name = index, ledger, prefix(index)

    def address(self, host: int) -> str:
        return f"10.77.{self._index}.{host}"

    def namespace(self, host: int) -> str:
        return f"{self._name}-{host}"

    def up(self) -> None:
        """Make the bridge and give this machine its address on it."""
        self._ledger.add("link", self._name)
        batch(
            [
                f"link add {self._name} type bridge",
                f"addr add {self.address(LOGIN)}/24 dev {self._name}",
                f"link set {self._name} up",
            ]
        )

    def add_host(self, host: int) -> str:
        """A namespace with eth0 on the bridge; returns the namespace's name."""
        space, leg = self.namespace(host), self._leg(host)
        self._ledger.add("netns", space)
        self._ledger.add("link", leg)
        batch(
            [
                f"netns add {space}",
                f"link add {leg} master {self._name} type veth peer name eth0 netns {space}",
                f"link set {leg} up",
            ]
        )
        batch(
            [
                "link set lo up",
                f"addr add {self.address(host)}/24 dev eth0",
                "link set eth0 up",
            ],
            space,
        )
        return space

    def cut(self, host: int) -> None:
        """Pull the cable: no answer at all, not even an error from the other end."""
        batch([f"link set {self._leg(host)} down"])

    def join(self, host: int) -> None:
        batch([f"link set {self._leg(host)} up"])

    def swallow(self, host: int) -> None:
        """The host hears this machine, but its answers are lost: what a firewall's DROP does."""
        batch([f"route replace blackhole {self.address(LOGIN)}/32"], self.namespace(host))

    def unswallow(self, host: int) -> None:
        batch([f"route flush {self.address(LOGIN)}/32"], self.namespace(host))

    def _leg(self, host: int) -> str:
        return f"{self._name}h{host}"


def batch(commands: Sequence[str], namespace: str | None = None) -> None:
    """Run lines of ip(8) in one process."""
    space = ["-netns", namespace] if namespace else []
    done = subprocess.run(
        ["ip", *space, "-batch", "-"],
        input="\n".join(commands) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(space)} {'; '.join(commands)}: {done.stderr.strip()}")
