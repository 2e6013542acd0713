"""On a real Slurm: a wave over four nodes, a failure, the drain, and the same GPU elsewhere."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cluster import Lab
from tests.lab.gpus import Failure, dcgmi_json, gpus_of, nvidia_smi
from tests.nodes.nodes import Nodes

pytestmark = pytest.mark.lab
SENTINEL = str(Path(sys.executable).with_name("sentinel"))
CONFIG = """\
cluster: lab
state: {state}
remote: {{via: ssh, ssh_options: "-F {ssh} -o UserKnownHostsFile={known}"}}
guard: {{breaker: {{share: 100%}}}}
channels: {{book: {{kind: file, path: {book}}}}}
checks:
  gpus: {{kind: gpu, nodes: all, drain: true, limits: {{share: 100%, cooldown: 0s}}}}
  burn-in:
    kind: diag
    nodes: idle
    level: 2
    share: 50%
    archive: {archive}
    on_fail: drain
"""


class Site:
    """The lab with GPUs, and a sentinel that looks after it by ticks."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.nodes = lab, Nodes(lab, folder)
        self.archive, self.book = folder / "archive", folder / "book.jsonl"
        self.config, self.go = folder / "sentinel.yaml", folder / "go"
        self.config.write_text(
            CONFIG.format(
                state=folder / "state",
                ssh=self.nodes.config,
                known=self.nodes.known,
                book=self.book,
                archive=self.archive,
            )
        )
        for number, node in enumerate(lab.nodes):
            node.stand_in("nvidia-smi", nvidia_smi(gpus_of(number)))
            self.dcgmi(number)

    def dcgmi(self, number: int, *failures: Failure) -> None:
        """What dcgmi prints there, once the test lets it (`go`)."""
        node = self.lab.nodes[number]
        node.stand_in("dcgmi", dcgmi_json("4", failures, node=number), 226 if failures else 0)
        script, wait = node.bin / "dcgmi", f"until [ -e {self.go} ]; do sleep 0.1; done"
        script.write_text(script.read_text().replace("cat ", f"{wait}\ncat ", 1))

    def sentinel(self, *words: str, code: int | None = 0) -> str:
        done = self.lab.run([SENTINEL, *words, "-c", str(self.config)], limit=60)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def tick(self) -> None:
        self.sentinel("tick", "--all", code=None)

    def running(self) -> int:
        """Diagnostics in the queue now."""
        out = self.lab.ask(["squeue", "-h", "-o", "%j"])
        return sum(line.startswith("sentinel-diag-") for line in out.splitlines())

    def outputs(self) -> list[str]:
        return sorted(p.name for p in self.archive.glob("dcgmi-r2-*.json.rc"))

    def alerts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.book.read_text().splitlines()]


@pytest.fixture
def site(fresh: Lab, tmp_path: Path) -> Site:
    return Site(fresh, tmp_path)


@pytest.mark.long
def test_a_wave_a_failure_and_the_same_gpu_under_another_name(site: Site) -> None:
    """Two of four at once; node-2 fails and is drained; its lemon is known on node-3."""
    site.dcgmi(2, Failure(gpu=5))
    for _ in range(2):
        site.tick()  # each a process of its own: runs are followed across restarts
        assert site.running() == 2
    site.go.touch()
    deadline = time.monotonic() + 90
    while len(site.outputs()) < 4 and time.monotonic() < deadline:
        site.tick()
        assert site.running() <= 2
    assert len(site.outputs()) == 4
    site.tick()
    bad = gpus_of(2)[5]
    node = site.lab.node("node-2")
    assert "DRAIN" in node["State"]
    assert node["Reason"].startswith(
        "sentinel: dcgmi diag -r 2 failed: GPU 5: memory: Memory error"
    )
    lemons = json.loads(site.sentinel("gpus", "lemons", "--json"))
    assert [(g["gpu"], g["node"], g["held"]) for g in lemons] == [(bad.uuid, "node-2", "lemon")]
    told = [a for a in site.alerts() if a["kind"] == "diag" and a["status"] == "critical"]
    assert bad.uuid in told[0]["summary"]
    assert bad.serial in told[0]["summary"]
    assert site.sentinel("diag", "list", "--json", code=2).count('"pass"') == 3

    exported = site.archive / "lemons.json"
    exported.write_text(site.sentinel("gpus", "export"))
    site.lab.nodes[2].stand_in("nvidia-smi", nvidia_smi(gpus_of(9)))
    site.lab.nodes[3].stand_in("nvidia-smi", nvidia_smi(gpus_of(2)))
    site.tick()
    (alert,) = [a for a in site.alerts() if a["subject"] == f"{bad.uuid}@node-3"]
    assert (alert["status"], alert["reason"]) == ("critical", "firing")
    assert "turned up here; it left node-2 slot" in alert["summary"]
    site.tick()
    assert "DRAIN" in site.lab.node("node-3")["State"]
    boot = f"{SENTINEL} gpus check --list {exported}"
    said = site.nodes.on("node-3", f"{boot}; echo code $?").stdout
    assert bad.uuid in said
    assert "code 1" in said
    assert "code 0" in site.nodes.on("node-0", f"{boot}; echo code $?").stdout


def test_by_hand_on_a_drained_node_it_goes_through_ssh(site: Site) -> None:
    """No job can run there; the verdict is waited for and told."""
    site.lab.ask(["scontrol", "update", "nodename=node-1", "state=drain", "reason=look at it"])
    site.dcgmi(1, Failure(gpu=0, error_id=29, test="software", text="Persistence mode is off"))
    site.go.touch()
    said = site.sentinel("diag", "run", "node-1", "--level", "1", "--wait", code=3)
    assert "inconclusive: configuration: GPU 0: software: Persistence mode is off" in said
    assert site.running() == 0
    assert "look at it" in site.lab.node("node-1")["Reason"]
