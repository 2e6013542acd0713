"""Which addresses a lab takes, asked of real routing tables: each of a network namespace of its own."""

import subprocess
import sys

import pytest

from tests.lab import paths
from tests.lab.network import RANGES

ASK = """\
for line in "$@"; do ip $line || exit 9; done
exec {python} -c "from tests.lab.network import free_subnet; print(free_subnet(7))"
"""
CARD = ("link add card type bridge", "link set card up", "addr add 192.0.2.2/24 dev card")
FIRST, SECOND = "198.18.7.0/24\n", "198.19.7.0/24\n"


def asked(*commands: str) -> "subprocess.CompletedProcess[str]":
    """What lab 7 would take on a machine that was set up by these commands of ip(8)."""
    script = ASK.format(python=sys.executable)
    argv = ["unshare", "--net", "sh", "-c", script, "sh", *CARD, *commands]
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, cwd=paths.ROOT, timeout=60
    )


@pytest.mark.root
@pytest.mark.parametrize(
    ("there", "taken"),
    [
        pytest.param("route add default via 192.0.2.1", FIRST, id="default route"),
        pytest.param("route add 128.0.0.0/1 via 192.0.2.1", FIRST, id="half of a VPN's default"),
        pytest.param("addr add 198.18.6.1/24 dev card", FIRST, id="another lab beside it"),
        pytest.param("addr add 198.18.7.200/32 dev card", SECOND, id="one address in it"),
        pytest.param("addr add 198.18.0.1/16 dev card", SECOND, id="a bridge around it"),
        pytest.param("route add 198.18.0.0/16 via 192.0.2.1", SECOND, id="a route to it"),
        pytest.param("route add 198.18.7.8/29 via 192.0.2.1 table 77", SECOND, id="another table"),
        pytest.param("route add blackhole 198.18.0.0/16", SECOND, id="a network that is barred"),
        pytest.param("route add 198.18.0.0/15 via 192.0.2.1", "10.77.7.0/24\n", id="both"),
    ],
)
def test_a_lab_takes_addresses_that_nobody_has(there: str, taken: str) -> None:
    """What this machine has a route to is left alone; a default route says nothing."""
    assert asked(there).stdout == taken


@pytest.mark.root
def test_where_no_network_is_free_the_message_says_what_is_in_the_way() -> None:
    """It names what it wanted and whom it met; nothing is taken."""
    done = asked(*(f"route add {begin}.0.0/16 via 192.0.2.1" for begin in RANGES))
    assert done.returncode == 1
    assert "no network is free for lab 7: of 198.18.7.0/24, 198.19.7.0/24" in done.stderr
    assert "routes to 10.77.0.0/16, 172.29.0.0/16, 198.18.0.0/16" in done.stderr
