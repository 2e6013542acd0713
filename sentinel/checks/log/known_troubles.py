"""The known errors of trainings, as a table with one row per error, the more specific ones first.

The texts come from the programs' source code. `source` names it.
"""

from sentinel.checks.log.known_device_troubles import DEVICE_TROUBLE_KINDS
from sentinel.checks.log.trouble_kind import (
    DIED_ORIGIN_REGEX,
    DIED_REGEX_TEMPLATE,
    DIED_WORDS,
    EXCEPTION,
    KILLED_KIND,
    LAST_WORDS_KIND,
    LAUNCHERS_SOURCE,
    NETWORK_EXCEPTION_KIND,
    SRUN_ORIGIN_REGEX,
    SRUN_REGEX,
    TRACEBACK,
    UNKNOWN_KIND,
    TroubleKind,
)
from sentinel.slurm.step_messages import STEPD_ERROR_REGEX

ELASTIC_SOURCE = "PyTorch, torch/distributed/elastic/multiprocessing"
SLURM_SOURCE = "Slurm, src/slurmd/slurmstepd/req.c, src/srun/libsrun/launch.c"
ERRNO_SOURCE = "glibc, strerror(3), as Python's OSError prints it"


TROUBLE_KINDS = (
    *DEVICE_TROUBLE_KINDS,
    TroubleKind(
        "panic or uncaught exception",
        r"thread '[^'\n]{1,60}' (?:\(\d{1,9}\) )?panicked at (?:'|[^\n']{1,200}:\n(?P<said>\S))|(?m:^panic: )|thread panicked while panicking|Exception in thread \"[^\"\n]{1,80}\" "
        r"|thread '[^'\n]{1,60}' has overflowed its stack|(?m:^fatal error: (?=[^\n]{1,300}\n\n?(?:goroutine|runtime) ))|(?m:^(?:Unhandled exception\. |Fatal error: exception )\S)"
        r"|(?m:^ERROR: LoadError: )|(?m:^ERROR: (?=[^\n]{1,400}\nStacktrace:))|Exception in device=(?!TPU)[A-Z]+:\d",
        ("panicked ", "overflowed its", "fatal error: ", "exception", "panic: ", "Exception in thread", "LoadError", "in device=", "Stacktrace:"),
        "Rust, library/std/src/panicking.rs; Go, runtime/panic.go; Java, ThreadGroup; Julia, base/client.jl; .NET; OCaml",
        own_words=True,
        general=True,
    ),
    TroubleKind(
        "uncaught C++ exception",
        r"terminate called after throwing an instance of '[^'\n]{1,200}'[^\n]{0,20}\n[^\n]{0,80}?(?P<said>what\(\): (?!\s{0,3}what)[^\n]{0,20}\S)|terminate called (?:without an active exception|recursively)"
        r"|pure virtual method called|libc\+\+abi: terminating",
        ("what(): ", "active exception", "called recursively", "pure virtual", "c++abi"),
        "GCC, libsupc++/vterminate.cc and pure.cc; LLVM, libcxxabi/src/cxa_default_handlers.cpp",
        parting=True,
        own_words=True,
        general=True,
    ),
    TroubleKind(
        "failed assertion",
        r"(?P<said>(?<=[ ,])Assertion [`'][^`'\n]{1,300}['`] failed)|Assertion failed: [^\n]{1,300}, file |\b[A-Z]{1,12}_ASSERT(?:_\w{1,20})?\([^\n]{1,300}\) failed",
        ("Assertion ", "_ASSERT"),
        "glibc, assert/assert.c; musl, src/exit/assert.c; ggml, src/ggml.c",
        own_words=True,
        general=True,
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
        general=True,
    ),
    TroubleKind("bus error", SRUN_REGEX + r"Bus error|(?:DataLoader worker [^\n]{0,80}by signal:\s{1,3})?(?<!caused by a )\b[Bb]us error\b|\bSIGBUS\b"
         + DIED_REGEX_TEMPLATE.format("7"), ("us error", "SIGBUS", *DIED_WORDS),
         "glibc, string/strsignal; PyTorch, torch/csrc/DataLoader.cpp; " + LAUNCHERS_SOURCE, names=SRUN_ORIGIN_REGEX + DIED_ORIGIN_REGEX),
    TroubleKind("segmentation fault", SRUN_REGEX + r"Segmentation fault|(?:DataLoader worker [^\n]{0,80}by signal:\s{1,3})?(?<!caused by a )\b[Ss]egmentation fault\b|caught segfault \*\*\*|segmentation violation"
         r"|\bSIGSEGV\b(?! or other unexpected)" + DIED_REGEX_TEMPLATE.format("11"), ("egmentation", "segfault", "SIGSEGV", *DIED_WORDS),
         "glibc, string/strsignal; " + LAUNCHERS_SOURCE, names=SRUN_ORIGIN_REGEX + DIED_ORIGIN_REGEX),
    TroubleKind(
        "host out of memory",
        SRUN_REGEX + r"Out Of Memory|(?<!\w)oom[-_]kill(?:er)?\b|Out Of Memory|DataLoader worker [^\n]{0,80} killed by signal: Killed"
        r"|exceeded memory limit \(\d+ > \d+\)|ray\.exceptions\.OutOfMemoryError|Out of memory: Killed process|_?ArrayMemoryError:"
        r"|DefaultCPUAllocator: can't allocate memory|[Cc]annot allocate memory|(?m:^MemoryError\b)|std::bad_alloc|killed due to memory pressure"
        r"|Killed process \d+ \(|memory allocation of \d+ bytes failed|\bOOMKilled\b|ALLOCATE: \d+ bytes requested; not enough memory|java\.lang\.OutOfMemoryError|\bOutOfMemoryError\(\)"
        r"|(?m:cannot allocate (?:vector|memory block) of size)",
        ("OOMKilled", "not enough memory", "OutOfMemoryError", "cannot allocate", "std::bad_alloc", "memory pressure", "memory allocation of", "oom_kill", "oom-kill", "Out Of Memory", "Killed", "exceeded memory", "MemoryError", "llocate memory"),
        SLURM_SOURCE + "; PyTorch, torch/utils/data/_utils/signal_handling.py and c10/core/impl/alloc_cpu.cpp; bash,"
        " jobs.c; Java; Julia; R; NVIDIA's Fortran; Ray, python/ray/exceptions.py; NumPy; " + ERRNO_SOURCE,
        names=SRUN_ORIGIN_REGEX,
        root=True,
    ),
    TroubleKind(
        KILLED_KIND,
        r"line \d+: +\d+ Killed\b|(?m:(?:(?<![A-Za-z_ ])|(?<=\ds))Killed$)|(?m:^\S{1,100}:(?:\d+:)? killed\b)",
        ("Killed", ": killed"),
        "bash, jobs.c; zsh, jobs.c; behind a bar of mmcv: `ETA: 157s`",
        root=True,
    ),
    TroubleKind(
        "node failure",
        r"DUE TO NODE FAILURE|node with node id: \S+ and address: \S+ [^\n]{0,100}has been marked dead|s(?:run|alloc): error: Node failure on \S+|[OP]RTE has lost communication with a remote daemon",
        ("DUE TO NODE", "Node failure on", "has lost communication", "been marked dead"),
        SLURM_SOURCE + "; Open MPI, help-errmgr-base.txt",
        names=r"node with node id: \S+ and address: (?P<host3>[\w.:-]+)|(?:ON|failure on) (?P<host>[\w.-]+)|Remote daemon: [^\n]{0,80} on node (?P<host2>[\w.-]+)",
        root=True,
    ),
    TroubleKind(
        "rank without a heartbeat",
        r"Did not get (?:initial|subsequent) heartbeat",
        ("heartbeat",),
        "NVIDIA/nvidia-resiliency-ext, fault_tolerance/rank_monitor_server.py",
        names=r"\[RankMonitorServer:(?P<rank>\d+)(?:@(?P<host>[\w.-]+))?\]",
    ),
    TroubleKind("time limit", r"DUE TO TIME LIMIT|Caught signal \S{1,20} on [\w.-]{1,64}: this job is timed-out", ("DUE TO TIME", "is timed-out"),
                SLURM_SOURCE + "; facebookincubator/submitit, core/job_environment.py", parting=True),
    TroubleKind("preemption", r"DUE TO PREEMPTION|Caught signal \S{1,20} on [\w.-]{1,64}: this job is preempted", ("DUE TO PREEMP", "is preempted"),
                SLURM_SOURCE + "; facebookincubator/submitit, core/job_environment.py"),
    TroubleKind("cancelled", r"\*\*\* JOB \d+ ON \S+ CANCELLED AT [\dT:-]+(?: DUE to SIGNAL [\w ]{1,30})? \*\*\*|salloc: Job allocation \d+ has been revoked", (" CANCELLED AT ", "been revoked"), SLURM_SOURCE, parting=True),
    TroubleKind("cancelled step", r"\*\*\* STEP [\d.+]+ ON \S+ CANCELLED AT [\dT:-]+(?: DUE to SIGNAL [\w ]{1,30})? \*\*\*", (" CANCELLED AT ",), SLURM_SOURCE, echo=True, parting=True),
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
        r"Input/output error(?! - [A-Z])|LustreError: |Cannot send after transport endpoint shutdown"
        r"|Transport endpoint is not connected|Remote I/O error"
        r"|\[Errno 110\] Connection timed out: '/",
        ("put/output error", "LustreError", "transport endpoint", "ransport endpoint", "Remote I/O",
         "[Errno 110]"),
        ERRNO_SOURCE + "; Lustre, libcfs_debug.h",
    ),
    TroubleKind(
        "processes or threads",
        r"can't start new thread|pthread_create (?:failed|\(\) failed)|fork: (?!retry)[^\n]{0,40}Resource temporarily unavailable|std::system_error[^\n]{0,40}\n[^\n]{0,40}Resource temporarily"
        r"|BlockingIOError: \[Errno 11\]|libgomp: Thread creation failed",
        ("start new thread", "pthread_create", "temporarily unavail", "Thread creation"),
        ERRNO_SOURCE + "; CPython, Modules/_threadmodule.c; OpenBLAS, driver/others/blas_server.c; bash, jobs.c",
        root=True,
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
    TroubleKind("failed check", r"(?:(?<![A-Z0-9])E\d{4} [\d:.]{8,16} +\d+|: E)(?: +\d{1,9})? \S{1,200}:\d+\] Check failed: ",
         ("Check failed: ",), "glog and TensorFlow's log, as in torch_xla: it is told, and then thrown"),
    TroubleKind("fatal check", r"(?:(?<![A-Z0-9])F\d{4} [\d:.]{8,16} +\d+|: F)(?: +\d{1,9})? \S{1,200}:\d+\] (?:Check failed: (?!error == cudaSuccess)|Non-OK-status|(?!Check failed)\S)",
         ("Check failed: ", "Non-OK-status", ": F ", "F0", "F1"), "glog and Abseil, as in XLA, TensorFlow and Caffe: the process aborts", own_words=True),
    TroubleKind(
        "step launch",
        r"srun: error: (?:Unable to create step for job (?!.{0,80}completi)|Unable to (?:confirm allocation|allocate resources)|Task launch for \S+ failed on node"
        r"|Application launch failed)|" + STEPD_ERROR_REGEX + r"(?:execve\(\): |IO setup failed|job_manager exiting"
        r" abnormally|Failed to invoke spank plugin stack|Task ?Prolog failed)",
        ("Unable to create step", "Unable to confirm", "Unable to alloc", "Task launch for", "Application launch", "execve()", "IO setup",
         "exiting abnormally", "Failed to invoke", "rolog failed"),
        SLURM_SOURCE + ", src/slurmd/slurmstepd/task.c and mgr.c; NVIDIA/pyxis, pyxis_slurmstepd.c",
        names=r"failed on node (?P<host>[\w.-]+)",
        parting=True,
        own_words=True,
    ),
    TroubleKind(
        "container start",
        r"pyxis: container start failed(?:[^\n]{0,80}\n[^\n]{0,80}printing enroot log file:\n[^\n]{0,60}pyxis: {1,9}(?P<said>\S))?|(?m:^FATAL: {1,5}\S)|docker: Error response from daemon: |enroot-\w{1,20}: failed to |pyxis: (?:couldn't start container|failed to (?:import|create) )",
        ("FATAL: ", "Error response from daemon", "enroot-", "pyxis: "),
        "Apptainer, pkg/sylog; Docker, cli/cmd/docker; NVIDIA/enroot and pyxis",
        own_words=True,
    ),
    TroubleKind(
        "ssh to another node",
        r"ssh: connect to host \S{1,100} port \d+: |: ssh exited with exit code [1-9]|(?m:^Connection to \S{1,100} closed by remote host)",
        ("connect to host", "ssh exited", "closed by remote host"),
        "OpenSSH, sshconnect.c and clientloop.c; pdsh, src/pdsh/dsh.c, as DeepSpeed's launcher uses it",
        names=r"connect to host (?P<host>[\w.-]+) port|Connection to (?P<host2>[\w.-]+) closed",
        parting=True,
    ),
    TroubleKind(
        "crash in native code",
        r"\b(?:Illegal instruction|Floating point exception)\b(?= *\(core dumped\)|\s*$)|double free or corruption|free\(\): (?:invalid|double)"
        r"|malloc\(\): |Attempt to free invalid pointer|<jemalloc>: Error in |munmap_chunk\(\): invalid|corrupted (?:size vs\. prev_size|double-linked list)|\*\*\* \w[\w ]{2,30} detected \*\*\*: "
        r"|Fatal Python error: (?!Segm|Bus)|Program received signal SIG(?!SEGV|BUS|TERM|INT)\w|\*\*\* caught (?!segf)\w[\w ]{3,30} \*\*\*|ERROR: (?:Address|Leak|Memory)Sanitizer: ",
        ("Fatal Python", "received signal", "*** caught", "Sanitizer: ", "Illegal instr", "Floating point exc", "double free", "free(): ", "malloc(): ", "munmap_chunk", "corrupted ", "detected ***", "free invalid", "<jemalloc>"),
        "glibc, string/strsignal, malloc/malloc.c and debug/fortify_fail.c; bash, jobs.c; gperftools; jemalloc; CPython, Python/pylifecycle.c; libgfortran; R; LLVM's sanitizers",
        own_words=True,
    ),
    TroubleKind(
        "job that was not submitted",
        r"sbatch: error: Batch job submission failed: ",
        ("job submission failed",),
        SLURM_SOURCE + ", src/sbatch/sbatch.c",
        own_words=True,
    ),
    TroubleKind(
        "R error",
        r"(?m:^Error(?: in [^\n]{1,200}?)? ?: ?(?:\n {1,4})?(?P<said>\S[^\n]{0,300})(?=\n(?:[^\n]{0,200}\n){0,6}Execution halted))",
        ("Execution halted",),
        "R, src/main/errors.c",
        own_words=True,
    ),
    TroubleKind(
        "licence",
        r"[Ll]icen[sc]e checkout failed|License Manager Error|FLEX(?:net|lm) [Ll]icens\w{2,4} error|[Ff]ailed to (?:check ?out|obtain|acquire|get) (?:an? |the )?(?:valid )?licen[sc]e"
        r"|[Nn]o (?:valid )?licen[sc]e (?:was )?(?:found|available)",
        ("icense", "icence"),
        "FlexNet Publisher, MATLAB and others that check a licence out",
        own_words=True,
    ),
    TroubleKind(
        "error of a program",
        r"(?m:^(?:(?:\{\x08)?Error using [^\n]{1,200}|(?:Fatal error|FATAL ERROR): {0,9})\n(?P<said>\S))|Fortran runtime error: \S|forrtl: (?:severe|error) \(\d+\): |--> FOAM FATAL (?:IO )?ERROR ?:"
        r"|PETSC ERROR: (?![- ])(?=[^\n]{3})|(?m:^ *Error in routine \w)|(?m:^amrex::(?:Abort|Error)::)"
        r"|OMP: Error #\d{1,4}: |Accelerator Fatal Error: |Libomptarget (?:fatal )?error|call to cu[A-Z]\w{2,40} returned error \d",
        ("Error using", "OMP: Error", "runtime error", "forrtl: ", "FOAM FATAL", "Fatal error:", "FATAL ERROR:", "PETSC ERROR", "Error in routine", "amrex::", "Fatal Error: ", "Libomptarget", "returned error"),
        "MATLAB; libgfortran; Intel Fortran; OpenFOAM; GROMACS; PETSc; Quantum ESPRESSO; AMReX; NVIDIA HPC SDK; LLVM, offload and OpenMP",
        own_words=True,
        general=True,
    ),
    TroubleKind(
        "program that did not start",
        r"(?m:^(?!\S{1,200}(?:rc|profile|login): )[^\n]{1,200}: command not found\s{0,3}$)|(?m:^\S{1,200}: (?:\d{1,7}: )?[^\s:]{1,100}: not found\s{0,3}$)"
        r"|(?m:^(?:/usr/bin/)?env: [^\s:]{1,100}: No such file)|(?m:^\S{1,200}: line \d{1,7}: [^\s:]{1,200}: (?:Permission denied|cannot execute)[^\n]{0,60}$)"
        r"|Lmod has detected the following error: |Unable to locate a modulefile for|(?m:^(?:EnvironmentNameNotFound|CondaError): )"
        r"|(?m:^\S{0,100}python[\d.]{0,6}: No module named \S)|There are not enough slots available in the system"
        r"|(?m:^(?!\s|Traceback )[^\n]{1,300}(?=\n(?:[^\n]{1,300}\n){0,4}\n?Set the environment variable HYDRA_FULL_ERROR))"
        r"|version `\w[\w.]{1,40}' not found \(required by|symbol lookup error: |relocation error: |(?m:^FATAL: kernel too old)"
        r"|FATAL Flags parsing error: |(?m:^╭─ (?:[\w ]{0,30}[Ee]rrors?|Unrecognized|Required|Invalid|Missing)[\w ]{0,30} ─[^\n]{0,200}\n│ (?P<said>\S))|(?m:^(?:SyntaxError|IndentationError|TabError): )|can't open file '[^'\n]{1,300}': \[Errno \d+\]|error while loading shared libraries: "
        r"|(?m:^[\w./-]{1,80}: error: (?:unrecognized arguments|the following arguments are required|argument \S{1,60}: ))",
        ("HYDRA_FULL_ERROR", "Flags parsing", "╭─ ", "(required by", "lookup error", "relocation error", "too old", "command not found", ": not found", "env: ", "Permission denied", "cannot execute", "Lmod has", "a modulefile", "EnvironmentName", "CondaError",
         "No module named", "not enough slots", "SyntaxError", "IndentationError", "TabError", "can't open file", "shared libraries: ", "error: unrec", "error: the following arg", "error: argument"),
        "bash, execute_cmd.c; dash, exec.c; CPython, Modules/main.c, Lib/runpy.py, Python/pythonrun.c and Lib/argparse.py; glibc, elf/dl-load.c;"
        " Lmod, src/Master.lua; conda, conda/exceptions.py; Open MPI, help-orte-rmaps-base.txt;"
        " Hydra, hydra/_internal/utils.py; Abseil, absl/app.py; Typer, typer/rich_utils.py",
        echo=True,
        own_words=True,
    ),
    TroubleKind(
        "NaN loss",
        r"[Ll]oss is (?:nan|NaN|NAN|inf)\S{0,4},? stopping|[Ll]oss (?:is|was|became) (?i:nan|inf)\w{0,8}\b[^\n]{0,80}\b(?i:stopping|aborting|exiting|terminating)|ValueError: [Ll]oss is (?:nan|NaN)|NaN loss during training"
        r"|diverged with loss = NaN|[Ll]oss became infinite or NaN|returned nan values in its \d+th output"
        r"|FloatingPointError: invalid value \(nan\)|found NaN in (?:local|the) (?:grad|forward)|Unexpected result (?:nan|inf)\b",
        ("stopping", "oss is ", "oss was ", "oss became ", "NaN loss", "diverged with", "infinite or NaN", "nan values in", "(nan)", "found NaN in",
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
        r" local_rank: |srun: error: [\w.-]+: tasks? [\d,-]+: (?!Exited with exit code [01]\b)|srun: error: [\w.-]+: tasks? [\d,-]+: Exited with exit code 1"
        r"(?=\n(?:[^\n]{0,300}\n){0,6}?[^\n]{0,200}(?:Terminating|Job step aborted|: Terminated|: Killed))"
        r"|(?:mpi|prte)run noticed that process rank \d+|exits with return code = -?[1-9]|(?:mpi|prte)(?:run|exec) has exited due to process rank \d"
        r"|Engine core proc \S{1,60} died unexpectedly|A worker died or was killed while executing a task|The actor is dead because its worker process has died|exceptions\.(?:Ray)?Actor(?:Died)?Error|WorkerCrashedError"
        r"|died with <Signals\.SIG(?!TERM|INT)|terminated with signal SIG(?!TERM|INT)"
        r"|BAD TERMINATION OF ONE OF|\*\*\* Process received signal|Primary job +terminated normally|line \d+: +\d+ Aborted\b"
        r"|terminate called after throwing|HorovodInternalError|Horovod has been shut down|(?:crashed|exited) with (?:exit )?code -(?!15\b)[1-9]|\bRank \d+ (?:\(PID \d+\) )?(?:crashed|exited) with (?:exit )?code [1-9]"
        r"|(?m:^Aborted \(core dumped\))|detected that one or more processes exited with non-zero status|\] Child process with PID \d+ terminated with code -?[1-9]|(?<!Termination signal` )is detected by the operating system",
        ("Root Cause (first", "ChildFailedError", "failed (exitcode", "srun: error: ", "run noticed", "has exited due",
         "exits with return code", "worker died", "died unexpectedly", "actor is dead", "Horovod has", "with code ", "exit code ", "non-zero status", "Child process", "exceptions.", "CrashedError", "Signals.SIG", "with signal SIG",
         "BAD TERM", "received signal", "Primary job", " Aborted", "terminate called",
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

OWN_WORDS_KIND_NAMES = frozenset(kind.name for kind in TROUBLE_KINDS if kind.own_words) | {
    EXCEPTION,
    NETWORK_EXCEPTION_KIND,
    TRACEBACK,
    LAST_WORDS_KIND,
    UNKNOWN_KIND,
}
"""Errors that are reported with their own text, by name."""
