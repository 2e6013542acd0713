"""The known errors of trainings that are about devices and the communication between ranks.

This is a part of TROUBLE_KINDS, in the same order: the more specific ones first.
"""

from sentinel.checks.log.trouble_kind import NCCL_CALL_KIND, TroubleKind

C10D_SOURCE = "PyTorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"
CUDA_SOURCE = "CUDA, driver_types.h and cuda.h; PyTorch, c10/cuda/CUDACachingAllocator.cpp"
NCCL_SOURCE = "NCCL, src/misc/socket.cc, src/transport/net_ib, src/init.cc"


DEVICE_TROUBLE_KINDS = (
    TroubleKind(
        "CUDA out of memory",
        r"(?:CUDA|HIP|NPU|XPU):? out of memory|Out of memory error on GPU \d|(?i:\bcuda\w{0,30}(?:[(:=] ?| \w{2,20} ){1,3}out of memory)|CUDA [Ee]rror: out of memory|(?<!ray\.exceptions\.)(?<!java\.lang\.)OutOfMemoryError(?!\(\))|[Cc]uda failure (?:\d+ )?'out of memory"
        r"|(?:\b\w{1,60}Error: )?RESOURCE_EXHAUSTED: Out of memory|\b\w{1,60}Error: RESOURCE_EXHAUSTED: Error allocating|OOM when allocating tensor"
        r"|(?:(?:[Rr]an )?[Oo]ut of|not enough|insufficient) (?:GPU|gpu|HBM|device|video) memory|\w{2,9}RawMemoryAllocationFailure|(?:Cuda|CUDA|HIP|SYCL)\w* memory space failed to allocate|hipErrorOutOfMemory|cudaErrorMemoryAllocation|(?:CUDA|HIP) error[^\n]{0,300}out of memory|ERROR_OUT_OF_DEVICE_MEMORY|(?:RESOURCE_EXHAUSTED|Resource exhausted): (?:[^\n]{0,160}(?:[Oo]ut of memory|[Ff]ailed to allocate|OOM\b)|Attempting to (?:reserve|allocate))|Exception in device=TPU:\d{1,4}: (?:RESOURCE_EXHAUSTED|Resource exhausted)|[Rr]an out of memory in memory space"
        r"|CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED",
        ("ut of memory", "OutOfM", "OUT_OF_MEMORY", "ALLOC_FAILED", "OOM when", "EXHAUSTED: ", "exhausted: ", "TPU", " memory", "RawMemory", "OutOfMemory", "MemoryAllocation", "OUT_OF_DEVICE"),
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
        r"NVRM: .{0,200}fallen off the bus|NVRM: Xid|Unable to \w+ the device handle for GPU"
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
        r"CUDA error(?:: |\(\d+\), )|\[CUDA ERROR\]|CUDA API failed at|CUDA driver error|CUDA runtime error|[Cc]uda failure (?:\d+ )?'|CUDA_ERROR_[A-Z_]+"
        r"|CUBLAS_STATUS_(?!SUCCESS)[A-Z_]+ (?:when calling|;)|CUDNN_STATUS_(?!SUCCESS)[A-Z_]+"
        r"|device-side assert triggered|an illegal (?:memory access|instruction) was encountered|unspecified launch failure|no kernel image is available for execution|no CUDA-capable device|the launch timed out and was terminated"
        r"|CUDA driver version is insufficient|CUDA-capable device\(?s?\)? (?:is/)?are busy|CUDA error at \S{1,200}:\d|cudaError(?:_t \d+ |[A-Z][A-Za-z]{1,60}):|Check failed: error == cudaSuccess \((?!0 )"
        r"|RuntimeError: (?:CUDA (?:driver initialization failed|unknown error)|No CUDA GPUs are available"
        r"|Unexpected error from cudaGetDeviceCount|Found no NVIDIA driver|The NVIDIA driver on your)",
        ("CUDA error", "CUDA ERROR", "CUDA API", "CUDA driver ", "untime error", "uda failure", "CUDA_ERROR_",
         "CUBLAS_STATUS", "CUDNN_STATUS", "device-side assert", "illegal memory", "illegal instruction", "launch failure", "kernel image", "CUDA-capable", "launch timed out", "is insufficient", "cudaError", "cudaSuccess", "No CUDA",
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
        r"|!!!! FATAL ERROR !!!! for \[/dev/accel|Exception in device=TPU:\d",
        ("device halted", "lame workers", "all pending programs", "FATAL ERROR !", "in device=TPU"),
        "libtpu's log; XLA, pjrt_computation_client.cc and xla_multiprocessing.py of pytorch/xla",
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
        r"NCCL [Ee]rror|NCCL communication aborted|nccl(?:System|Remote|Internal|UnhandledCuda)Error|NCCL WARN Duplicate GPU detected|NCCL WARN NET/\w{1,20} : peer \S{1,80} message truncated",
        ("NCCL error", "NCCL Error", "NCCL communication", "ncclSys", "ncclRem", "ncclInt", "ncclUnh", "Duplicate GPU", "message truncated"),
        NCCL_SOURCE,
        parting=True,
    ),
    TroubleKind(
        NCCL_CALL_KIND,
        r"NCCL WARN (?P<said>\S)[^\n]{0,300}\n\n?[^\n]{1,100} NCCL INFO [\w/.]{1,60}:\d{1,5} -> [1-9]",
        ("NCCL WARN",),
        NCCL_SOURCE + ", include/checks.h: each caller tells the code that it passes on",
        echo=True,
        parting=True,
        own_words=True,
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
        r"|MPI communication peer process has unexpectedly disconnected|\bOFI \w{2,12} failed \(",
        ("mca_btl_tcp", "peer process has", "OFI "),
        "Open MPI, opal/mca/btl/tcp/btl_tcp_frag.c and help-mpi-btl-tcp.txt",
        names=r"\n[ \t]{0,40}Peer host: +(?P<host>[\w.-]+)",
        echo=True,
        parting=True,
    ),
    TroubleKind(
        "MPI error",
        r"\*\*\* (?:The MPI_\w{1,40}\(\) function was called (?:before|after) MPI_)|\*\*\* An error occurred in MPI_\w+(?:(?:\n[^\n]{0,200}){0,4}?\n[^\n]{0,80}\*\*\* (?P<said>MPI_ERR_\w+: ))?|(?:Fatal error|internal ABORT) in (?:P?MPI_\w+|process)|MPI_ABORT was invoked on rank \d+|application called MPI_Abort\(",
        ("occurred in MPI_", "function was called", "MPI_ABORT was", "called MPI_Abort", "error in PMPI", "error in MPI", "ABORT in"),
        "Open MPI, ompi/errhandler/errhandler_predefined.c and help-mpi-api.txt; MPICH, src/mpi/init/abort.c",
        names=r"\[Rank (?P<rank4>\d+)\] \[job id [^\]\n]{1,40}\](?: \[[^\]\n]{1,40}\])?? \[(?P<host>[\w.-]{1,64})\]|MPI_ABORT was invoked on rank (?P<rank>\d+)|MPI_Abort\([^\n]{0,60}process (?P<rank2>\d+)|\(rank (?P<rank3>\d+) in comm \d+\)",
        own_words=True,
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
        r"It looks like MPI_INIT failed|(?m:^(?:mpirun|mpiexec|prterun|ORTE|PRTE) (?:was unable to|has detected an attempt to run as root))|An? (?:ORTE|PRTE) daemon has unexpectedly failed|OPAL ERROR: \w[\w ]{2,40} in file |mpi/pmix\w{0,6}: [^\n]{0,160}(?:collective timeout|failed|ERROR)|\bPMIX ERROR: (?!ERROR in file gds_ds12_lock)",
        ("MPI_INIT failed", "OPAL ERROR", "mpi/pmix", "PMIX ERROR", " was unable to", "run as root", "has unexpectedly"),
        "Open MPI, ompi/runtime/help-mpi-runtime.txt; Slurm, src/plugins/mpi/pmix; OpenPMIX, src/util/error.c",
        names=r"pmixp_\w{1,60}: (?P<host>[\w.-]{1,64}) \[\d{1,6}\]: ",
        own_words=True,
        parting=True,
    ),
)  # fmt: skip
