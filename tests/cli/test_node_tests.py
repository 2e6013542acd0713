"""`sentinel nodes test` and `exclude` on a real cluster: what nodes say, and what is made of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.client import Done
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until


class Bench:
    """Somebody at the login node, with a state of their own."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        (folder / "sentinel.yaml").write_text(
            f"state: {folder}/state\nchecks: {{root: {{kind: fs, paths: [/]}}}}\n"
            "channels: {out: {kind: console}}\n"
        )

    def say(self, *words: object) -> Done:
        argv = [sys.executable, "-m", "sentinel", "nodes", *map(str, words)]
        at = argv.index("--command") if "--command" in argv else len(argv)
        argv[at:at] = ["-c", str(self.folder / "sentinel.yaml")]
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=100,
            env={**self.lab.env, "HOME": str(self.folder)},
            cwd=self.lab.work,
            check=False,
        )


@pytest.fixture
def bench(fresh: Lab, tmp_path: Path) -> Bench:
    return Bench(fresh, tmp_path)


def test_pairs_and_files_of_healthy_nodes(bench: Bench) -> None:
    """Three nodes, so that one is paired twice: all pass, and no job is left."""
    done = bench.say("test", "node-[0-2]", "--test", "network", "--test", "fs", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    for test in ("network", "fs"):
        assert {v["node"]: v["word"] for v in told[test]} == {f"node-{i}": "pass" for i in range(3)}
    wait_until(lambda: not bench.lab.ask(["squeue", "-h"]), "the end of all jobs")
    assert not list(bench.lab.work.glob(".sentinel-test-*"))


def test_gpus_that_nvidia_smi_shows_and_torch_that_is_missing(bench: Bench) -> None:
    """Missing is no failure and no pass; a node with too few GPUs fails."""
    smi = bench.lab.nodes[1].bin / ".nvidia-smi.out"
    smi.write_text(smi.read_text().partition("\n")[0] + "\n")
    done = bench.say("test", "node-[0-1]", "--test", "cuda")
    assert done.returncode == 1
    assert "cuda: FAIL     node-1: nvidia-smi shows 1 of 8 GPUs" in done.stdout
    assert "cuda: MISSING  node-0: no torch in " in done.stdout


def test_a_node_that_fails_is_left_out_until_it_passes(bench: Bench) -> None:
    """stdout is the value of --exclude= and nothing else; the log tells it as well."""
    script = "test $SLURMD_NODENAME != node-1 || { echo cable is loose; exit 3; }"
    failed = bench.say("test", "node-[0-2]", "--command", "/bin/sh", "-c", script)
    assert failed.returncode == 1
    assert "command: FAIL     node-1: exit code 3: cable is loose" in failed.stdout
    bench.lab.ask(["scontrol", "update", "nodename=node-3", "state=drain", "reason=bad dimm"])
    out = bench.say("exclude")
    assert (out.stdout, out.returncode) == ("node-[1,3]\n", 0)
    assert "node-1: test command: fail: exit code 3: cable is loose" in out.stderr
    assert "node-3: IDLE: bad dimm" in out.stderr
    assert out.stderr.startswith("2 nodes: node-[1,3]\n")
    history = bench.say("list", "--history", "node-1").stdout
    assert "fail: exit code 3: cable is loose" in history
    value = f"--exclude={out.stdout.strip()}"
    assert bench.lab.ask(["srun", value, "hostname"]).strip() in ("node-0", "node-2")
    assert bench.say("test", "node-1", "--command", "/bin/true").returncode == 0
    assert bench.say("exclude").stdout == "node-3\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--command", "/no/such/test"],
            "MISSING  node-0: /no/such/test: No such file or directory",
        ),
        (
            ["--test", "fs", "--partition", "nosuch"],
            "UNTESTED node-0: srun: error: invalid partition",
        ),
        (["--test", "fs", "--path", "/no/such"], "FAIL     node-0: FileNotFoundError: "),
    ],
)
def test_what_cannot_be_tested_is_told_in_one_line(
    bench: Bench, words: list[str], told: str
) -> None:
    """No command there, a partition that refuses, a path that is none; nothing is changed."""
    done = bench.say("test", "node-0", *words)
    assert (done.returncode, done.stderr) == (1, "1 node: node-0\n")
    assert told in done.stdout
    assert len(done.stdout.splitlines()) == 1
    assert bench.lab.ask(["squeue", "-h"]) == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["test", "--test", "bogus"], "there is no test 'bogus'; there are: cuda, "),
        (["test", "node-9", "--test", "fs"], "Slurm knows no node node-9"),
        (["test", "--command"], "--command needs the words"),
        (["test", "--test", "command"], "belong together"),
        (["test", "--time", "0"], "--time: must be 1 minute or more"),
        (["exclude", "--within", "soon"], "--within: 'soon' is no duration"),
    ],
)
def test_a_wrong_call_is_told_before_anything_runs(
    bench: Bench, words: list[str], told: str
) -> None:
    """Exit code 64."""
    done = bench.say(*words)
    assert (done.returncode, done.stdout) == (64, "")
    assert told in done.stderr


def test_exclude_needs_no_state_and_makes_none(bench: Bench) -> None:
    """Nothing bad: an empty value, which sbatch takes."""
    assert bench.say("exclude").stdout == "\n"
    assert not os.path.exists(bench.folder / "state")
    assert bench.lab.ask(["srun", "--exclude=", "echo", "ran"]) == "ran\n"
