"""What the programs print, in the forms in which people published it, and what is not theirs."""

import json
from typing import Any

import pytest

from sentinel.core.errors import CannotTell
from sentinel.nodes.measures import MAX_VALUE, WrongResult, read_measures

# nccl-tests on 8 H100 (run-ai and Azure guides print the same columns); 2.18 says which test began.
NCCL = """\
# nccl-tests version 2.18.0 nccl-headers=22907 nccl-library=22907
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 8 minBytes 1073741824 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid   4242 on       gpu1 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1073741824     268435456     float     sum      -1   4027.3  266.61  466.57      0   4029.1  266.50  466.37      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 466.47
#
"""

# perftest 4.5 and 6: --report_gbits, and the warning about the CPU's clock that some have between.
IB = """\
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 Link type       : IB
---------------------------------------------------------------------------------------
 local address: LID 0x0a QPN 0x008a PSN 0xfffb6d RKey 0x238f86 VAddr 0x007dd5a3cfd000
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 1500.000000 != 3300.016000. CPU Frequency is not max.
 65536      560845           0.00               98.02                0.186950
---------------------------------------------------------------------------------------
"""

# stream.c 5.10
STREAM = """\
-------------------------------------------------------------
STREAM version $Revision: 5.10 $
-------------------------------------------------------------
Number of Threads requested = 18
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           89633.9     0.001952     0.001785     0.002350
Scale:          90908.8     0.001902     0.001760     0.002532
Add:            72310.4     0.003488     0.003319     0.003956
Triad:          72859.9     0.003479     0.003294     0.004133
-------------------------------------------------------------
Solution Validates: avg error less than 1.000000e-13 on all three arrays
-------------------------------------------------------------
"""


def _print_fio(write: Any = 812_000_000, read: Any = 2_210_000_000, error: int = 0) -> str:
    """fio 3 with --output-format=json; a note of another program stands before it."""
    jobs = [
        {"jobname": name, "error": error, name: {"io_bytes": 1, "bw_bytes": bw, "bw": 1}}
        for name, bw in (("write", write), ("read", read))
    ]
    text = json.dumps({"fio version": "fio-3.33", "jobs": jobs, "disk_util": []}, indent=2)
    return f"note: both iodepth >= 1 and synchronous I/O engine are selected\n{text}\n"


@pytest.mark.parametrize(
    ("test", "text", "measures"),
    [
        ("nccl", NCCL, {"all_reduce": 466.47}),
        ("ib", IB, {"mlx5_0": 98.02}),
        ("ib", IB + IB.replace("mlx5_0", "mlx5_1").replace("98.02", "49.01"), None),
        ("memory", STREAM, {"triad": 72859.9}),
        ("disk", _print_fio(), {"write": 812.0, "read": 2210.0}),
        ("disk", _print_fio(write=0), {"write": 0.0, "read": 2210.0}),
    ],
)
def test_what_the_programs_print(test: str, text: str, measures: dict[str, float] | None) -> None:
    """Of several devices each is a measure of its own, so the weak one is seen."""
    assert read_measures(test, text) == (measures or {"mlx5_0": 98.02, "mlx5_1": 49.01})


@pytest.mark.parametrize(
    ("test", "text"),
    [
        ("nccl", NCCL.replace("values : 0 OK", "values : 3 FAILED")),
        ("memory", STREAM.replace("Solution Validates", "Failed Validation on array a[]")),
    ],
)
def test_wrong_data_is_no_number(test: str, text: str) -> None:
    """However fast the node was."""
    with pytest.raises(WrongResult):
        read_measures(test, text)


IMAGEMAGICK = "Version: ImageMagick 6.9.11-60 Q16\nUsage: stream [options ...] file [ [options] ]\n"


@pytest.mark.parametrize(
    ("test", "text"),
    [
        ("nccl", ""),
        ("nccl", NCCL.partition("# Out of")[0]),
        ("nccl", "gpu1: Test NCCL failure common.cu:958 'invalid usage'"),
        ("ib", IB.replace("[Gb/sec]", "[MB/sec]")),
        ("ib", IB.partition(" 65536")[0]),
        ("ib", IB.replace("98.02", "nan")),
        ("memory", IMAGEMAGICK),
        ("memory", STREAM.partition("Solution")[0]),
        ("disk", ""),
        ("disk", _print_fio()[:200]),
        ("disk", _print_fio(write="fast")),
        ("disk", _print_fio(write=None)),
        ("disk", _print_fio(write=float("nan"))),
        ("disk", _print_fio(write=-1)),
        ("disk", _print_fio(write=MAX_VALUE * 1e7)),
        ("disk", _print_fio(error=5)),
        ("disk", "[" * 100_000),
        ("disk", '{"jobs": ' * 20_000),
        ("disk", '{"jobs": {"write": 1}}'),
        ("disk", "\x00\x1b[31m\u202e" * 100),
    ],
)
def test_what_is_not_understood_tells_nothing(test: str, text: str) -> None:
    """Cut short, another program of that name, another unit, no number: cannot tell."""
    with pytest.raises(CannotTell):
        read_measures(test, text)
