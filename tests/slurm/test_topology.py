"""Racks as Slurm's topology has them."""

import pytest

from sentinel.slurm.topology import read_topology


@pytest.mark.parametrize(
    ("out", "found"),
    [
        (
            b"SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-5]\n"
            b"SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[6-11]\n"
            b"SwitchName=s3 Level=1 LinkSpeed=1 Nodes=n[0-11] Switches=s[0-1]\n",
            {"s0": "n[0-5]", "s1": "n[6-11]"},
        ),
        (b"BlockName=b1 BlockIndex=0 Nodes=n[1-32] BlockSize=32\n", {"b1": "n[1-32]"}),
        (b"SwitchName=s0 Level=0 LinkSpeed=1 Nodes=(null)\n", {}),
        (b"No topology information available\n", {}),
        (b"\xff\xfe", {}),
    ],
)
def test_leaf_switches_and_blocks_are_racks(out: bytes, found: dict[str, str]) -> None:
    """A switch above others is none, and its nodes are those of its leaves."""
    assert read_topology(out) == found
