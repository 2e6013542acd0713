"""Files of the 15-second recorder, and the recorder itself."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from sentinel.checks.gpu import recorder
from sentinel.checks.gpu.recorder import Busy
from sentinel.core.model import Finding, Status
from sentinel.core.values import Duration, Share
from tests.user_files.places import ALICE, MALLORY, file_of, folder_of, shared_folder

HEAD = "#Date Time gpu pwr gtemp sm mem rxpci txpci\n#YYYYMMDD HH:MM:SS Idx W C % % MB/s MB/s\n"
SLURM = Path(__file__).parents[3] / "slurm"
USUAL = Busy()


def line(gpu: int, power: int = 650, sm: int = 99, rx: int = 100) -> str:
    return f" 20261120 21:15:00 {gpu} {power} 61 {sm} 40 {rx} 5\n"


def judged(folder: Path, text: str, busy: Busy = USUAL) -> Finding:
    (folder / "dmon-7-n1.log").write_text(text)
    (found,) = recorder.look([f"{folder}/dmon-*.log"], busy, 10)
    return found


@pytest.mark.parametrize(
    ("bad", "of", "words"),
    [
        (line(1, sm=89), 94, "GPU 1: under 90% utilisation in 6% of 100 samples"),
        (line(1, sm=89), 95, ""),
        (line(1, sm=90), 0, ""),
        (line(1, power=349), 94, "GPU 1: under 350 W in 6% of 100 samples"),
        (line(1, power=350), 0, ""),
        (line(1, rx=20_000), 94, "GPU 1: at or over 20000 MB/s over PCIe in 6% of 100 samples"),
        (line(1, rx=19_999), 0, ""),
    ],
)
def test_a_gpu_that_is_not_at_work(tmp_path: Path, bad: str, of: int, words: str) -> None:
    """More than the share of its samples below, or above, the limit; the share itself is fine."""
    text = HEAD + line(0) * 100 + line(1) * of + bad * (100 - of)
    found = judged(tmp_path, text)
    assert found.subject == "dmon-7-n1.log"
    assert (found.status, found.summary) == (
        (Status.WARNING, words) if words else (Status.OK, "2 GPUs at work")
    )


def test_files_beyond_those_that_are_read_are_unseen(tmp_path: Path) -> None:
    """Each is a node whose GPUs may be idle."""
    for number in range(recorder.MOST + 1):
        (tmp_path / f"dmon-{number}.log").write_text(HEAD + line(0))
    first, *others = recorder.look([f"{tmp_path}/dmon-*.log"], USUAL, 10)
    assert (first.status, first.subject) == (Status.UNKNOWN, "dmon-*.log")
    assert first.summary.startswith("1 files beyond the 512")
    assert len(others) == recorder.MOST


def test_what_others_lay_beside_the_files_hides_none(tmp_path: Path) -> None:
    """Everybody who records may write there: a link to itself, a pipe and a folder."""
    (tmp_path / "dmon-0.log").symlink_to("dmon-0.log")
    (tmp_path / "dmon-1.log").symlink_to(tmp_path / "dmon-7-n1.log")
    os.mkfifo(tmp_path / "dmon-2.log")
    (tmp_path / "dmon-3.log").mkdir()
    found = judged(tmp_path, HEAD + line(0))
    assert (found.subject, found.status) == ("dmon-7-n1.log", Status.OK)


def test_a_folder_that_cannot_be_read_is_unknown_and_the_others_are_not(tmp_path: Path) -> None:
    """What is known of GPUs does not go with it."""
    (tmp_path / "dmon-7-n1.log").write_text(HEAD + line(0))
    missing = tmp_path / "gone"
    first, second = recorder.look([f"{missing}/dmon-*", f"{tmp_path}/dmon-*"], USUAL, 10)
    assert (first.status, first.subject) == (Status.UNKNOWN, "dmon-*")
    assert "No such file" in first.summary
    assert second.status is Status.OK


@pytest.mark.root
def test_one_user_s_many_files_push_out_nobody_else_s(tmp_path: Path) -> None:
    """By their names they come first."""
    with shared_folder() as base:
        for number in range(recorder.MOST + 1):
            file_of(MALLORY, base / f"dmon-{number:03}.log", HEAD + line(0))
        file_of(ALICE, base / "dmon-zz.log", HEAD + line(0, sm=5) * 9)
        found = {f.subject: f.status for f in recorder.look([f"{base}/dmon-*"], USUAL, 60)}
    assert found["dmon-zz.log"] is Status.WARNING


@pytest.mark.root
def test_a_file_is_read_with_its_owner_s_rights(tmp_path: Path) -> None:
    """Root would read through whatever takes its place meanwhile."""
    with shared_folder() as base:
        folder = folder_of(ALICE, base / "private", 0o700)
        file_of(ALICE, folder / "dmon-1.log", HEAD + line(0))
        file_of(MALLORY, folder / "dmon-2.log", HEAD + line(0))
        found = {f.subject: f.status for f in recorder.look([f"{folder}/dmon-*"], USUAL, 60)}
    assert found == {"dmon-1.log": Status.OK, "dmon-2.log": Status.UNKNOWN}


def test_what_is_no_work_can_be_set(tmp_path: Path) -> None:
    """By what the cluster's trainings do."""
    text = HEAD + line(0, sm=80, rx=15_000) * 120
    assert judged(tmp_path, text).status is Status.WARNING
    assert judged(tmp_path, text, Busy(utilization=80)).status is Status.OK
    found = judged(tmp_path, text, Busy(utilization=80, pcie_rx=15_000))
    assert found.summary.startswith("GPU 0: at or over 15000 MB/s over PCIe in 100%")


def test_only_the_last_while_counts(tmp_path: Path) -> None:
    """What was before the checkpoint, or yesterday, is over."""
    text = HEAD + line(0, sm=5) * 1000 + line(0) * 120
    assert judged(tmp_path, text).status is Status.OK
    assert judged(tmp_path, text, Busy(last=Duration(7200))).status is Status.WARNING
    assert judged(tmp_path, text, Busy(last=Duration(7200), share=Share(100))).status is Status.OK


def test_what_is_no_table_is_unknown(tmp_path: Path) -> None:
    """Not fine."""
    assert judged(tmp_path, "No devices were found\n").status is Status.UNKNOWN


def test_files_that_nobody_writes_to_are_left_alone(tmp_path: Path) -> None:
    """Their jobs are over."""
    judged(tmp_path, HEAD + line(0, sm=5) * 10)
    old = time.time() - 3 * 3600
    os.utime(tmp_path / "dmon-7-n1.log", (old, old))
    assert recorder.look([f"{tmp_path}/dmon-*.log"], Busy(), 10) == []


def test_the_recorder_writes_what_is_read(tmp_path: Path) -> None:
    """One file for job and node, appended to."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/args\ncat {tmp_path}/table\n')
    tool.chmod(0o755)
    (tmp_path / "table").write_text(HEAD + line(0) * 3)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "42"}
    for _ in range(2):
        subprocess.run([str(SLURM / "sentinel-dmon.sh"), str(tmp_path)], env=env, check=True)
    (file,) = tmp_path.glob("dmon-42-*.log")
    assert (tmp_path / "args").read_text() == "dmon -s put -o DT -d 15\n"
    (found,) = recorder.look([str(file)], Busy(), 10)
    assert found.status is Status.OK
    victim = tmp_path / "victim"
    file.rename(victim)
    before = victim.read_text()
    file.symlink_to(victim)
    done = subprocess.run([str(SLURM / "sentinel-dmon.sh"), str(tmp_path)], env=env, check=False)
    assert (done.returncode != 0, victim.read_text()) == (True, before)
    file.unlink()
    os.mkfifo(file)
    done = subprocess.run([str(SLURM / "sentinel-dmon.sh"), str(tmp_path)], env=env, timeout=60)
    assert done.returncode != 0
