"""Rules of finding errors in a log, and who and where they are about."""

import re

import pytest

from sentinel.checks.log.known_troubles import TROUBLE_KINDS
from sentinel.checks.log.line_origin import LineOrigin, find_line_origin
from sentinel.checks.log.peers import (
    find_peer_address,
    match_host_to_node,
    parse_getent_hosts,
    resolve_peer,
)
from sentinel.checks.log.ranking import find_first_cause
from sentinel.checks.log.trouble_kind import EXCEPTION, KILLED_KIND, LAST_WORDS_KIND, TRACEBACK
from sentinel.checks.log.troubles import MAX_TROUBLES_PER_KIND, TroubleFinder

IB = (
    "gpu-0:984:1357 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer "
    "10.0.0.9<44206> with status=12 opcode=129 len=65536 vendor err 129 (Recv)"
)
REFUSED = (
    "gpu-1:399:400 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to "
    "10.0.0.2<45763> failed : Software caused connection abort"
)
CLOSED = "gpu-2:1:2 [0] NCCL WARN socketProgress: Connection closed by remote peer node2<42830>"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
            "CUDA out of memory",
        ),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "CUDA error"),
        ("[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(", "NCCL timeout"),
        (IB, "NCCL network"),
        (REFUSED, "NCCL connection"),
        (CLOSED, "NCCL connection"),
        ("torch.distributed.DistBackendError: NCCL error in: x.cpp:1970", "NCCL error"),
        ("bash: line 1: 4242 Bus error               (core dumped) python", "bus error"),
        ("Signal 11 (SIGSEGV) received by PID 4242", "segmentation fault"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0", "host out of memory"),
        ("OSError: [Errno 28] No space left on device", "disk"),
        ("bash: pipe: Too many open files", "open files"),
        ("no CUDA-capable device is detected", "CUDA error"),
        ("CUDA: system not yet initialized (802)", "fabric manager not ready"),
        ("Traceback (most recent call last):", "Python traceback"),
        ("RuntimeError: CUDA error: out of memory", "CUDA out of memory"),
        (
            "errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape",
            "CUDA out of memory",
        ),
        ("OSError: (External) CUDA error(719), unspecified launch failure.", "CUDA error"),
        ("CUBLAS failure 13: CUBLAS_STATUS_EXECUTION_FAILED ; GPU=1 ; hostname=g7", "CUDA error"),
        ('ERROR (cu-vector.cc:899) cudaError_t 4 : "unspecified launch failure"', "CUDA error"),
        (
            "gpu-3:1:2 [3] transport/nvls.cc:254 NCCL WARN Cuda failure 1 'invalid argument'",
            "CUDA error",
        ),
        ("RuntimeError: No CUDA GPUs are available", "CUDA error"),
        ("Failed to initialize NVML: Driver/library version mismatch", "NVIDIA driver"),
        (
            "F0308 7 x.cc:487] INTERNAL: Accelerator device halted prematurely, error occurred",
            "TPU",
        ),
        ("0x0x0_TC0: *** Halt is unexpected, all pending programs will fail.", "TPU"),
        ("RuntimeError: FATAL ERROR :: MODULE:PT_SYNHELPER graph launch failed", "Gaudi or Ascend"),
        ("RuntimeError: HCCL error in: ProcessGroupHCCL.cpp:64", "Gaudi or Ascend"),
        (
            "[ERROR] 2026-09-03-03:02:37 (PID:7, Device:0, RankID:3) ERR02200 DIST call hccl api failed.",
            "Gaudi or Ascend",
        ),
        (
            "[rank0]: EI0002: [PID: 7] 2026-04-27 The wait of the Notify register times out.",
            "Gaudi or Ascend",
        ),
        ("EE9999: Inner Error!", "Gaudi or Ascend"),
        (
            "[PID: 7] 2026-04-28 Communication_Error_Bind_IP_Port(EJ0003): Failed to bind",
            "Gaudi or Ascend",
        ),
        (
            "libfabric:7:cxi:core:cxip_cq_eq_progress():531<warn> n1: Cassini Event Queue overflow detected.",
            "NCCL network",
        ),
        (
            "[n1][[5,1],3][btl_tcp_frag.c:241:mca_btl_tcp_frag_recv] mca_btl_tcp_frag_recv: readv failed: No route to host (113)",
            "MPI connection",
        ),
        ("gpu-3:1:2 [0] NCCL WARN Call to ibv_modify_qp failed with 110", "NCCL connection"),
        ("gpu-3:1:2 [4] NCCL WARN NET/IB : mlx5_0:1 Got async event : port error", "NCCL network"),
        ("mlx5: gpu-3: got completion with error:", "NCCL network"),
        ("UCX  ERROR Transport retry count exceeded on mlx5_0:1/IB (synd 0x15)", "NCCL network"),
        ("gpu-3:1:2 [0] NCCL WARN NET/OFI Request 0x7 completed with error. RC: 5", "NCCL network"),
        ("gpu-3:1:2 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 1 and", "NCCL error"),
        (
            "rendezvous.api.RendezvousConnectionError: The connection to the C10d store",
            "rendezvous",
        ),
        ("RuntimeError: Timed out initializing process group in store based barrier", "rendezvous"),
        ("ray.exceptions.OutOfMemoryError: Task was killed due to the node", "host out of memory"),
        (
            "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried",
            "host out of memory",
        ),
        ("OSError: [Errno 12] Cannot allocate memory", "host out of memory"),
        ("MemoryError", "host out of memory"),
        ("OSError: [Errno 24] Too many open files", "open files"),
        (
            "[enforce fail at inline_container.cc:471] . PytorchStreamWriter failed writing",
            "checkpoint file",
        ),
        ("RuntimeError: inline_container.cc:337] . unexpected pos 71 vs 65", "checkpoint file"),
        ("_pickle.UnpicklingError: pickle data was truncated", "checkpoint file"),
        ("zipfile.BadZipFile: File is not a zip file", "checkpoint file"),
        ("srun: error: Application launch failed: Communication connection failure", "step launch"),
        ("slurmstepd: error: pyxis: container start failed with error code: 1", "container start"),
        ("Loss is nan, stopping training", "NaN loss"),
        ("NanLossDuringTrainingError: NaN loss during training.", "NaN loss"),
        (
            "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
            "NaN loss",
        ),
        (
            "(raylet) A worker died or was killed while executing a task by an unexpected",
            "rank died",
        ),
        ("ray.exceptions.ActorDiedError: The actor died unexpectedly", "rank died"),
        ("CalledProcessError: Command 'x' died with <Signals.SIGKILL: 9>.", "rank died"),
        ("bash: line 1: 4711 Aborted                 (core dumped) python", "rank died"),
        ("= BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "rank died"),
        ("Fatal Python error: Segmentation fault", "segmentation fault"),
        ("RuntimeError: NCCL Error 2: unhandled system error", "NCCL error"),
        (
            "gpu-3:1:2 [0] NCCL WARN NET/IB : Got async event : local catastrophic error",
            "NCCL network",
        ),
        (
            "RuntimeError: [3] is setting up NCCL communicator and retrieving ncclUniqueId",
            "rendezvous",
        ),
        (
            "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is",
            "bus error",
        ),
        ("DataLoader worker (pid 7) is killed by signal: Killed.", "host out of memory"),
        (
            "DataLoader worker (pid 7) is killed by signal: Segmentation fault.",
            "segmentation fault",
        ),
        ("DataLoader worker (pid 7) is killed by signal: Aborted.", "data loading"),
        ("Killed", KILLED_KIND),
        ("Loss is NAN, stopping training", "NaN loss"),
        (
            "socketProgress: Connection closed by remote peer gpu-node1.int.example.org<45074>",
            "NCCL connection",
        ),
        (
            "EI0006: 2024-08-05-18:15:21.270.506 Getting socket times out. Reason: Remote",
            "Gaudi or Ascend",
        ),
        ("EI0002: The wait execution of the Notify register times out.", "Gaudi or Ascend"),
        ("EJ0001: 2024-05-21-11:57:54.167.645 Start of HCCP went wrong", "Gaudi or Ascend"),
        (
            "W NPUStream.cpp:409] Warning: NPU warning, error code is 507046[Error]:",
            "Gaudi or Ascend",
        ),
        ("RuntimeError: unexpected EOF. The file might be corrupted.", "checkpoint file"),
        ("RuntimeError: Invalid magic number; corrupt file?", "checkpoint file"),
        (
            "[00:00<?, ?it/sF0717 16:08:46.411695   7 array.h:414] Check failed: n < size",
            "fatal check",
        ),
        ("2024-10-09 15:47:38.5: F external/xla/xla/x.cc:11] Check failed: ok", "fatal check"),
        (
            "F0308 03:12:05.123456 7 x.cpp:9] Check failed: error == cudaSuccess (2 vs. 0)",
            "CUDA error",
        ),
        ("165/296 [===>....] - ETA: 365s - loss: 2.1371Killed", KILLED_KIND),
        ("HW Exception by GPU node-3 (Agent handle: 0x5a) reason :GPU Hang", "ROCm error"),
        (
            "slurmstepd: error: Job 7 exceeded memory limit (10442128 > 10240000), being killed",
            "host out of memory",
        ),
        (
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-28T10:43:09 DUE TO JOB REQUEUE ***",
            "requeue",
        ),
        (
            "SafetensorError: Error while serializing: IoError(Os { code: 14, message: 'Bad address' })",
            "checkpoint file",
        ),
        (
            "SafetensorError: Error while serializing: IoError(Os { message: 'No space left on device' })",
            "disk",
        ),
        (
            "we are taking the entire process down. what(): NCCL error: remote process exited. Last error:"
            " NET/IB : Got completion from peer 10.0.0.9<44206> with error 12",
            "NCCL error",
        ),
        (
            "ValueError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 196M",
            "CUDA out of memory",
        ),
        (
            "The actor is dead because its worker process has died. Potential root causes. (1) killed by"
            " SIGKILL by OOM killer (3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected",
            "rank died",
        ),
        ("api: [ERROR] failed (exitcode: -11) local_rank: 1 (pid: 7)", "segmentation fault"),
        ("api: [ERROR] failed (exitcode: -7) local_rank: 1 (pid: 7)", "bus error"),
        ("api: [ERROR] failed (exitcode: -6) local_rank: 1 (pid: 7)", "rank died"),
        ("AbortedError (see above for traceback): Horovod has been shut down. This", "rank died"),
        ("*** An error occurred in MPI_Allreduce", "MPI error"),
        ("Graph compile failed. synStatus=synStatus 26 [Generic failure].", "Gaudi or Ascend"),
        ("WARNING:api:Received 15 death signal, shutting down workers", "signal to the launcher"),
        (
            "W0616 api.py:719] Received Signals.SIGTERM death signal, shutting down workers",
            "signal to the launcher",
        ),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-28T10:43:09 ***", "cancelled"),
        ("Stopping coordination service as cluster registration failed. This", "JAX coordination"),
    ],
)
def test_every_kind_is_found_in_a_real_line(line: str, kind: str) -> None:
    """By the words of those who print it."""
    assert [
        one.kind for _, one in TroubleFinder({}, []).find_troubles(f"fine\n{line}\nfine\n")
    ] == [kind]


@pytest.mark.parametrize(
    "line",
    [
        "gpu-0:1:2 [0] NCCL INFO [Service thread] Connection closed by localRank 0",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
        "gpu-0:1:2 [0] NCCL INFO Using non-device net plugin version 0",
        "iteration 12 | number of nan iterations: 0 |",
    ],
)
def test_what_only_looks_like_trouble_is_none(line: str) -> None:
    """NCCL says INFO of much that is well."""
    assert TroubleFinder({}, []).find_troubles(line) == []


def test_own_patterns_have_their_own_names_and_ignored_lines_are_none() -> None:
    """And the built-in ones can be switched off."""
    own, ignore = {"loader": re.compile("shard .* is corrupt")}, [re.compile("wandb")]
    text = "shard 7 is corrupt\nwandb: Traceback (most recent call last):\n"
    assert [one.kind for _, one in TroubleFinder(own, ignore).find_troubles(text)] == ["loader"]
    assert TroubleFinder({}, [], builtin=False).find_troubles(text) == []


def test_a_flood_of_one_kind_keeps_the_first_and_the_others() -> None:
    """Ten thousand ranks die of one."""
    text = "CUDA error: x\n" * 1000 + "Bus error\n"
    kinds = [one.kind for _, one in TroubleFinder({}, []).find_troubles(text)]
    assert kinds == ["CUDA error"] * MAX_TROUBLES_PER_KIND + ["bus error"]


def test_a_line_is_shown_as_text_that_no_terminal_obeys() -> None:
    """It comes from users."""
    ((_, one),) = TroubleFinder({}, []).find_troubles("Bus error \x1b[31m" + "x" * 1000)
    assert "\x1b" not in one.line
    assert len(one.line) <= 300


def test_of_a_long_line_that_part_is_shown_which_tells_of_the_trouble() -> None:
    """Structured logs write a whole record into a line; who wrote it stands at its beginning."""
    text = "[rank7]: {" + "'key': 1, " * 9000 + "'message': 'Bus error', " + "x" * 99_999 + "}\n"
    ((_, one),) = TroubleFinder({}, []).find_troubles(text * 2)[:1]
    assert (one.rank, one.line[0], one.line[-1]) == ("7", "…", "…")
    assert "'message': 'Bus error'" in one.line
    assert len(TroubleFinder({}, []).find_troubles(text * 2)) == 2
    for ignored in ("'message': 'Bus", r"^\[rank7\]"):
        assert TroubleFinder({}, [re.compile(ignored)]).find_troubles(text) == []


def test_lines_that_are_ignored_hide_no_other() -> None:
    """However many there are of them."""
    text = "wandb: Bus error\n" * (MAX_TROUBLES_PER_KIND + 1) + "Bus error\n"
    assert len(TroubleFinder({}, [re.compile("wandb")]).find_troubles(text)) == 1


@pytest.mark.parametrize(
    ("line", "node", "found"),
    [
        pytest.param("[node-3:17]: text", "", LineOrigin("node-3", "17"), id="[host:rank]"),
        pytest.param("[rank17]: text", "", LineOrigin("", "17"), id="PyTorch"),
        pytest.param("[default3]:text", "", LineOrigin("", "local 3"), id="torchrun --tee"),
        pytest.param("[Rank 5] Watchdog", "", LineOrigin("", "5"), id="c10d"),
        pytest.param("12: text", "", LineOrigin("", "12"), id="srun --label"),
        pytest.param("12: [rank9]: text", "", LineOrigin("", "12"), id="the outermost counts"),
        pytest.param("gpu-0:984:1357 [4] NCCL WARN", "", LineOrigin("gpu-0", ""), id="NCCL"),
        pytest.param("3: gpu-0:984:1357 [4] NCCL", "", LineOrigin("gpu-0", "3"), id="both"),
        pytest.param("node-7: text", "", LineOrigin("node-7", ""), id="pdsh"),
        pytest.param(
            "[default3]:[rank12]:[E817 x.cpp:1] text",
            "",
            LineOrigin("", "12"),
            id="of all, not of the node",
        ),
        pytest.param(
            "2019-06-02T16:13:44.884Z: [1,12]<stdout>:gpu-0:8:9 [0] NCCL",
            "",
            LineOrigin("gpu-0", "12"),
            id="Open MPI, after a time",
        ),
        pytest.param(
            "[node-3:71142] *** Process received signal ***",
            "",
            LineOrigin("node-3", ""),
            id="Open MPI's process",
        ),
        pytest.param(
            "[node-3:229246:0:229246] Caught signal 11",
            "",
            LineOrigin("node-3", ""),
            id="UCX's process",
        ),
        pytest.param(
            "[node-3:1 :0:98] Caught signal 11", "", LineOrigin("node-3", ""), id="UCX, padded"
        ),
        pytest.param("i.pretrain/0 [rank7]: text", "", LineOrigin("", "7"), id="TorchX, NeMo-Run"),
        pytest.param(
            "(Actor pid=7, ip=10.0.0.9) [rank1]:[E317 x.cpp:6] text",
            "",
            LineOrigin("10.0.0.9", "1"),
            id="Ray",
        ),
        pytest.param(
            "2026-03-08 03:12:05 worker0: text", "", LineOrigin("", ""), id="after a time a logger"
        ),
        pytest.param("anything", "node-2", LineOrigin("node-2", ""), id="a file of its own (%N)"),
        pytest.param("2026-03-08 03:12:05 INFO: text", "", LineOrigin("", ""), id="a date is none"),
        pytest.param("Error: text", "", LineOrigin("", ""), id="nor is a word"),
        pytest.param("slurmstepd-node-1: error: text", "", LineOrigin("node-1", ""), id="Debian's"),
        pytest.param("slurmstepd: error: text", "node-2", LineOrigin("node-2", ""), id="Slurm's"),
    ],
)
def test_a_line_comes_from_a_rank_on_a_node(line: str, node: str, found: LineOrigin) -> None:
    """By the marks that launchers put before it."""
    assert find_line_origin(line, node, len(line)) == found


@pytest.mark.parametrize(
    ("line", "peer"),
    [
        (IB, "10.0.0.9"),
        (REFUSED, "10.0.0.2"),
        (CLOSED, "node2"),
        ("Call to recv from fe80::1<1> failed", "fe80::1"),
        ("Connect to node-3.ib0.example.org<1> failed", "node-3.ib0.example.org"),
        ("Got completion, remoteGids::ffff:10.1.2.3", "10.1.2.3"),
        ("nothing of the kind", ""),
    ],
)
def test_the_peer_is_the_other_side(line: str, peer: str) -> None:
    """An address or a name."""
    assert find_peer_address(line) == peer


@pytest.mark.parametrize(
    ("names", "node"),
    [
        (["node-3"], "node-3"),
        (["NODE-3.example.org"], "node-3"),
        (["node-3-ib0.example.org"], "node-3"),
        (["node-3.ib0.example.org"], "node-3"),
        (["node-3ib0"], "node-3"),
        (["storage", "node-30"], ""),
        ([], ""),
    ],
)
def test_a_host_is_mapped_to_the_name_that_slurm_has_for_it(names: list[str], node: str) -> None:
    """Sites call a node's other networks by other names."""
    assert match_host_to_node(names, ["node-2", "node-3"]) == node


def test_an_address_is_looked_up_and_a_name_is_taken_as_it_is() -> None:
    """As getent prints them."""
    names = parse_getent_hosts(
        "10.0.0.9        node-3-ib0.example.org node-3-ib0\n10.0.0.1 other\n"
    )
    assert resolve_peer("10.0.0.9", names, ["node-3"]) == "node-3"
    assert resolve_peer("node-3", {}, ["node-3"]) == "node-3"
    assert resolve_peer("10.0.0.7", names, ["node-3"]) == ""


@pytest.mark.parametrize(
    ("line", "kind", "origin_"),
    [
        pytest.param(
            "[rank5]:[E309 03:12:05 ProcessGroupNCCL.cpp:1834] [PG ID 0 PG GUID 0 Rank 5] Received a"
            " dump signal due to a collective timeout from  rank 2 and we will try our best",
            "collective timeout of another rank", LineOrigin("", "2"), id="who was late",
        ),
        pytest.param(
            "[rank5]:[E] [PG 0 Rank 5] Received a dump signal due to a collective timeout from this"
            " local rank", "NCCL timeout", LineOrigin("", "5"), id="late itself",
        ),
        pytest.param(
            "[rank1]: ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress",
            "NCCL heartbeat", LineOrigin("", "1"), id="watchdog",
        ),
        pytest.param("[rank3]: Heartbeat monitor timed out! Process will be terminated",
                     "NCCL heartbeat", LineOrigin("", "3"), id="heartbeat monitor"),
        pytest.param("ProcessGroupNCCL preparing to dump debug info.", "NCCL flight recorder",
                     LineOrigin("", ""), id="flight recorder"),
        pytest.param(
            "Root Cause (first observed failure):\n[0]:\n  time      : 2026-03-08_03:12:05\n  host"
            "      : node-3\n  rank      : 17 (local_rank: 1)\n  exitcode  : -9 (pid: 4711)",
            "rank died", LineOrigin("node-3", "17"), id="ChildFailedError's table",
        ),
        pytest.param("srun: error: node-7: task 56: Out Of Memory", "host out of memory",
                     LineOrigin("node-7", "56"), id="srun, of memory"),
        pytest.param("srun: error: node-7: tasks 5,7: Bus error", "bus error", LineOrigin("node-7", "5"),
                     id="srun, of a bus error"),
        pytest.param("srun: error: Task launch for StepId=7.0 failed on node node-7: Communication",
                     "step launch", LineOrigin("node-7", ""), id="no launch"),
        pytest.param("ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[1,0],0] on"
                     " node node-1\n  Remote daemon: [[1,0],3] on node node-7", "node failure",
                     LineOrigin("node-7", ""), id="Open MPI"),
        pytest.param("srun: error: node-7: task 56: Killed", "rank died", LineOrigin("node-7", "56"),
                     id="srun"),
        pytest.param(
            "slurmstepd: error: *** JOB 4711 ON node-3 CANCELLED AT 2026-03-08T03:12:05 DUE TO NODE"
            " FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***", "node failure", LineOrigin("node-3", ""),
            id="a node",
        ),
        pytest.param("slurmstepd: error: *** STEP 7.0 ON node-3 CANCELLED AT 2026-03-08T03:12:05"
                     " DUE TO TIME LIMIT ***", "time limit", LineOrigin("", ""), id="time limit"),
        pytest.param("jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Mosaic failed",
                     "JAX runtime error", LineOrigin("", ""), id="JAX"),
        pytest.param("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate",
                     "CUDA out of memory", LineOrigin("", ""), id="JAX out of memory"),
        pytest.param("The following tasks are unhealthy (stopped sending heartbeats):\n"
                     "/job:jax_worker/replica:0/task:12", "JAX coordination", LineOrigin("", "12"),
                     id="a task of JAX"),
        pytest.param("Memory access fault by GPU node-4 (Agent handle: 0x5) on address 0x7",
                     "ROCm error", LineOrigin("", ""), id="ROCm"),
        pytest.param(":0:rocdevice.cpp: HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted",
                     "ROCm error", LineOrigin("", ""), id="HSA"),
        pytest.param("RuntimeError: CUDA error: uncorrectable ECC error encountered", "GPU memory error",
                     LineOrigin("", ""), id="ECC, as CUDA says it"),
        pytest.param("NCCL WARN Cuda failure 'uncorrectable NVLink error detected'", "GPU memory error",
                     LineOrigin("", ""), id="NVLink"),
        pytest.param("OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/l/x'",
                     "file system", LineOrigin("", ""), id="Lustre that evicted"),
        pytest.param("OSError: [Errno 116] Stale file handle: '/nfs/x'", "disk", LineOrigin("", ""),
                     id="NFS"),
        pytest.param("RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer"
                     " [10.0.0.9]:4711", "Gloo connection", LineOrigin("", ""), id="Gloo"),
        pytest.param("torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for"
                     " clients. 63/64 clients joined.", "rendezvous", LineOrigin("", ""), id="store"),
        pytest.param("Exception: Current loss scale already at minimum - cannot decrease scale"
                     " anymore.", "loss scale", LineOrigin("", ""), id="DeepSpeed's loss scale"),
        pytest.param(
            "E1 coordination_service.cc:1] /job:jax_worker/replica:0/task:5 has been set to ERROR: Task"
            " /job:jax_worker/replica:0/task:5 heartbeat timeout. This indicates",
            "JAX coordination", LineOrigin("", "5"), id="a heartbeat of JAX"),
        pytest.param(
            "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: save.0.1.\n# of"
            " tasks that reached the barrier: 3/4.\nThe first task at the barrier:"
            " /job:jax_worker/replica:0/task:2. Some timed out task names:\n/job:jax_worker/replica:0/task:3",
            "JAX coordination", LineOrigin("", "3"), id="who did not come to JAX's barrier"),
        pytest.param(
            "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Some timed out task names:\n"
            "/job:jax_worker/replica:0/task:16\n/job:jax_worker/replica:0/task:0\n", "JAX coordination",
            LineOrigin("", ""), id="of many that did not come none is to blame"),
        pytest.param("ERROR:composer.cli.launcher:Rank 2 crashed with exit code -7.", "bus error",
                     LineOrigin("", "2"), id="Composer, of a bus error"),
        pytest.param("ERROR:composer.cli.launcher:Global rank 5 (PID 7) exited with code -9", "rank died",
                     LineOrigin("", "5"), id="Composer"),
        pytest.param("E1128 21:12:50 7 api.py:874] failed (exitcode: -6) local_rank: 3 (pid: 9) of binary:",
                     "rank died", LineOrigin("", "local 3"), id="torchrun"),
        pytest.param("mpirun detected that one or more processes exited with non-zero status, thus causing\n"
                     "the job to be terminated. The first process to do so was:\n\n  Process name: [[7,1],3]",
                     "rank died", LineOrigin("", "3"), id="Open MPI, of an exit code"),
        pytest.param("An MPI communication peer process has unexpectedly disconnected.  This\nusually\n\n"
                     "  Local host: node-1\n  Local PID:  7\n  Peer host:  node-7\n", "MPI connection",
                     LineOrigin("node-7", ""), id="Open MPI, of a peer"),
        pytest.param("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD", "MPI error",
                     LineOrigin("", "3"), id="MPI_Abort"),
        pytest.param("[rank: 3] Child process with PID 7 terminated with code 1. Forcefully terminating",
                     "rank died", LineOrigin("", "3"), id="Lightning"),
        pytest.param("ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 3 at iteration #3",
                     "NaN loss", LineOrigin("", "3"), id="Megatron, a result"),
        pytest.param("AssertionError: Rank 11: found NaN in local grad norm in backward pass", "NaN loss",
                     LineOrigin("", "11"), id="Megatron, gradients"),
        pytest.param("mpirun noticed that process rank 3 with PID 4711 on node node-1 exited on"
                     " signal 9", "rank died", LineOrigin("node-1", "3"), id="mpirun"),
        pytest.param("RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions"
                     " before calling NumCudaDevices()? Error 802: system not yet initialized",
                     "fabric manager not ready", LineOrigin("", ""), id="PyTorch, 802"),
        pytest.param("gpu-3:1:2 [5] init.cc:94 NCCL WARN Cuda failure 802 'system not yet initialized'",
                     "fabric manager not ready", LineOrigin("gpu-3", ""), id="NCCL, 802"),
        pytest.param("/var/spool/slurmd/job7/slurm_script: line 9:  4711 Killed   python t.py",
                     KILLED_KIND, LineOrigin("", ""), id="bash"),
    ],
)  # fmt: skip
def test_errors_of_the_last_years_and_whom_they_name(
    line: str, kind: str, origin_: LineOrigin
) -> None:
    """The rank that a message blames stands before the rank that says it."""
    (_, one), *_ = TroubleFinder({}, []).find_troubles(f"fine\n{line}\nfine\n")
    assert (one.kind, one.host, one.rank) == (kind, origin_.host, origin_.rank)


@pytest.mark.parametrize(
    "line",
    [
        "[W socket.cpp:755] [c10d] The client socket has failed to connect to [node-6]:29500",
        "Import of quick_gelu from megatron failed with: Traceback (most recent call last):",
        "W0308 03:12:05.431000 4711 torch/_dynamo/convert_frame.py:1233] Traceback (most recent call last):",
        "[rank0]:W0308 03:12:05.431000 4711 torch/_dynamo/exc.py:12] [0/8] Traceback (most recent call last):",
        "gpu-3:1:2 [5] ibvwrap.c:94 NCCL WARN Call to ibv_open_device failed",
        "FatalError: `Termination signal` is detected by the operating system.",
        "srun: error: Unable to create step for job 7: Job/step already completing or completed",
        "subprocess.CalledProcessError: Command 'x' died with <Signals.SIGTERM: 15>.",
        "srun: error: node-7: task 56: Exited with exit code 0",
        "srun: error: node-7: task 56: Exited with exit code 1",
        "flight recorder enabled, watchdog timeout 600 s, heartbeat timeout 480 s",
        "params: assert_finite=True fail_on_error=False errors=0 ERROR_HANDLING=1",
        'sysctl: setting key "vm.drop_caches", ignoring: Read-only file system',
        "0: sysctl: error setting key 'vm.drop_caches': Read-only file system",
        "bash: /proc/sys/vm/drop_caches: Read-only file system",
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 0B. The caller indicates that this is not a failure",
        "UserWarning: Auto microbatching attempts to catch CUDA Out of Memory errors and adjust the batch size",
        "Global rank 3 (PID 7) exited with code -15",
        "[rank1]:[W901 x.cpp:1] Failed to check the flag on TCPStore, with error: Broken pipe",
        "wandb: Network error (ConnectionError), entering retry loop.",
        "2025-03-20 19:27:33: E external/local_xla/xla/stream_executor/cuda/cuda_blas.cc:1452] Unable to register",
        "slurmstepd: error: Exceeded step memory limit at some point.",
        "OSError: [Errno 30] Read-only file system: '/sys/kernel/mm/transparent_hugepage/enabled'",
    ],
)
def test_what_successful_runs_print_is_no_trouble(line: str) -> None:
    """Of thousands of real runs."""
    assert TroubleFinder({}, []).find_troubles(line) == []


def test_every_kind_can_be_found_by_a_word_of_its_own_and_names_its_source() -> None:
    """The words only save time: none of them may hide a kind."""
    assert all(kind.source and kind.words for kind in TROUBLE_KINDS)
    assert len({kind.name for kind in TROUBLE_KINDS}) == len(TROUBLE_KINDS)


def test_a_mark_in_the_middle_of_a_line_tells_who_speaks_there() -> None:
    """A progress bar ends no line."""
    bar = "Epoch 0:  16%|#   | 7395/45743 [13:13:43<68:36:00, 6.44s/it]"
    text = f"{bar}[rank3]:[E723 x.cpp:6] [Rank 3] Watchdog caught collective operation timeout"
    ((_, one),) = TroubleFinder({}, []).find_troubles(text)
    assert one.rank == "3"


def test_an_exception_comes_from_whom_its_own_line_names() -> None:
    """Behind what a launcher puts before every line."""
    mark = "i.pretrain/0 [rank7]: "
    text = f"{mark}Traceback (most recent call last):\n{mark}  f()\n{mark}KeyError: 1\n"
    assert [one.rank for _, one in TroubleFinder({}, []).find_troubles(text)] == ["7"]
    text = "Traceback (most recent call last):\n  f()\nKeyError: 1\n[rank1]:[W] of another\n"
    assert [one.rank for _, one in TroubleFinder({}, []).find_troubles(text)] == [""]


def test_a_traceback_whose_exception_is_not_known_is_a_cause_with_that_exception() -> None:
    """Of one that is known the exception is told as what it is; the ignored ones are none."""
    text = "[rank3]: Traceback (most recent call last):\n[rank3]:   f()\n[rank3]: {}\n"
    ((_, one),) = TroubleFinder({}, []).find_troubles(text.format("KeyError: 'labels'"))
    assert (one.kind, one.rank, one.line) == (EXCEPTION, "3", "[rank3]: KeyError: 'labels'")
    assert (
        TroubleFinder({}, [re.compile("labels")]).find_troubles(text.format("KeyError: 'labels'"))
        == []
    )
    kinds = [
        one.kind
        for _, one in TroubleFinder({}, []).find_troubles(
            text.format("OSError: [Errno 28] No space left on device")
        )
    ]
    assert kinds == ["disk"]
    kinds = [one.kind for _, one in TroubleFinder({}, []).find_troubles(text.format("EOFError"))]
    assert kinds == [TRACEBACK, LAST_WORDS_KIND]


@pytest.mark.parametrize(
    ("link", "told"),
    [
        ("During handling of the above exception, another exception occurred:", "ValueError: b"),
        ("The above exception was the direct cause of the following exception:", "KeyError: a"),
    ],
)
@pytest.mark.parametrize("mark", ["", "[rank3]: "])
def test_of_a_chain_the_exception_that_ended_the_program_is_told(
    link: str, told: str, mark: str
) -> None:
    """One that was caught did not; a direct cause did. Other ranks are not asked."""
    frame = "Traceback (most recent call last):\n  f()\n"
    lines = f"{frame}KeyError: a\n\n{link}\n\n{frame}ValueError: b\n".splitlines()
    found = TroubleFinder({}, []).find_troubles("".join(f"{mark}{line}\n" for line in lines))
    at = find_first_cause([one.kind for _, one in found])
    assert at is not None
    assert found[at][1].line == f"{mark}{told}"


@pytest.mark.parametrize(
    "before",
    [
        "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>",
        "[rank3]: Exception ignored in: <bound method X.__del__>",
        "Retry attempt failed:",
        "--- Logging error ---",
    ],
)
def test_a_traceback_after_which_the_program_goes_on_is_no_trouble(before: str) -> None:
    """The line before it says so."""
    text = (
        "Traceback (most recent call last):\n  f()\nAssertionError: can only test a child process\n"
    )
    chain = f"\nDuring handling of the above exception, another exception occurred:\n\n{text}"
    assert TroubleFinder({}, []).find_troubles(f"step 1\n{before}\n{text}{chain}{chain}") == []
    assert len(TroubleFinder({}, []).find_troubles(f"step 1\n{before}\n{text}{chain}{text}")) == 1
    assert TroubleFinder({}, []).find_troubles(f"step 1\n{before}\nelse\n{text}") != []
