"""`sentinel nodes probe` as people use it, on real nodes with real faults."""

import json
import sys
from pathlib import Path

import pytest

from tests.lab.client import Done
from tests.lab.cluster import Lab
from tests.nodes.nodes import Nodes, saying

pytestmark = pytest.mark.lab


def probe(nodes: Nodes, *words: str) -> Done:
    """The command with the way to the lab's nodes configured."""
    options = f"-F {nodes.config} -o UserKnownHostsFile={nodes.known}"
    config = nodes.folder / "sentinel.yaml"
    config.write_text(
        f"state: {nodes.folder}/state\n"
        f"remote: {{timeout: 12s, connect_timeout: 3s, ssh_options: '{options}'}}\n"
        "checks: {root: {kind: fs, paths: [/]}}\nchannels: {out: {kind: console}}\n"
    )
    argv = [sys.executable, "-m", "sentinel", "nodes", "probe", "-c", str(config), *words]
    return nodes.lab.run(argv, limit=90)


@pytest.mark.long
def test_four_nodes_are_told_apart(fresh: Lab, tmp_path: Path) -> None:
    """Healthy, cut off, talking nonsense, nvidia-smi hanging: a line for each, exit code 1."""
    nodes, tool = Nodes(fresh, tmp_path), fresh.nodes[3].bin / "nvidia-smi"
    fresh.fuse.hold("open")
    fresh.cut_node(1)
    try:
        tool.write_text(f"#!/bin/sh\nexec cat {fresh.fuse.point}/data\n")
        with saying(b"SSH-2.0-nonsense\r\n" + b"\0\xff" * 4000) as port:
            nodes.divert("node-2", port)
            probe(nodes, "node-[0-3]")
            again = probe(nodes, "node-[0-3]")
    finally:
        fresh.fuse.release()
    lines = again.stdout.splitlines()
    told = {line.split(": ")[0]: line for line in lines if not line.startswith(" ")}
    assert "processes" in told["node-0"]
    assert told["node-1"].startswith("node-1: unreachable: ")
    assert told["node-2"].startswith("node-2: garbage: ")
    inside = lines[lines.index(told["node-3"]) + 1 :]
    assert any("gpu_processes: not read (hangs): an earlier one does not end" in i for i in inside)
    assert again.returncode == 1


def test_well_nodes_are_zero_and_json(fresh: Lab, tmp_path: Path) -> None:
    """One document; what was asked and told is there by name."""
    nodes = Nodes(fresh, tmp_path)
    for node in fresh.nodes[:2]:
        (node.bin / "nvidia-smi").write_text("#!/bin/sh\nexit 0\n")
    done = probe(nodes, "node-[0-1]", "--json")
    told = json.loads(done.stdout)
    assert set(told) == {"node-0", "node-1"}
    assert told["node-0"]["answer"] == "answered"
    assert told["node-0"]["memory"]["total"] > 0


@pytest.mark.parametrize(
    "word", ["node-[3-1]", "node-0;reboot", "$(reboot)", "-oProxyCommand=x", ""]
)
def test_what_is_no_node_is_refused(fresh: Lab, tmp_path: Path, word: str) -> None:
    """One line, exit code 64, and no connection."""
    nodes = Nodes(fresh, tmp_path)
    before = [nodes.logins(n.name) for n in fresh.nodes]
    done = probe(nodes, "--", word) if word.startswith("-") else probe(nodes, word)
    assert done.returncode == 64
    assert len(done.stderr.strip().splitlines()) == 1
    assert [nodes.logins(n.name) for n in fresh.nodes] == before
