"""The script of a job and the quick look of an epilog, with programs that really run."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sentinel.actions.diag import JOB_SCRIPT_PATH
from sentinel.checks.diag import archive, epilog_test
from sentinel.core.clock import SECOND, Instant
from tests.lab.gpus import PERSISTENCE, Failure, dcgmi_json, gpus_of, nvidia_smi

SENTINEL = str(Path(sys.executable).with_name("sentinel"))
SLURM = Path(__file__).parents[3] / "slurm"


class Bin:
    """A folder of stand-ins, first in PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.put("nvidia-smi", nvidia_smi(gpus_of(0)))

    def put(self, name: str, text: str, code: int = 0, before: str = ":") -> None:
        (self.folder / f"{name}.out").write_text(text)
        script = self.folder / name
        script.write_text(
            f'#!/bin/sh\n{before}\necho "$@" >>"$0.args"\ncat "$0.out"\nexit {code}\n'
        )
        script.chmod(0o755)

    def run(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder}:{os.environ['PATH']}"
        return subprocess.run(
            argv,
            env={**os.environ, "PATH": path, **env},
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture
def tools(tmp_path: Path) -> Bin:
    return Bin(tmp_path / "bin")


def test_the_job_leaves_everything(tools: Bin, tmp_path: Path) -> None:
    """Output, UUIDs, and last the exit code; the verdict names the GPU."""
    tools.put("dcgmi", dcgmi_json("4", [Failure(gpu=5)]), 226)
    out = str(tmp_path / "deep" / "dcgmi-r2-n0-20261120T211500Z.json")
    assert tools.run("sh", JOB_SCRIPT_PATH, "2", out, "30").returncode == 0
    assert archive.find_finished_runs([out, "/nowhere"]) == {out}
    found, gpus = archive.read_diag_verdict(out, 2, 8)
    assert found.outcome == "fail"
    assert archive.identify_gpu(found.blames[0], gpus)[0] == gpus_of(0)[5].uuid
    assert (tools.folder / "dcgmi.args").read_text() == "diag -r 2 -j\n"
    assert [f.name for f in archive.list_outputs(str(tmp_path / "deep"))] == [os.path.basename(out)]


def test_root_writes_through_nobodys_link(tools: Bin, tmp_path: Path) -> None:
    """Names of outputs can be guessed: in a folder that others write to, a link may lie there."""
    tools.put("dcgmi", dcgmi_json("4"))
    precious, out = tmp_path / "precious", tmp_path / "dcgmi-r1-n0-20261120T211500Z.json"
    precious.write_text("keys")
    for suffix in (".part", ".err", ".rc.part"):
        Path(f"{out}{suffix}").symlink_to(precious)
    tools.run("sh", JOB_SCRIPT_PATH, "1", str(out), "5")
    assert precious.read_text() == "keys"
    now = Instant(wall=1_800_000_000 * SECOND)
    name = archive.make_output_name(1, os.uname().nodename.partition(".")[0], now)
    (tmp_path / name).symlink_to(precious)
    assert "File exists" in epilog_test._archive_output(str(tmp_path), 1, "{}", 0, now)
    assert precious.read_text() == "keys"


def test_root_writes_into_no_device_and_no_folder_of_others(tools: Bin, tmp_path: Path) -> None:
    """A pipe stands for the disk that noclobber of sh(1) opens, and mv moves a file into a directory."""
    tools.put("dcgmi", dcgmi_json("4"))
    pipe, folder, out = tmp_path / "pipe", tmp_path / "profile.d", tmp_path / "dcgmi-r1-n0.json"
    os.mkfifo(pipe)
    folder.mkdir()
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    Path(f"{out}.gpus").symlink_to(pipe)
    for name in (f"{out}", f"{out}.rc"):
        Path(name).symlink_to(folder)
    tools.run("sh", JOB_SCRIPT_PATH, "1", str(out), "5")
    assert (os.read(reader, 100), [*folder.iterdir()]) == (b"", [])
    os.close(reader)
    assert archive.find_finished_runs([str(out)]) == {str(out)}
    assert archive.read_diag_verdict(str(out), 1)[0].outcome == "pass"
    assert not [
        path for path in tmp_path.iterdir() if path.is_dir() and path.name.startswith("dcgmi")
    ]


def test_an_output_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    """What it says would be in a message: anybody's secrets."""
    secret = tmp_path / "secret"
    secret.write_text("root:x")
    (tmp_path / "dcgmi-r1-n0-20261120T211500Z.json").symlink_to(secret)
    assert archive.list_outputs(str(tmp_path)) == []


def test_a_diagnostic_that_hangs_is_ended(tools: Bin, tmp_path: Path) -> None:
    """From outside, by the job's own limit: inconclusive."""
    tools.put("dcgmi", "", before="sleep 600")
    out = str(tmp_path / "dcgmi-r3-n0-20261120T211500Z.json")
    tools.run("sh", JOB_SCRIPT_PATH, "3", out, "1")
    found, _ = archive.read_diag_verdict(out, 3)
    assert (found.outcome, found.why) == ("inconclusive", "it was ended for taking too long")


def test_without_dcgmi_the_job_says_so(tools: Bin, tmp_path: Path) -> None:
    """127 is what the shell says of a program that is not there."""
    out = str(tmp_path / "dcgmi-r1-n0-20261120T211500Z.json")
    tools.run("sh", JOB_SCRIPT_PATH, "1", out, "5")
    assert archive.read_diag_verdict(out, 1)[0].outcome == "inconclusive"


@pytest.mark.parametrize(
    ("text", "exit_code", "code", "words"),
    [
        (dcgmi_json("4"), 0, 0, "pass"),
        (dcgmi_json("4", [Failure(gpu=1)]), 226, 1, "fail: GPU 1"),
        (dcgmi_json("4", [PERSISTENCE]), 226, 0, "configuration"),
        (
            dcgmi_json("4", [Failure(gpu=1, error_id=500, text="?", category=8)]),
            226,
            0,
            "inconclusive: unknown fault: GPU 1",
        ),
        ("Error: unable to establish a connection to the specified host", 235, 0, "host engine"),
        ("", 217, 0, "busy"),
        ("GPU is lost", 238, 1, "lost"),
    ],
)
def test_an_epilog_ends_with_1_only_for_a_confirmed_fault(
    tools: Bin, text: str, exit_code: int, code: int, words: str
) -> None:
    """Any other end of it than 0 drains the node: slurm.conf(5), Epilog."""
    tools.put("dcgmi", text, exit_code)
    done = tools.run(
        str(SLURM / "sentinel-epilog-dcgm.sh"), SENTINEL=SENTINEL, SLURM_JOB_GPUS="0,1,2,3,4,5,6,7"
    )
    assert (done.returncode, words in done.stdout) == (code, True), done.stdout + done.stderr


def test_an_epilog_that_cannot_test_drains_nothing(tools: Bin) -> None:
    """A hang, no dcgmi, no sentinel, no GPUs of this job's."""
    epilog = str(SLURM / "sentinel-epilog-dcgm.sh")
    settings = {"SENTINEL": SENTINEL, "SLURM_JOB_GPUS": "0", "SENTINEL_DIAG_LIMIT": "1"}
    assert "cannot start dcgmi" in tools.run(epilog, **settings).stdout
    tools.put("dcgmi", dcgmi_json("4", [Failure(gpu=0)]), before="sleep 60")
    late = tools.run(epilog, **settings)
    assert (late.returncode, "timed out" in late.stdout) == (0, True)
    assert tools.run(epilog, **{**settings, "SENTINEL": "/nowhere"}).returncode == 0
    assert tools.run(epilog, **{**settings, "SLURM_JOB_GPUS": ""}).stdout == ""


@pytest.mark.parametrize("script", ["sentinel-epilog-dcgm.sh", "sentinel-prolog-gpus.sh"])
def test_a_broken_installation_drains_nothing(tools: Bin, script: str) -> None:
    """A Python that misses a module ends with 1, as a fault does: every node would be drained."""
    broken = tools.folder / "broken"
    broken.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'import no_such_module'\n")
    broken.chmod(0o755)
    done = tools.run(str(SLURM / script), SENTINEL=str(broken), SLURM_JOB_GPUS="0")
    assert (done.returncode, "ModuleNotFoundError" in done.stderr) == (0, True)


def test_an_epilog_tests_only_the_gpus_of_its_job(tools: Bin, tmp_path: Path) -> None:
    """Others' may be at work; what it saw goes into the archive where there is one."""
    tools.put("dcgmi", dcgmi_json("4", gpus=2), 0)
    settings = {"SENTINEL": SENTINEL, "SLURM_JOB_GPUS": "2,3"}
    epilog = str(SLURM / "sentinel-epilog-dcgm.sh")
    done = tools.run(epilog, **settings, SENTINEL_DIAG_ARCHIVE=str(tmp_path / "archive"))
    assert "pass" in done.stdout
    assert (tools.folder / "dcgmi.args").read_text() == "diag -r 1 -j -i 2,3\n"
    (file,) = archive.list_outputs(str(tmp_path / "archive"))
    assert archive.read_diag_verdict(str(tmp_path / "archive" / file.name), 1)[0].outcome == "pass"


@pytest.mark.parametrize(
    ("level", "busy", "ran"),
    [("2", 3, False), ("2", 5, True), ("2", None, False), ("1", 3, True)],
)
def test_nobody_computes_on_a_gpu_that_is_put_under_load(
    tools: Bin, level: str, busy: int | None, ran: bool
) -> None:
    """The job that is over may have had only a part of the GPU (shards, MPS), and others the rest."""
    gpus = [replace(g, processes=((7, "train"),) if g.index == busy else ()) for g in gpus_of(0)]
    tools.put("nvidia-smi", "" if busy is None else nvidia_smi(gpus))
    tools.put("dcgmi", dcgmi_json("4", gpus=2))
    done = tools.run(SENTINEL, "diag", "here", "--gpus", "2,3", "--level", level)
    assert (done.returncode, (tools.folder / "dcgmi.args").exists()) == (0, ran), done.stdout
    assert ran or "inconclusive" in done.stdout


def test_a_prolog_ends_with_1_only_for_a_known_lemon(tools: Bin, tmp_path: Path) -> None:
    """By an exported list, signed or not; what cannot be read holds up nothing."""
    prolog, listed = str(SLURM / "sentinel-prolog-gpus.sh"), tmp_path / "lemons.json"
    key, config = tmp_path / "key", tmp_path / "sentinel.yaml"
    key.write_text("a shared key of some length\n")
    config.write_text(f"state: {tmp_path}/state\n")
    env = {"SENTINEL": SENTINEL, "SENTINEL_LEMONS": str(listed), "SENTINEL_CONFIG": str(config)}
    uuid = gpus_of(0)[3].uuid
    tools.run(SENTINEL, "gpus", "mark", uuid, "lemon", "--reason", "RMA 4711", **env)
    listed.write_text(tools.run(SENTINEL, "gpus", "export", "--key-file", str(key), **env).stdout)
    for more in ({}, {"SENTINEL_LEMONS_KEY": str(key)}):
        done = tools.run(prolog, **env, **more)
        assert (done.returncode, f"lemon GPU {uuid}: RMA 4711" in done.stdout) == (1, True)
    key.write_text("another key of some length\n")
    done = tools.run(prolog, **env, SENTINEL_LEMONS_KEY=str(key))
    assert (done.returncode, "cannot tell" in done.stderr) == (0, True)
    by_state = {k: v for k, v in env.items() if k != "SENTINEL_LEMONS"}
    assert tools.run(prolog, **by_state).returncode == 1
    tools.put("nvidia-smi", nvidia_smi(gpus_of(7)))
    assert tools.run(prolog, **env).returncode == 0
    tools.put("nvidia-smi", "", 9)
    assert tools.run(prolog, **env).returncode == 0
