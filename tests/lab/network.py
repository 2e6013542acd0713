"""One bridge per lab; every host of the lab is a network namespace with one leg on it.

Addresses: of a /24 that nobody on this machine has, .1 is this machine (the login node), .254 the
controller, .10 and up the nodes.
"""

import json
import subprocess
from collections.abc import Sequence
from ipaddress import IPv4Network

from tests.lab.ledger import Ledger
from tests.lab.paths import prefix

LOGIN, CONTROLLER, FIRST_NODE = 1, 254, 10

RANGES = ("198.18", "198.19", "10.77", "172.29")
"""Where lab N looks for its network, in this order: 198.18.N.0/24 and so on. 198.18.0.0/15 is for
tests between networks and routed nowhere (RFC 2544, RFC 6890); the others are private."""

_DEFAULT = 8
"""A route to a wider network than this is a default route: a VPN's may be 0.0.0.0/1."""


class Network:
    """The bridge of lab `index` and the legs on it."""

    def __init__(self, index: int, ledger: Ledger) -> None:
        self._ledger, self._name = ledger, prefix(index)
        self.subnet = free_subnet(index)

    def address(self, host: int) -> str:
        return str(self.subnet[host])

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


def free_subnet(index: int) -> IPv4Network:
    """The first network for lab `index` in which this machine has no address and to which it has no
    route; RuntimeError, with what is in the way, where there is none."""
    taken = _taken()
    wanted = [IPv4Network(f"{begin}.{index}.0/24") for begin in RANGES]
    for subnet in wanted:
        if not any(subnet.overlaps(other) for other in taken):
            return subnet
    met = sorted({str(t) for t in taken for subnet in wanted if subnet.overlaps(t)})
    raise RuntimeError(
        f"no network is free for lab {index}: of {', '.join(map(str, wanted))} this machine has "
        f"addresses in or routes to {', '.join(met)}; add one that is free to RANGES in {__file__}"
    )


def _taken() -> list[IPv4Network]:
    """Where this machine has a route to, in any routing table; its own addresses are among them
    (ip-route(8), table local). One that only bars a network counts too: somebody wanted it."""
    argv = ["ip", "-json", "-4", "route", "show", "table", "all"]
    told = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30).stdout
    names = {route["dst"] for route in json.loads(told or "[]")} - {"default"}
    nets = map(IPv4Network, names)
    return [net for net in nets if net.prefixlen >= _DEFAULT]


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
