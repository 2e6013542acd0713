"""The parts of a probe that show whether a node is at work, by the script itself on a made-up node."""

from pathlib import Path

import pytest

from sentinel import proc
from sentinel.nodes import script
from sentinel.nodes.probe import NodeTraffic, ProbeRequest, Unread, parse

MARK = "m" * 32
WANTS = ProbeRequest(parts=("traffic",))


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Two interfaces, of which one is the loopback, an InfiniBand port, and the kernel's counters."""
    for name, received, sent in (("lo", 10**9, 10**9), ("eth0", 700, 50)):
        counters = tmp_path / "sys" / "class" / "net" / name / "statistics"
        counters.mkdir(parents=True)
        (counters / "rx_bytes").write_text(f"{received}\n")
        (counters / "tx_bytes").write_text(f"{sent}\n")
    port = tmp_path / "sys" / "class" / "infiniband" / "mlx5_0" / "ports" / "1" / "counters"
    port.mkdir(parents=True)
    (port / "port_rcv_data").write_text("1000\n")
    (port / "port_xmit_data").write_text("25\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "vmstat").write_text("nr_free 7\npgpgin 30\npgpgout 2\npgfault 9\n")
    return tmp_path


def traffic(node: Path) -> object:
    text = script.text(
        WANTS, MARK, 25.0, sys=f"{node}/sys", proc=f"{node}/proc", place=f"{node}/place"
    )
    done = proc.run(script.ARGV, limit=60, stdin=text, cwd="/")
    return parse(done.out, MARK, WANTS).traffic


def test_bytes_of_network_and_disks_are_added_up(node: Path) -> None:
    """Ports count words of four bytes, the kernel counts KiB, and the loopback moves nothing."""
    assert traffic(node) == NodeTraffic(network=700 + 50 + 4 * 1025, disk=32 * 1024)


@pytest.mark.parametrize("gone", ["eth0", "vmstat"])
def test_a_node_without_one_of_them_is_not_quiet(node: Path, gone: str) -> None:
    if gone == "vmstat":
        (node / "proc" / "vmstat").write_text("nr_free 7\n")
    else:
        (node / "sys").rename(node / "elsewhere")
    found = traffic(node)
    assert isinstance(found, Unread)
    assert found.kind == "garbage"
