"""What versions of perftest, nccl-tests, STREAM and fio print that the code had not met.

The expectations were written before the first run. Layouts are those of the programs' own format strings
and of published outputs (named beside each); the numbers are made up where nothing hangs on them."""

import json

import pytest

from sentinel.core.errors import CannotTell
from sentinel.nodes.measures import WrongResult, read_measures

LINE = "-" * 87 + "\n"
GBITS = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"


def _print_ib(row: str, header: str = GBITS, device: str = "mlx5_0", before: str = "") -> str:
    """perftest's output around its table."""
    return (
        f"{before}{LINE}                    RDMA_Write BW Test\n"
        f" Dual-port       : OFF\t\tDevice         : {device}\n"
        " Number of qps   : 1\t\tTransport type : IB\n"
        f" Link type       : IB\n{LINE}"
        " local address: LID 0x0a QPN 0x008a PSN 0xfffb6d RKey 0x238f86 VAddr 0x007dd5a3cfd000\n"
        f"{LINE}{header}\n{row}\n{LINE}"
    )


IB = {
    # REPORT_FMT since 2024 (MiB): five blanks and two tabs before the rate
    "tabs": (_print_ib(" 65536      560845           0.00               97.29\t\t     0.186950"), 97.29),
    # -a: REPORT_FMT_EXT has six digits where the average is below 0.1
    "six digits": (_print_ib(" 2          5000           0.142947            0.012281            0.767588"), 0.012281),
    # as in a course's notes: a header and rows without the rate
    "no rate": (_print_ib(" 65536      100000         388.41             387.92", GBITS.partition("   MsgRate")[0]), 387.92),
    # a header without the rate above rows that have it (violet-bf3 notes)
    "rate without header": (_print_ib(" 1048576    5000             92.62              92.62              0.011041", GBITS.partition("   MsgRate")[0]), 92.62),
    # --cpu_util: RESULT_EXT_CPU_UTIL, REPORT_EXT_CPU_UTIL
    "processor": (_print_ib(" 65536      5000             51.05              51.04\t\t     0.097356\t    3.21", GBITS + "    CPU_Util[%]"), 51.04),
    # Huawei's hccn_tool prints no peak (vendors rebuild perftest)
    "no peak": (_print_ib("1048576      93205             195.47              0.023302", "#bytes       #iterations       BW average[Gb/sec]      MsgRate[Mpps]"), 195.47),
    # --sl with several levels: RESULT_FMT_G_QOS has one column more
    "service level": (_print_ib(" 65536      3           5000             97.91              97.02                  0.185043", " #bytes    #sl      #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"), 97.02),
    # --report-per-port: RESULT_FMT_G_PER_PORT
    "per port": (_print_ib(" 65536      10000      193.40             193.31\t\t   0.368710        96.70            0.184436              96.61            0.184265", GBITS + "   BW Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]"), 193.31),
    # -b prints this first
    "no peak measured": (_print_ib(" 65536      560845           0.00               181.31\t\t     0.345", before=" WARNING: BW peak won't be measured in this run.\n"), 181.31),
    # perftest 24: further words behind each setting
    "lock free": (_print_ib(" 65536      560845           0.00               98.02\t\t     0.186950").replace("Transport type : IB\n", "Transport type : IB\n PCIe relax order: ON           Lock-free      : OFF\n CQE Poll Batch  : Dynamic\n"), 98.02),
    # linux-rdma/perftest issue 82
    "negative": (_print_ib(" 65536      14580000000      0.00              -11.06\t\t   -0.021091"), None),
    "not a number": (_print_ib(" 65536      0                0.00               -nan\t\t   -nan"), None),
    # MB/sec until 2024, MiB/sec since, if a wrapper drops --report_gbits
    "mebibytes": (_print_ib(" 65536      664644           0.00               6923.37\t\t   0.110774", GBITS.replace("Gb/sec", "MiB/sec")), None),
    # the client that cannot connect
    "no connection": ("Couldn't connect to gpu1:18515\nUnable to open file descriptor for socket connection Unable to init the socket connection\n", None),
    "warm up": (_print_ib("Problems with warm up"), None),
    # RESULT_FMT_LAT: somebody has linked ib_write_lat to that name
    "latency": (_print_ib(" 2       1000          0.81           4.12         0.85               0.93             0.10            1.02             2.10", " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"), None),
}  # fmt: skip


@pytest.mark.parametrize("name", IB)
def test_perftest(name: str) -> None:
    """The average of the device, in the column where the header says it is; nothing else is one."""
    text, average = IB[name]
    _expect("ib", text, None if average is None else {"mlx5_0": average})


def test_names_of_devices() -> None:
    """As distributions and vendors call them."""
    for name in ("rocep65s0f0", "mlx5_bond_0", "ibp5", "hns_2", "roceo1", "mlx5_ib0", "efa_0"):
        row = " 65536      560845           0.00               98.02\t\t     0.186950"
        assert read_measures("ib", _print_ib(row, device=name)) == {name: 98.02}


ROW = "  1073741824     268435456     float     sum      -1   4027.3  266.61  466.57      0   4029.1  266.50  466.37      0\n"  # fmt: skip
FOOT = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 466.47 \n#\n"
NCCL: dict[str, tuple[str, "float | type[Exception]"]] = {
    # 2.19 says at its end which test it was
    "2.19": (f"{ROW}{FOOT}# Collective test concluded: all_reduce_perf\n#\n", 466.47),
    # -c 0: N/A in both columns
    "unchecked": (ROW.replace("      0", "    N/A") + FOOT, 466.47),
    # several sizes: the average is that of all
    "sizes": (ROW * 4 + FOOT.replace("466.47", "448.212"), 448.212),
    # mpirun --tag-output (aws-k8s-tester pull request 503)
    "mpirun": ("".join(f"[1,0]<stdout>:{line}\n" for line in (ROW + FOOT).splitlines()), 466.47),
    # srun --label
    "srun": ("".join(f"0: {line}\n" for line in (ROW + FOOT).splitlines()), 466.47),
    # NCCL_TESTS_MIN_BW is set
    "judged": (ROW + FOOT.replace("466.47 ", "466.47 OK"), 466.47),
    # rccl-tests
    "rccl": (f"{ROW}# Errors with asterisks indicate errors that have exceeded the maximum threshold.\n{FOOT}", 466.47),
    # before March 2019 (nccl-tests issue 7): no # before the summary
    "2018": (" Out of bounds values : 0 OK\n Avg bus bandwidth    : 12.3083\n\n", 12.3083),
    "2018 wrong": (" Out of bounds values : 248 FAILED\n Avg bus bandwidth    : 12.3083\n\n", WrongResult),
    # nccl-tests issue 131
    "wrong": (ROW.replace("      0 ", "     50 ") + FOOT.replace("0 OK", "50 FAILED"), WrongResult),
    # nccl-tests issue 71: one rank, so nothing went over a bus
    "nothing": (ROW + FOOT.replace("466.47", "0"), 0.0),
    # %g of a very small number
    "tiny": (ROW + FOOT.replace("466.47", "5.2e-05"), CannotTell),
    # no size was run
    "no size": (FOOT.replace("466.47", "-nan"), CannotTell),
    # nccl-tests issue 252
    "failure": ("gpu1: Test NCCL failure common.cu:1005 'unhandled system error (run with NCCL_DEBUG=INFO for details)'\n .. gpu1 pid 93: Test failure common.cu:891\n", CannotTell),
    "timeout": (f"{ROW}gpu1: Test timeout (600s) common.cu:523\n .. gpu1 pid 93: Test failure common.cu:613\n", CannotTell),
    # published without its summary
    "no summary": (ROW, CannotTell),
    # nccom-test of AWS Neuron is another program
    "nccom": ("Avg bus bandwidth:      40.6901GB/s\n", CannotTell),
    # one column only, without the line of the check (published notes of an H200)
    "one way": (ROW.partition("      0   4029")[0] + "       0\n# Avg bus bandwidth    : 68.6248\n", CannotTell),
}  # fmt: skip


@pytest.mark.parametrize("name", NCCL)
def test_nccl_tests(name: str) -> None:
    """The summary, wherever it stands; without its check of the values it tells nothing."""
    text, told = NCCL[name]
    if isinstance(told, float):
        _expect("nccl", text, {"all_reduce": told})
    else:
        with pytest.raises(told):
            read_measures("nccl", text)


STREAM_59 = """\
-------------------------------------------------------------
STREAM version $Revision: 5.9 $
-------------------------------------------------------------
Function      Rate (MB/s)   Avg time     Min time     Max time
Copy:       11428.5867       0.0141       0.0140       0.0142
Scale:      11314.9126       0.0142       0.0141       0.0143
Add:        12487.8132       0.0193       0.0192       0.0194
Triad:      12441.2107       0.0194       0.0193       0.0196
-------------------------------------------------------------
Solution Validates
-------------------------------------------------------------
"""
STREAM = {
    "5.9": (STREAM_59, 12441.2107),
    # stream.f ends with an exclamation mark
    "fortran": (STREAM_59.replace("Validates\n", "Validates!\n"), 12441.2107),
    # 5.10 on a node with HBM
    "fast": (STREAM_59.replace("12441.2107", "1304518.6"), 1304518.6),
    "infinite": (STREAM_59.replace("12441.2107", "inf"), None),
    # BabelStream
    "babel": ("BabelStream\nVersion: 5.0\nFunction    MBytes/sec  Min (sec)   Max         Average\nTriad       1354312.3   0.00059     0.00061     0.00060\n", None),
    # OMP_NUM_THREADS and its warnings before it
    "openmp": ("OMP: Warning #181: OMP_PROC_BIND: ignored because KMP_AFFINITY has been defined\n" + STREAM_59, 12441.2107),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAM)
def test_stream(name: str) -> None:
    """Versions, and another program."""
    text, triad = STREAM[name]
    _expect("memory", text, None if triad is None else {"triad": triad})


def _print_fio(version: str, **keys: object) -> str:
    jobs = [{"jobname": n, "error": 0, n: {"io_bytes": 1, **keys}} for n in ("write", "read")]
    return json.dumps({"fio version": version, "jobs": jobs}, indent=2)


FIO = {
    # bw_bytes came with fio 3; before it there are only kibibytes
    "2.2": (_print_fio("fio-2.2.10", bw=500_000), None),
    "3.41": (_print_fio("fio-3.41", bw=500_000, bw_bytes=512_000_000), 512.0),
    # a job that has run for 0 ms
    "0 ms": (_print_fio("fio-3.33", bw=0, bw_bytes=0, runtime=0), 0.0),
    # text after the document
    "after": (_print_fio("fio-3.33", bw_bytes=512_000_000) + "\nfio: terminating on signal 15\n", 512.0),
    # a note that begins with a brace of its own
    "brace": ("fio: unable to parse '{x}'\n" + _print_fio("fio-3.33", bw_bytes=512_000_000), 512.0),
    "engine": ("fio: engine libaio not loadable\nfio: failed to load engine\nfio: file:ioengines.c:141, func=dlopen, error=libaio: cannot open shared object file\n", None),
}  # fmt: skip


@pytest.mark.parametrize("name", FIO)
def test_fio(name: str) -> None:
    """Its document, with lines around it."""
    text, rate = FIO[name]
    _expect("disk", text, None if rate is None else {"write": rate, "read": rate})


def _expect(test: str, text: str, measures: "dict[str, float] | None") -> None:
    if measures is None:
        with pytest.raises(CannotTell):
            read_measures(test, text)
    else:
        assert read_measures(test, text) == measures
