"""Recorded on an H200 with driver 580.159.04 (serial number and UUID changed): at work, then idle,
then with a kernel that traps and one that stores to a misaligned address.

The files lie in h200/: `nvidia-smi -q -x`, `nvidia-smi dmon -s put -o DT`, and the driver's lines of the kernel's log.
"""

import shutil
from pathlib import Path

import pytest

from sentinel.checks.gpu import judge, recorder
from sentinel.checks.gpu.recorder import Busy
from sentinel.core.model import Status
from sentinel.gpu import smi, xid
from sentinel.gpu.advice import Advice
from tests.world.logs import of_whole_log

HERE = Path(__file__).parent / "h200"


def test_a_healthy_gpu_at_work_is_read_whole_and_is_no_trouble() -> None:
    """Nothing in the page of this driver is unknown."""
    (gpu,) = smi.parse((HERE / "busy.xml").read_text()).gpus
    assert (gpu.model, gpu.utilization, gpu.bus) == ("NVIDIA H200", 99, "00000000:00:06.0")
    assert (gpu.unknown, gpu.remarks, gpu.troubles) == ((), (), ())
    assert [occupant.pid for occupant in gpu.processes] == [1899]
    assert list(judge.problems(gpu, judge.WARN, judge.CRIT)) == []


def test_what_a_program_did_is_no_trouble_of_its_gpu() -> None:
    """A trap is Xid 43, a misaligned store is Xid 13 in three lines; both name the GPU by its slot."""
    lines = (HERE / "kernel.txt").read_text().splitlines()
    told = xid.read([line.partition("] ")[2] for line in lines])
    assert {event.bus for event in told.events} == {"00000000:00:06.0"}
    assert {event.code for event in told.events} == {13, 43}
    assert {event.advice for event in told.events} == {Advice.IGNORE, Advice.RESTART_APP}


@pytest.mark.parametrize(
    ("file", "status", "words"),
    [
        ("busy.dmon", Status.OK, "1 GPU at work"),
        (
            "idle.dmon",
            Status.WARNING,
            "GPU 0: under 90% utilisation in 100% of 6 samples (and 1 more)",
        ),
    ],
)
def test_the_recorder_tells_work_from_idleness(
    tmp_path: Path, file: str, status: Status, words: str
) -> None:
    """Columns of a driver that counts jpg and ofa too."""
    shutil.copyfile(HERE / file, tmp_path / file)
    (found,) = recorder.look([str(tmp_path / file)], Busy(), 10)
    assert (found.status, found.summary) == (status, words)


TRACEBACK = """\
step 25 | loss 1.0384
Traceback (most recent call last):
  File "/w/train.py", line 25, in <module>
    cupy.cuda.runtime.deviceSynchronize()
  File "cupy_backends/cuda/api/runtime.pyx", line 146, in cupy_backends.cuda.api.runtime.check_status
cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorMisalignedAddress: misaligned address
"""
"""What the second program printed, by CuPy 14.2."""


def test_an_error_of_the_runtime_is_a_cuda_error_by_its_name(tmp_path: Path) -> None:
    """It was an exception like any other; the hint that names one is none."""
    assert of_whole_log(tmp_path, TRACEBACK).cause.startswith("CUDA error")
    hint = "Search for `cudaErrorAssert' in the documentation for more information.\n"
    assert of_whole_log(tmp_path, "step 25 | loss 1.0384\n" + hint).cause == ""
