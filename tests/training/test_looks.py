"""Memory as the kernel counts it: what can be given back is not used."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from sentinel import training
from sentinel.training import end_of_allocation, memory_used
from tests.lab.cluster import Lab
from tests.lab.fuse import Fuse

MEMINFO = "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 900 kB\n"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def v2(limit: object, used: int, cache: int, shmem: int = 0) -> dict[str, str]:
    return {
        "memory.max": f"{limit}\n",
        "memory.current": f"{used}\n",
        "memory.stat": f"anon 1\nfile {cache}\nfile_mapped {cache}\nshmem {shmem}\nslab_reclaimable 0\n",
    }


def v1(limit: int, used: int, cache: int, shmem: int = 0) -> dict[str, str]:
    return {
        "memory.limit_in_bytes": f"{limit}\n",
        "memory.usage_in_bytes": f"{used}\n",
        "memory.stat": f"cache 0\ntotal_cache {cache}\ntotal_shmem {shmem}\n",
    }


@pytest.mark.parametrize(
    ("group", "share"),
    [
        (v2(1000, 950, 0), 0.95),
        (v2(1000, 950, 700), 0.25),  # cache, also of mapped files, can be given back
        (v2(1000, 950, 700, 600), 0.85),  # tmpfs cannot
        (v2("max", 950, 0), 0.1),  # the host's own
    ],
)
def test_version_2_of_cgroups(tmp_path: Path, group: dict[str, str], share: float) -> None:
    base = "sys/fs/cgroup/system.slice/slurmstepd.scope/job_7"
    write(tmp_path, {"proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_7/step_0\n"})
    write(tmp_path, {f"{base}/{name}": text for name, text in group.items()})
    assert memory_used(str(tmp_path)) == pytest.approx(share)


@pytest.mark.parametrize(
    ("group", "share"),
    [
        (v1(1000, 950, 0), 0.95),
        (v1(1000, 950, 700), 0.25),
        (v1(1000, 950, 700, 600), 0.85),
        (v1(2**63 - 4096, 950, 0), 0.1),
    ],
)
def test_version_1_of_cgroups(tmp_path: Path, group: dict[str, str], share: float) -> None:
    base = "sys/fs/cgroup/memory/slurm/uid_0/job_7"
    write(tmp_path, {"proc/self/cgroup": "4:memory:/slurm/uid_0/job_7/step_0/task_1\n3:cpu:/\n"})
    write(tmp_path, {f"{base}/{name}": text for name, text in group.items()})
    assert memory_used(str(tmp_path)) == pytest.approx(share)


@pytest.mark.parametrize(
    ("files", "share"),
    [
        ({**v2(1000, 950, 0), "memory.stat": "file 0\nshmem 0\nslab_reclaimable 400\n"}, 0.55),
        ({**v2(1000, 950, 0), "memory.stat": "file 300\nshmem 0\n"}, 0.65),
        (v2(1000, 950, 5000), 0.1),  # more cache than use: counted at another moment
        (v2(2, 0, 0), 0.1),
        (v2(2, 1, 0), 0.5),
        (v2(1, 1, 0), 1.0),
        (v2(0, 1, 0), 1.0),  # no memory is allowed: full, and no division by zero
        (v2(20, 21, 0), 1.05),
    ],
)
def test_odd_numbers_of_version_2(tmp_path: Path, files: dict[str, str], share: float) -> None:
    """Slab that can be given back is no use; a group of its own path with a colon is found."""
    write(tmp_path, {"proc/self/cgroup": "0::/job:7\n"})
    write(tmp_path, {f"sys/fs/cgroup/job:7/{name}": text for name, text in files.items()})
    assert memory_used(str(tmp_path)) == pytest.approx(share)


@pytest.mark.parametrize(
    ("files", "share"),
    [
        ({**v1(1000, 950, 0), "memory.stat": "total_cache 300\n"}, 0.65),
        (v1(1000, 950, 5000), 0.1),
        (v1(2, 0, 0), 0.1),
        (v1(2, 1, 0), 0.5),
        (v1(1, 1, 0), 1.0),
        (v1(0, 1, 0), 1.0),
        (v1(2**60 - 1, 2**60 - 1, 0), 1.0),
    ],
)
def test_odd_numbers_of_version_1(tmp_path: Path, files: dict[str, str], share: float) -> None:
    """As of version 2; the hierarchy may have several controllers."""
    write(tmp_path, {"proc/self/cgroup": "4:cpu,memory:/job\n"})
    write(tmp_path, {f"sys/fs/cgroup/memory/job/{name}": text for name, text in files.items()})
    assert memory_used(str(tmp_path)) == pytest.approx(share)


def test_both_versions_side_by_side(tmp_path: Path) -> None:
    """Version 2 below `unified` where the first has the place; a file that is missing costs itself."""
    write(tmp_path, {"proc/self/cgroup": "0::/job\n4:memory:/other\n"})
    assert memory_used(str(tmp_path)) == pytest.approx(0.1)
    write(tmp_path, {f"sys/fs/cgroup/unified/job/{n}": t for n, t in v2(10, 7, 0).items()})
    assert memory_used(str(tmp_path)) == pytest.approx(0.7)
    write(tmp_path, {"sys/fs/cgroup/job/memory.max": "10\n"})
    assert memory_used(str(tmp_path)) == pytest.approx(0.7)


def test_the_tightest_of_the_groups_above_counts(tmp_path: Path) -> None:
    """A step may have room where its job has none."""
    write(tmp_path, {"proc/self/cgroup": "0::/job/step\n"})
    write(tmp_path, {f"sys/fs/cgroup/job/step/{n}": t for n, t in v2(1000, 100, 0).items()})
    write(tmp_path, {f"sys/fs/cgroup/job/{n}": t for n, t in v2(1000, 970, 0).items()})
    assert memory_used(str(tmp_path)) == pytest.approx(0.97)


def test_a_container_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    """Its path names folders that are not there."""
    write(tmp_path, {"proc/self/cgroup": "0::/../../docker/abc\n"})
    write(tmp_path, {f"sys/fs/cgroup/{n}": t for n, t in v2(1000, 930, 0).items()})
    assert memory_used(str(tmp_path)) == pytest.approx(0.93)


@pytest.fixture
def group(as_root: None) -> Iterator[Path]:
    """A memory cgroup of the running kernel with a limit of 200 MB, of whichever version."""
    first, second = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    parent, limit = (
        (first, "memory.limit_in_bytes")
        if (first / "memory.limit_in_bytes").exists()
        else (second, "memory.max")
    )
    path = parent / f"sentinel-test-{os.getpid()}"
    path.mkdir()
    (path / limit).write_text("200000000")
    yield path
    path.rmdir()


GROW = """\
import os, sys, tempfile
open(sys.argv[1] + "/cgroup.procs", "w").write(str(os.getpid()))
from sentinel.training import memory_used
print(memory_used())
with open(sys.argv[2], "wb") as file:
    file.write(bytes(1) * 100_000_000); file.flush(); os.fsync(file.fileno())
print(memory_used())
kept = bytearray(b"x") * 100_000_000
print(memory_used())
"""


def test_page_cache_is_no_use_and_memory_is_in_a_real_group(group: Path, tmp_path: Path) -> None:
    """100 MB written to a file leave the share as it was; 100 MB kept make half of 200."""
    told = subprocess.run(
        [sys.executable, "-c", GROW, str(group), str(tmp_path / "file")],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout.split()  # fmt: skip
    before, cached, kept = (float(word) for word in told)
    assert cached - before < 0.1
    assert before < 0.3
    assert 0.45 < kept < 0.8  # of what was there before the kernel may have taken some back


@pytest.fixture
def in_job(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("SLURM_JOB_END_TIME", raising=False)
    monkeypatch.setenv("SQUEUE_STATES", "PENDING")
    return monkeypatch


def test_the_end_is_that_of_the_very_element(fresh: Lab, in_job: pytest.MonkeyPatch) -> None:
    """The last element of an array has the array's number, by which squeue lists all of them.

    What a user set for squeue (here SQUEUE_STATES) does not hide the job.
    """
    array = fresh.sbatch("sleep 600", array="0-2", time=10)
    fresh.wait_state(array, "RUNNING")
    fresh.ask(["scontrol", "update", f"JobId={array}_0", "TimeLimit=5"])
    fresh.ask(["scontrol", "update", f"JobId={array}_2", "TimeLimit=20"])
    in_job.setenv("SLURM_CONF", fresh.env["SLURM_CONF"])
    rows = fresh.ask(["squeue", "-h", "-j", array, "-o", "%A %K"]).splitlines()
    limits = {"0": 5, "1": 10, "2": 20}
    found = {}
    for job_id, task in map(str.split, rows):
        in_job.setenv("SLURM_JOB_ID", job_id)
        found[task] = round(((end_of_allocation() or 0) - time.time()) / 60)
    assert found == limits
    fresh.scancel(array)


@pytest.mark.parametrize(("job", "end"), [("7", 222.0), ("9", None), ("70", None)])
def test_of_several_rows_that_of_the_job_counts(
    tmp_path: Path, in_job: pytest.MonkeyPatch, job: str, end: float | None
) -> None:
    """In whatever order; one without a limit has no end."""
    (tmp_path / "squeue").write_text("#!/bin/sh\nprintf '8 111\\n7 222\\n9 N/A\\n'\n")
    (tmp_path / "squeue").chmod(0o755)
    in_job.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    in_job.setenv("SLURM_JOB_ID", job)
    assert end_of_allocation() == end


@pytest.mark.filterwarnings("ignore:subprocess .* is still running")
def test_a_squeue_that_hangs_in_the_kernel_does_not_hang_the_training(
    fuse: Fuse, tmp_path: Path, in_job: pytest.MonkeyPatch
) -> None:
    """Its slurm.conf may lie on a file system that hangs: not even SIGKILL ends it then."""
    (tmp_path / "squeue").write_text(f"#!/bin/sh\nexec cat {fuse.point}/data\n")
    (tmp_path / "squeue").chmod(0o755)
    in_job.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    in_job.setenv("SLURM_JOB_ID", "7")
    in_job.setattr(training, "SLURM_LIMIT", 0.3)
    fuse.hold("open")
    said: list[str] = []

    def ask() -> None:
        try:
            end_of_allocation()
        except subprocess.TimeoutExpired as error:
            said.append(str(error))

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(10)
    alive = thread.is_alive()
    fuse.release()
    assert not alive
    assert "timed out after 0.3 seconds" in said[0]
