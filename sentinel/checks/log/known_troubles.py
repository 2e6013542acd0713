"""The errors of trainings that are known, as data: one row a sort, the more specific first.

Texts are those of the programs' sources, which `source` names.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

C10D_SOURCE = "PyTorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"
ELASTIC_SOURCE = "PyTorch, torch/distributed/elastic/multiprocessing"
CUDA_SOURCE = "CUDA, driver_types.h and cuda.h; PyTorch, c10/cuda/CUDACachingAllocator.cpp"
NCCL_SOURCE = "NCCL, src/misc/socket.cc, src/transport/net_ib, src/init.cc"
SLURM_SOURCE = "Slurm, src/slurmd/slurmstepd/req.c, src/srun/libsrun/launch.c"
ERRNO_SOURCE = "glibc, strerror(3), as Python's OSError prints it"

SRUN_REGEX = r"srun: error: [\w.-]+: tasks? [\d,-]+: "
SRUN_ORIGIN_REGEX = r"srun: error: (?P<host>[\w.-]+): tasks? (?P<rank>\d+)"

TRACEBACK, EXCEPTION = "Python traceback", "Python exception"
"""A traceback, and one whose exception is none of the errors below: that is a cause, not an echo."""

NETWORK_EXCEPTION_KIND = "Python exception of a connection or another process"
"""One that may follow upon another process's end."""

DIED_REGEX_TEMPLATE = (
    r"|failed \(exitcode: -{0}\)|(?:crashed|exited) with (?:exit )?code -{0}\b|return code = -{0}\b"
)
DIED_WORDS = ("failed (exitcode", "code -", "return code")
DIED_ORIGIN_REGEX = r"|failed \(exitcode: -?\d+\) local_rank: (?P<local>\d+)|\b[Rr]ank (?P<rank6>\d+) (?:\(PID \d+\) exited|crashed) with"
LAUNCHERS_SOURCE = "the launchers of PyTorch (torch/distributed/elastic), DeepSpeed, and composer/cli/launcher.py of mosaicml/composer"

MAX_CHARS_AFTER = 1500
"""Characters after the text in which a table that follows it names who it was."""


class TroubleKind(Struct, frozen=True):
    """One row.

    name: What it is called in messages.
    pattern: The text that shows it.
    words: Words of which one is in any such text: looking for them costs a hundredth.
    source: Who prints it, and where.
    names: A pattern on and after that text whose groups `rank` and `host` say whose fault it is, where
        the line comes from somebody else.
    echo: Whether it follows upon another trouble: that one is told first.
    parting: Whether it is usual when a training that has reached its end is taken apart.
    root: Whether no other trouble brings it about: it is told before all others, which may say their
        part of it sooner, such as the ranks that lose the one that was killed.
    """

    name: str
    pattern: str
    words: tuple[str, ...]
    source: str
    names: str = ""
    echo: bool = False
    parting: bool = False
    root: bool = False

    def find_matches(self, text: str) -> "Iterator[tuple[int, TroubleKind]]":
        """Where it is found."""
        if any(word in text for word in self.words):
            yield from ((match.start(), self) for match in re.finditer(self.pattern, text))


TROUBLE_KINDS = (
    TroubleKind(
        "CUDA out of memory",
        r"(?:CUDA|HIP|NPU|XPU) out of memory|CUDA [Ee]rror: out of memory|(?<!ray\.exceptions\.)OutOfMemoryError"
        r"|(?:\b\w{1,60}Error: )?RESOURCE_EXHAUSTED: Out of memory|\b\w{1,60}Error: RESOURCE_EXHAUSTED: Error allocating|OOM when allocating tensor"
        r"|CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED",
        ("ut of memory", "OutOfM", "OUT_OF_MEMORY", "ALLOC_FAILED", "OOM when", "EXHAUSTED: Err"),
        CUDA_SOURCE + "; XLA, xla/tsl/framework/bfc_allocator.cc",
        root=True,
    ),
    TroubleKind(
        "GPU memory error",
        r"(?:CUDA error: |Cuda failure ')?uncorrectable (?:ECC|NVLink) error|(?:CUDA_ERROR_|cudaError)(?:ECC|Ecc)_?[Uu]ncorrectable"
        r"|CUDA_ERROR_ECC_UNCORRECTABLE|CUDA_ERROR_NVLINK_UNCORRECTABLE|HSA_STATUS_ERROR_MEMORY_FAULT",
        ("uncorrectable", "ncorrectable", "UNCORRECTABLE", "MEMORY_FAULT"),
        CUDA_SOURCE + "; ROCR-Runtime, hsa.h",
        root=True,
    ),
    TroubleKind(
        "GPU lost",
        r"NVRM: .{0,200}fallen off the bus|NVRM: Xid|Unable to determine the device handle for GPU"
        r"|GPU is lost",
        ("fallen off", "NVRM: Xid", "device handle for GPU", "GPU is lost"),
        "NVIDIA driver, NVRM; nvidia-smi",
        root=True,
    ),
    TroubleKind(
        "fabric manager not ready",
        r"(?:\b802\b|[Cc][Uu][Dd][Aa])[^\n]{0,80}system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady",
        ("system not yet initialized", "SYSTEM_NOT_READY", "SystemNotReady"),
        "CUDA, cudaErrorSystemNotReady (802): on nodes with NVSwitch, nvidia-fabricmanager does not run",
        root=True,
    ),
    TroubleKind(
        "ROCm error",
        r"HSA_STATUS_ERROR\w*|Memory access fault by GPU node|HW Exception by GPU node|HIP error: |hipError[A-Z]\w+",
        ("HSA_STATUS_ERROR", "Memory access fault", "HW Exception", "HIP error", "hipError"),
        "ROCR-Runtime, hsa.h and runtime.cpp; HIP, hip_runtime_api.h",
    ),
    TroubleKind(
        "CUDA error",
        r"CUDA error(?:: |\(\d+\), )|CUDA driver error|CUDA runtime error|[Cc]uda failure (?:\d+ )?'|CUDA_ERROR_[A-Z_]+"
        r"|CUBLAS_STATUS_(?!SUCCESS)[A-Z_]+ (?:when calling|;)|CUDNN_STATUS_(?!SUCCESS)[A-Z_]+"
        r"|device-side assert triggered|cudaError_t \d+ :|Check failed: error == cudaSuccess \((?!0 )"
        r"|RuntimeError: (?:CUDA (?:driver initialization failed|unknown error)|No CUDA GPUs are available"
        r"|Unexpected error from cudaGetDeviceCount|Found no NVIDIA driver|The NVIDIA driver on your)",
        ("CUDA error", "CUDA driver ", "untime error", "uda failure", "CUDA_ERROR_",
         "CUBLAS_STATUS", "CUDNN_STATUS", "device-side assert", "cudaError_t", "cudaSuccess", "No CUDA",
         "CUDA unknown", "cudaGetDeviceCount", "NVIDIA driver"),
        CUDA_SOURCE + "; torch/csrc/cuda/Module.cpp; Kaldi, src/cudamatrix; Caffe, include/caffe/util/device_alternate.hpp",
    ),
    TroubleKind(
        "NVIDIA driver",
        r"Failed to initialize NVML: |Driver/library version mismatch",
        ("initialize NVML", "library version mismatch"),
        "NVIDIA driver, nvidia-smi",
    ),
    TroubleKind(
        "TPU",
        r"Accelerator device halted|\blame workers found|Halt is unexpected, all pending programs|error has occurred, all pending programs"
        r"|!!!! FATAL ERROR !!!! for \[/dev/accel",
        ("device halted", "lame workers", "all pending programs", "FATAL ERROR !"),
        "libtpu's log; XLA, pjrt_computation_client.cc of pytorch/xla",
    ),
    TroubleKind(
        "Gaudi or Ascend",
        r"FATAL ERROR :: MODULE:PT_|synStatus=(?:synStatus )?(?!0\b|1\b)\d+ \[|HCCL (?:function )?error|\bERR\d{5} (?:PTA|OPS|DIST|GRAPH|PROF) "
        r"|\bE[A-Z]\d{4}: (?:\[PID: \d+\]|Inner Error!|\d{4}-\d\d-\d\d-|The wait execution of)|NPU (?:error|warning), error code is [1-9]|\w\(E[A-Z]\d{4}\): ",
        ("MODULE:PT_", "synStatus=", "HCCL ", "ERR0", "[PID: ", "Inner Error", "(E",
         "EE1", "EH9", "EI0", "EJ0", "EL0", "EZ9", "error code is"),
        "Intel Gaudi's SynapseAI and PyTorch bridge; torch_npu, ProcessGroupHCCL.cpp and Exceptions.h of"
        " Ascend/pytorch; Huawei CANN's error codes, as in cann/hccl",
    ),
    TroubleKind(
        "collective timeout of another rank",
        r"Received a dump signal due to a collective timeout from +rank \d+",
        ("Received a dump signal",),
        C10D_SOURCE,
        names=r"from +rank (?P<rank>\d+)",
    ),
    TroubleKind(
        "collective mismatch",
        r"Detected mismatch between collectives on ranks|Ranks? [\d, ]{1,200} failed to pass"
        r" monitoredBarrier",
        ("Detected mismatch", "failed to pass monitored"),
        "PyTorch, torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp, ProcessGroupGloo.cpp",
        names=r"Ranks? (?P<rank>\d+) failed",
    ),
    TroubleKind(
        "NCCL timeout",
        r"Watchdog caught collective operation timeout|Timeout at NCCL work|"
        r"Received a dump signal due to a collective timeout from this local rank",
        ("Watchdog caught", "Timeout at NCCL work", "Received a dump signal"),
        C10D_SOURCE,
        names=r"\[Rank (?P<rank>\d{1,6})\][^\n\[]{0,40}(?:Watchdog caught|Timeout at NCCL work)",
    ),
    TroubleKind(
        "NCCL heartbeat",
        r"[Hh]eartbeat monitor timed out|ProcessGroupNCCL's watchdog got stuck"
        r"|detected no heartbeat of its watchdog|ProcessGroupNCCL's watchdog (?:thread )?hang",
        ("eartbeat monitor timed out", "watchdog got stuck", "no heartbeat of its", "watchdog"),
        C10D_SOURCE,
        parting=True,
    ),
    TroubleKind(
        "NCCL flight recorder",
        r"Observed flight recorder dump signal|ProcessGroupNCCL (?:is )?preparing to dump debug info"
        r"|ProcessGroupNCCL dumping nccl trace to|because FlightRecorder is disabled"
        r"|Received a dump signal from this local rank",
        ("flight recorder dump", "to dump debug info", "dumping nccl trace", "FlightRecorder is",
         "Received a dump signal"),
        C10D_SOURCE + "; FlightRecorder.cpp",
        echo=True,
        parting=True,
    ),
    TroubleKind(
        "NCCL connection",
        r"NCCL WARN (?:(?!NCCL WARN ).){0,300}(?:[Cc]onnect to \S+ failed|Connection closed by remote peer"
        r"|Call to \w+ (?:from|to) \S+ failed|Call to ibv_(?:modify_qp|post_\w+|poll_cq) failed|Socket recv failed"
        r"|no socket interface found)|Connect to \S+<\d+> failed|socketProgress\w*: Connection closed by remote peer",
        ("onnect to ", "closed by remote peer", "Call to ", "Socket recv", "no socket interface"),
        NCCL_SOURCE,
        parting=True,
    ),
    TroubleKind(
        "NCCL network",
        r"NET/IBP? ?: ?(?:\S+ )?Got (?:completion (?:from peer|with)|(?:non-fatal )?async event ?: ?(?:port"
        r" error|device fatal|local catastrophic error))|IBV_WC_RETRY_EXC_ERR|transport retry counter exceeded"
        r"|local QP operation error|mlx\d: \S+: got completion with error|Transport retry count exceeded on"
        r"|NET/OFI .{0,200}completed with error|Cassini Event Queue overflow detected",
        ("Got completion", "got completion", "async event", "RETRY_EXC", "retry count",
         "QP operation err", "NET/OFI", "Event Queue"),
        NCCL_SOURCE + "; libfabric, prov/cxi; rdma-core, libibverbs/verbs.c and providers/mlx5/cq.c; UCX, ib_mlx5_log.c; aws-ofi-nccl",
    ),
    TroubleKind(
        "NCCL error",
        r"NCCL [Ee]rror|NCCL communication aborted|nccl(?:System|Remote|Internal|UnhandledCuda)Error|NCCL WARN Duplicate GPU detected",
        ("NCCL error", "NCCL Error", "NCCL communication", "ncclSys", "ncclRem", "ncclInt", "ncclUnh", "Duplicate GPU"),
        NCCL_SOURCE,
        parting=True,
    ),
    TroubleKind(
        "NCCL abort",
        r"NCCL communicator was aborted|Some NCCL operations have failed or timed out"
        r"|we are taking the entire process down",
        ("communicator was aborted", "operations have failed or timed", "entire process down"),
        C10D_SOURCE,
        echo=True,
        parting=True,
    ),
    TroubleKind(
        "Gloo connection",
        r"gloo/transport/tcp/\w+\.cc:\d+\] .{0,100}(?:Connection (?:closed by peer|reset by peer"
        r"|refused)|timed out|Timed out)|Gloo connectFullMesh failed",
        ("gloo/transport", "connectFullMesh failed"),
        "Gloo, gloo/transport/tcp/pair.cc",
        parting=True,
    ),
    TroubleKind(
        "MPI connection",
        r"mca_btl_tcp_\w{1,60}: (?:readv|writev|recv|send|connect)\S{0,60} failed: "
        r"|MPI communication peer process has unexpectedly disconnected",
        ("mca_btl_tcp", "peer process has"),
        "Open MPI, opal/mca/btl/tcp/btl_tcp_frag.c and help-mpi-btl-tcp.txt",
        names=r"\n[ \t]{0,40}Peer host: +(?P<host>[\w.-]+)",
        echo=True,
        parting=True,
    ),
    TroubleKind(
        "MPI error",
        r"\*\*\* An error occurred in MPI_\w+|MPI_ABORT was invoked on rank \d+|application called MPI_Abort\(",
        ("occurred in MPI_", "MPI_ABORT was", "called MPI_Abort"),
        "Open MPI, ompi/errhandler/errhandler_predefined.c and help-mpi-api.txt; MPICH, src/mpi/init/abort.c",
        names=r"MPI_ABORT was invoked on rank (?P<rank>\d+)|MPI_Abort\([^\n]{0,60}process (?P<rank2>\d+)",
        echo=True,
        parting=True,
    ),
    TroubleKind(
        "UCX error",
        r"UCX +ERROR +(?![^\n]{0,200}(?:reset by|closed by|etry count|completion))|pml_ucx\.c:\d+ +Error: ",
        ("UCX ", "pml_ucx"),
        "UCX, src/ucs/debug/log.c; Open MPI, ompi/mca/pml/ucx/pml_ucx.c",
        parting=True,
    ),
    TroubleKind(
        "MPI start-up",
        r"It looks like MPI_INIT failed|mpi/pmix\w{0,6}: [^\n]{0,160}(?:collective timeout|failed|ERROR)|\bPMIX ERROR: ",
        ("MPI_INIT failed", "mpi/pmix", "PMIX ERROR"),
        "Open MPI, ompi/runtime/help-mpi-runtime.txt; Slurm, src/plugins/mpi/pmix; OpenPMIX, src/util/error.c",
        names=r"pmixp_\w{1,60}: (?P<host>[\w.-]{1,64}) \[\d{1,6}\]: ",
        parting=True,
    ),
    TroubleKind(
        "panic or uncaught exception",
        r"thread '[^'\n]{1,60}' (?:\(\d{1,9}\) )?panicked at |(?m:^panic: )|Exception in thread \"[^\"\n]{1,80}\" |(?m:^ERROR: LoadError: )",
        ("panicked at", "panic: ", "Exception in thread", "LoadError"),
        "Rust, library/std/src/panicking.rs; Go, runtime/panic.go; Java, ThreadGroup; Julia, base/client.jl",
    ),
    TroubleKind(
        "rendezvous",
        r"client socket has timed out|server socket has failed to (?:bind|listen)"
        r"|Timed out after \d+ seconds waiting for clients|Rendezvous(?:Timeout|Connection|Closed)Error"
        r"|Timed out initializing process group|RuntimeError: Socket Timeout"
        r"|torch\.distributed\.Dist(?:Store|Network)Error|is setting up NCCL communicator and retrieving",
        ("client socket has", "server socket has", "waiting for clients", "Rendezvous", "initializing process group", "Socket Timeout",
         "DistStoreError", "DistNetworkError", "setting up NCCL"),
        "PyTorch, torch/csrc/distributed/c10d/socket.cpp, TCPStore.cpp",
        parting=True,
    ),
    TroubleKind(
        "JAX coordination",
        r"JAX distributed service detected fatal errors|stopped sending heartbeats"
        r"|CoordinationService .{0,100}[Hh]eartbeat timeout|Task /job:\S+ heartbeat timeout"
        r"|(?:(?:Xla|Jax)RuntimeError: )?DEADLINE_EXCEEDED: Barrier timed out|as cluster registration failed",
        ("JAX distributed service detected", "stopped sending heart", "eartbeat timeout", "Barrier timed out", "cluster registration"),
        "XLA, xla/pjrt/distributed/client.cc, xla/tsl/distributed_runtime/coordination/coordination_service.cc",
        names=r"(?:imed out task names|stopped sending heartbeats\)):\s{0,3}/job:\S{1,60}/task:(?P<rank>\d+)(?!\d|\s*/job:)"
        r"|Task /job:\S{1,60}/task:(?P<rank2>\d+) heartbeat",
    ),
    TroubleKind(
        "JAX runtime error",
        r"XlaRuntimeError|JaxRuntimeError",
        ("XlaRuntimeError", "JaxRuntimeError"),
        "JAX, jaxlib/xla_client.py",
    ),
    TroubleKind("bus error", SRUN_REGEX + r"Bus error|(?:DataLoader worker [^\n]{0,80}by signal:\s{1,3})?\bBus error\b|\bSIGBUS\b|[Uu]nexpected bus error"
         + DIED_REGEX_TEMPLATE.format("7"), ("Bus error", "SIGBUS", "expected bus error", *DIED_WORDS),
         "glibc, string/strsignal; PyTorch, torch/csrc/DataLoader.cpp; " + LAUNCHERS_SOURCE, names=SRUN_ORIGIN_REGEX + DIED_ORIGIN_REGEX),
    TroubleKind("segmentation fault", SRUN_REGEX + r"Segmentation fault|(?:DataLoader worker [^\n]{0,80}by signal:\s{1,3})?\bSegmentation fault\b"
         r"|\bSIGSEGV\b(?! or other unexpected)" + DIED_REGEX_TEMPLATE.format("11"), ("Segmentation", "SIGSEGV", *DIED_WORDS),
         "glibc, string/strsignal; " + LAUNCHERS_SOURCE, names=SRUN_ORIGIN_REGEX + DIED_ORIGIN_REGEX),
    TroubleKind(
        "host out of memory",
        SRUN_REGEX + r"Out Of Memory|(?<!\w)oom[-_]kill(?:er)?\b|Out Of Memory|DataLoader worker [^\n]{0,80} killed by signal: Killed"
        r"|line \d+: +\d+ Killed\b|(?m:(?<![A-Za-z_ ])Killed$)|exceeded memory limit \(\d+ > \d+\)|ray\.exceptions\.OutOfMemoryError|Out of memory: Killed process|_?ArrayMemoryError:"
        r"|DefaultCPUAllocator: can't allocate memory|[Cc]annot allocate memory|(?m:^MemoryError\b)",
        ("oom_kill", "oom-kill", "Out Of Memory", "Killed", "exceeded memory", "MemoryError", "llocate memory"),
        SLURM_SOURCE + "; PyTorch, torch/utils/data/_utils/signal_handling.py and c10/core/impl/alloc_cpu.cpp; bash,"
        " jobs.c; Ray, python/ray/exceptions.py; NumPy; " + ERRNO_SOURCE,
        names=SRUN_ORIGIN_REGEX,
        root=True,
    ),
    TroubleKind(
        "node failure",
        r"DUE TO NODE FAILURE|s(?:run|alloc): error: Node failure on \S+|[OP]RTE has lost communication with a remote daemon",
        ("DUE TO NODE", "Node failure on", "has lost communication"),
        SLURM_SOURCE + "; Open MPI, help-errmgr-base.txt",
        names=r"(?:ON|failure on) (?P<host>[\w.-]+)|Remote daemon: [^\n]{0,80} on node (?P<host2>[\w.-]+)",
        root=True,
    ),
    TroubleKind("time limit", r"DUE TO TIME LIMIT", ("DUE TO TIME",), SLURM_SOURCE, parting=True),
    TroubleKind("preemption", r"DUE TO PREEMPTION", ("DUE TO PREEMP",), SLURM_SOURCE),
    TroubleKind("cancelled", r"\*\*\* JOB \d+ ON \S+ CANCELLED AT [\dT:-]+ \*\*\*", (" CANCELLED AT ",), SLURM_SOURCE, parting=True),
    TroubleKind("requeue", r"DUE TO JOB REQUEUE", ("DUE TO JOB REQ",), SLURM_SOURCE, parting=True),
    TroubleKind(
        "shared memory (/dev/shm)",
        r"unable to (?:write to|open|mmap|resize|allocate|create)[^\n]{0,60}</?torch_[^\n]{0,200}|insufficient shared memory|out of shared memory\. "
        r"|/dev/shm[^\n]{0,200}No space left|No space left on device[^\n]{0,80}/dev/shm|while (?:creating|attaching to) shared memory segment",
        ("</torch_", "<torch_", "shared memory", "/dev/shm"),  # noqa: S108
        "PyTorch, torch/multiprocessing/reductions.py and utils/data/_utils/signal_handling.py; NCCL, src/misc/shmutils.cc",
        root=True,
    ),
    TroubleKind(
        "disk",
        r"No space left on device|Disk quota exceeded|Stale file handle|Read-only file system",
        ("No space left", "quota exceeded", "Stale file", "Read-only file system"),
        ERRNO_SOURCE,
        root=True,
    ),
    TroubleKind(
        "file system",
        r"Input/output error|LustreError: |Cannot send after transport endpoint shutdown"
        r"|Transport endpoint is not connected|Remote I/O error"
        r"|\[Errno 110\] Connection timed out: '/",
        ("put/output error", "LustreError", "transport endpoint", "ransport endpoint", "Remote I/O",
         "[Errno 110]"),
        ERRNO_SOURCE + "; Lustre, libcfs_debug.h",
    ),
    TroubleKind(
        "data loading",
        r"DataLoader worker \(pid\(s\) [\d, ]{1,200}\) exited unexpectedly"
        r"|DataLoader timed out after \d+ seconds|DataLoader worker [^\n]{0,80} killed by signal:(?! (?:Killed|Bus|Segm)|\s*\n)",
        ("exited unexpectedly", "DataLoader timed out", "killed by signal"),
        "PyTorch, torch/utils/data/dataloader.py",
    ),
    TroubleKind(
        "open files",
        r"Too many open files|received 0 items of ancdata",
        ("Too many open", "of ancdata"),
        ERRNO_SOURCE + "; Python, multiprocessing/reduction.py",
    ),
    TroubleKind(
        "checkpoint file",
        r"PytorchStream(?:Writer|Reader) failed|inline_container\.cc:\d+\] \. unexpected pos \d+ vs"
        r"|Error while (?:deserializing header|serializing): |pickle data was truncated|EOFError: Ran out of input"
        r"|zipfile\.BadZipFile|truncated file: eof = |The file might be corrupted|Invalid magic number; corrupt file",
        ("PytorchStream", "unexpected pos", "deserializing header", "while serializing", "pickle data", "out of input", "BadZip",
         "truncated file", "might be corrupted", "corrupt file"),
        "PyTorch, caffe2/serialize/inline_container.cc; safetensors; CPython, pickle; HDF5",
    ),
    TroubleKind("fatal check", r"(?:(?<![A-Z0-9])F\d{4} [\d:.]{8,16} +\d+|: F) \S{1,200}:\d+\] (?:Check failed: (?!error == cudaSuccess)|Non-OK-status)",
         ("Check failed: ", "Non-OK-status"), "glog and Abseil, as in XLA, TensorFlow and Caffe: the process aborts"),
    TroubleKind(
        "step launch",
        r"srun: error: (?:Unable to create step for job (?!.{0,80}completi)|Task launch for \S+ failed on node"
        r"|Application launch failed)|pyxis: container start failed",
        ("Unable to create step", "Task launch for", "Application launch", "container start"),
        SLURM_SOURCE + "; NVIDIA/pyxis, pyxis_slurmstepd.c",
        names=r"failed on node (?P<host>[\w.-]+)",
        parting=True,
    ),
    TroubleKind(
        "NaN loss",
        r"[Ll]oss is (?:nan|NaN|NAN|inf)\S{0,4},? stopping|ValueError: [Ll]oss is (?:nan|NaN)|NaN loss during training"
        r"|diverged with loss = NaN|[Ll]oss became infinite or NaN|returned nan values in its \d+th output"
        r"|FloatingPointError: invalid value \(nan\)|found NaN in (?:local|the) (?:grad|forward)|Unexpected result (?:nan|inf)\b",
        ("stopping", "oss is ", "NaN loss", "diverged with", "infinite or NaN", "nan values in", "(nan)", "found NaN in",
         "Unexpected result "),
        "facebookresearch/detr, engine.py; TensorFlow, basic_session_run_hooks.py; detectron2,"
        " detectron2/engine/train_loop.py; PyTorch, torch/autograd/anomaly_mode.py; JAX, jax/_src/debugging.py;"
        " Megatron-LM, megatron/core/rerun_state_machine.py",
        names=r"Unexpected result \w+ on rank (?P<rank>\d+)|Rank (?P<rank2>\d+): found NaN",
    ),
    TroubleKind(
        "loss scale",
        r"Current loss scale already at minimum|Minimum loss scale reached",
        ("loss scale already at", "inimum loss scale"),
        "DeepSpeed, deepspeed/runtime/fp16/loss_scaler.py; fairseq, fairseq/optim/dynamic_loss_scaler.py",
    ),
    TroubleKind(
        "rank died",
        r"Root Cause \(first observed failure\):|ChildFailedError|failed \(exitcode: -?[1-9]\d*\)"
        r" local_rank: |srun: error: [\w.-]+: tasks? [\d,-]+: (?!Exited with exit code [01]\b)"
        r"|(?:mpi|prte)run noticed that process rank \d+|exits with return code = -?[1-9]"
        r"|Engine core proc \S{1,60} died unexpectedly|A worker died or was killed while executing a task|The actor is dead because its worker process has died|exceptions\.(?:Ray)?Actor(?:Died)?Error|WorkerCrashedError"
        r"|died with <Signals\.SIG(?!TERM|INT)|terminated with signal SIG(?!TERM|INT)"
        r"|BAD TERMINATION OF ONE OF|\*\*\* Process received signal|Fatal Python error: (?!Segm|Bus)|line \d+: +\d+ Aborted\b"
        r"|terminate called after throwing|HorovodInternalError|Horovod has been shut down|(?:crashed|exited) with (?:exit )?code -(?!15\b)[1-9]"
        r"|detected that one or more processes exited with non-zero status|\] Child process with PID \d+ terminated with code -?[1-9]|(?<!Termination signal` )is detected by the operating system",
        ("Root Cause (first", "ChildFailedError", "failed (exitcode", "srun: error: ", "run noticed",
         "exits with return code", "worker died", "died unexpectedly", "actor is dead", "Horovod has", "with code -", "exit code -", "non-zero status", "Child process", "exceptions.", "CrashedError", "Signals.SIG", "with signal SIG",
         "BAD TERM", "received signal", "Fatal Python", " Aborted", "terminate called",
         "HorovodInternal", "operating system"),
        ELASTIC_SOURCE + "/errors/__init__.py and api.py, torch/multiprocessing/spawn.py; " + SLURM_SOURCE
        + "; Open MPI, help-mpirun.txt; MPICH's hydra; DeepSpeed, deepspeed/launcher/launch.py; Ray,"
        " python/ray/exceptions.py and src/ray/core_worker; Horovod; CPython, subprocess.py; Paddle",
        names=r"Root Cause[^\n]{0,40}\n(?:[^\n]{0,200}\n){0,3}?[^\n]{0,60}host +: (?P<host>[\w.-]+)\n"
        r"[^\n]{0,60}rank +: (?P<rank>\d+)|srun: error: (?P<host2>[\w.-]+): tasks? (?P<rank2>\d+)"
        r"|process rank (?P<rank3>\d+) with PID \d+ on node (?P<host3>[\w.-]+)|Process name: \[\[\d+,\d+\],(?P<rank4>\d+)\]"
        r"|\[rank: (?P<rank5>\d+)\] Child" + DIED_ORIGIN_REGEX,
        echo=True,
        parting=True,
    ),
    TroubleKind("signal to the launcher", r"Received (?:\d+|Signals\.\w+) death signal, shutting down workers|SignalException: Process \d+ got signal: ",
         ("death signal", "got signal: "), ELASTIC_SOURCE + "/api.py, torch/distributed/elastic/agent/server/api.py",
         echo=True, parting=True),
    TroubleKind(TRACEBACK, r"(?<!failed with: )Traceback \(most recent call last\)", ("Traceback (most",),
         "CPython, Lib/traceback.py", echo=True, parting=True),
)  # fmt: skip
GATE_WORDS = (
    "rror", "ERR", "ailed", "ailure", "ut of memory", "illed", "atchdog", "imed out", "imeout", "dump",
    "NVRM", "is lost", "access fault", "Got completion", " peer", "aborted", "heartbeat", "SIG",
    "egmentation", "No space", "quota", "Stale", "Read-only", "ransport endp", "mpirun", "exits with",
    "inimum", "NaN in", "Root Cause", "Traceback", "worker died", "all pending", "BAD TERM", "received signal",
    "noticed that", "stopping", "lost communication", "Aborted", "terminate called", "llocate memory", "NaN loss",
    "version mismatch", "retry count", "got completion", "no socket", "Duplicate GPU", "BadZip",
    "Event Queue", "[PID: ", "MPI_A", "peer process", "has been shut down", "crashed with", "exited with", "catastrophic",
    "is dead because", "died unexpectedly", "lame workers", "shared memory", "panic", "Exception in thread", "MPI_INIT failed", "mpi/pmix", "pml_ucx", "EI0", "EE1", "EH9", "EJ0", "EL0", "EZ9", "corrupt", "Non-OK", "HW Exception", "exceeded memory", "DUE TO JOB", "Unexpected result", "Child process", "death signal", "got signal", "setting up NCCL",
)  # fmt: skip
"""One of them is in whatever any pattern above finds: most texts hold none."""

ECHO_KIND_NAMES = frozenset(kind.name for kind in TROUBLE_KINDS if kind.echo)
"""What follows upon another trouble, by name."""

ROOT_KIND_NAMES = frozenset(kind.name for kind in TROUBLE_KINDS if kind.root)
"""What nothing else brings about, by name."""

PARTING_KIND_NAMES = frozenset(kind.name for kind in TROUBLE_KINDS if kind.parting) | {
    EXCEPTION,
    NETWORK_EXCEPTION_KIND,
}
"""What says nothing once the trainer has said that it is done, by name."""
