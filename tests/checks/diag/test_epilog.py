"""Prolog and epilog as slurmd runs them, and what a job's owner can do to them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import needs
from tests.lab.cluster import Lab
from tests.lab.gpus import Failure, dcgmi_json, gpus_of, nvidia_smi
from tests.lab.systemd import ROOT
from tests.lab.waiting import wait_until

SENTINEL = Path(sys.executable).with_name("sentinel")
EPILOG, PROLOG = (ROOT / "slurm" / f"sentinel-{name}.sh" for name in ("epilog-dcgm", "prolog-gpus"))
SHELLS = pytest.mark.parametrize("shell", [["sh"], ["bash", "--posix"]], ids=["sh", "bash"])


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A cluster of its own: a reconfigured one runs its old epilog for a while."""
    if missing := needs.why_no_lab():
        needs.skip(missing)
    with Lab(nodes=1, Epilog=EPILOG) as lab:
        (lab.nodes[0].bin / "sentinel").symlink_to(SENTINEL)  # /usr/local/sbin of the node
        yield lab


def dcgmi(folder: Path, text: str, code: int) -> Path:
    """A stand-in that writes down how often it was run; the file it does so in."""
    (folder / ".dcgmi.out").write_text(text)
    fresh = folder / ".dcgmi"
    fresh.write_text(
        f'#!/bin/sh\necho "$@" >>{folder}/.ran\ncat {folder}/.dcgmi.out\nexit {code}\n'
    )
    fresh.chmod(0o755)
    fresh.replace(folder / "dcgmi")
    return folder / ".ran"


@pytest.mark.lab
def test_slurm_drains_a_node_by_its_epilog_and_by_nothing_that_a_user_writes(
    lab: Lab,
) -> None:
    """Slurm hands over none of slurmd's variables, not even PATH, and much that the owner chose."""
    node, eve = lab.nodes[0], lab.user("eve")
    ran, pwned = dcgmi(node.bin, dcgmi_json("4", gpus=1), 0), lab.work / "pwned"
    evil = f"$(touch {pwned})`touch {pwned}`\n;touch {pwned};\ndcgmi diag -r 1: fail: GPU 0\n"
    for name in ("dcgmi", "sentinel", "timeout", "flock", "mktemp"):
        program = lab.work / name
        program.write_text(f"#!/bin/sh\ntouch {pwned}\nexit 1\n")
        program.chmod(0o755)
    env = f"ALL,PATH={lab.work},SENTINEL={lab.work}/sentinel,SLURM_JOB_ID=1,SLURM_JOB_GPUS=7"
    for comment in (evil, evil + "x" * 800):
        before = ran.read_text() if ran.exists() else ""
        asked = {"gres": "gpu:1", "comment": comment, "export": env, "chdir": lab.work}
        lab.sbatch("/bin/true; exit 1", name="--gpus $(id)", user=eve, **asked)
        wait_until(lambda old=before: ran.exists() and ran.read_text() != old, "an epilog", 30)
    wait_until(lambda: lab.node("node-0")["State"] == "IDLE", "an idle node", 30)
    assert ran.read_text() == "diag -r 1 -j -i 0\n" * 2
    assert not pwned.exists()
    dcgmi(node.bin, dcgmi_json("4", [Failure(gpu=0)], gpus=1), 226)
    lab.sbatch("true", user=eve, gres="gpu:1")
    lab.wait_node("node-0", "DRAIN")
    assert "pilog error" in lab.node("node-0")["Reason"]


@pytest.mark.lab
def test_slurm_drains_a_node_by_its_prolog_and_holds_the_job(tmp_path: Path) -> None:
    """Where the list names a GPU of this node; the other node takes its job. slurmd hands a prolog no
    variable, so its settings stand in the file."""
    if missing := needs.why_no_lab():
        needs.skip(missing)
    listed, prolog = tmp_path / "lemons.json", tmp_path / "prolog.sh"
    unset, text = "SENTINEL_LEMONS=${SENTINEL_LEMONS:-}", PROLOG.read_text()
    assert unset in text
    prolog.write_text(text.replace(unset, f"SENTINEL_LEMONS={listed}"))
    prolog.chmod(0o755)
    gpu = {"uuid": gpus_of(0)[3].uuid, "judged": "lemon", "why": "RMA 4711", "seen": 1}
    document = {"form": "sentinel-gpus-1", "cluster": "lab", "at": 1, "signature": ""}
    listed.write_text(
        json.dumps({**document, "gpus": [{**gpu, "serial": "", "score": 0.0, "node": ""}]})
    )
    with Lab(nodes=2, Prolog=prolog) as lab:
        for number, node in enumerate(lab.nodes):
            (node.bin / "sentinel").symlink_to(SENTINEL)
            node.stand_in("nvidia-smi", nvidia_smi(gpus_of(number)))
        done, ran = lab.work / "done", lab.work / "ran"
        lab.sbatch(f"touch {done}", nodelist="node-1")
        held = lab.sbatch(f"touch {ran}", nodelist="node-0")
        lab.wait_node("node-0", "DRAIN")
        assert "rolog error" in lab.node("node-0")["Reason"]
        wait_until(done.exists, "the job of the healthy node", 30)
        asked = ["squeue", "-h", "-j", held, "-o", "%T %r"]
        wait_until(lambda: lab.ask(asked).strip() == HELD, lambda: lab.ask(asked), 30)
        assert not ran.exists()
        assert "RMA 4711" in (lab.folder / "log/node-0").read_text()


HELD = "PENDING launch failed requeued held"


@SHELLS
@pytest.mark.parametrize("script", [EPILOG, PROLOG], ids=["epilog", "prolog"])
def test_nothing_is_run_from_where_slurmd_stands(
    tmp_path: Path, shell: list[str], script: Path
) -> None:
    """Its last resort is /var/tmp, and bash without a PATH looks into the directory it is in."""
    for name in ("dcgmi", "nvidia-smi", "sentinel"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    for env in ({}, {"PATH": ""}, {"SENTINEL": str(SENTINEL)}):
        argv = ["env", "-i", *(f"{k}={v}" for k, v in env.items()), "SLURM_JOB_GPUS=0"]
        done = subprocess.run(
            [*argv, *map("/bin/".__add__, shell[:1]), *shell[1:], str(script)],
            cwd=tmp_path, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert (done.returncode, (tmp_path / "pwned").exists()) == (0, False), done.stderr


@pytest.mark.root
@SHELLS
@pytest.mark.parametrize("script", [EPILOG, PROLOG], ids=["epilog", "prolog"])
def test_a_full_disk_drains_nothing(shell: list[str], script: Path, as_root: None) -> None:
    """A shell ends at once where `exec` cannot open a file: with 1 or 2, for which Slurm drains."""
    mount = "mount -t tmpfs -o nr_inodes=2 none /run && exec env -i SLURM_JOB_GPUS=0"
    argv = ["unshare", "--mount", "sh", "-c", f'{mount} "$@"', "sh", *shell, str(script)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "alive" in done.stderr) == (0, True), done.stderr
