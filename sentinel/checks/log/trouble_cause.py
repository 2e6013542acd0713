"""Which cause of an interruption a known error stands for."""

from collections.abc import Iterable, Mapping

from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.trouble_kind import KILLED_KIND
from sentinel.core.run_ledger import InterruptionCause

_KINDS: Mapping[InterruptionCause, tuple[str, ...]] = {
    "gpu": (
        "GPU memory error",
        "GPU lost",
        "fabric manager not ready",
        "ROCm error",
        "CUDA error",
        "NVIDIA driver",
        "TPU",
        "Gaudi or Ascend",
    ),
    "network": (
        "NCCL connection",
        "NCCL network",
        "Gloo connection",
        "MPI connection",
        "UCX error",
        "rendezvous",
        "ssh to another node",
    ),
    "memory": ("host out of memory", KILLED_KIND, "shared memory (/dev/shm)"),
    "node": ("node failure",),
    "file_system": ("disk", "file system", "checkpoint file"),
    "preemption": ("preemption",),
    "person": ("cancelled", "cancelled step", "signal to the launcher"),
    "slurm": ("requeue", "time limit", "step launch", "job that was not submitted", "licence"),
    # What other ranks say of the one that failed names no cause.
    "unknown": (
        "collective timeout of another rank",
        "collective mismatch",
        "NCCL timeout",
        "NCCL heartbeat",
        "NCCL flight recorder",
        "NCCL error",
        "NCCL abort",
        "MPI error",
        "JAX coordination",
        "rank without a heartbeat",
        "rank died",
        "NCCL call that failed",
        "unknown error",
        "new line",
    ),
}
NO_MEMORY_KIND_NAMES = frozenset((*_KINDS["memory"], "CUDA out of memory"))
"""Errors of a program that asked for more memory than there is. It will ask for as much again."""

MAY_PASS_KIND_NAMES = frozenset(
    (
        *("GPU memory error", "GPU lost", *_KINDS["network"], *_KINDS["node"], "file system"),
        *("preemption", "time limit", "segmentation fault", "bus error"),
        *("NCCL timeout", "collective timeout of another rank", "NCCL heartbeat"),
        *("NCCL abort", "JAX coordination", "rank without a heartbeat"),
    )
)
"""Errors that the same program may not meet again. Of any other it is not known: who wrote it, and whether a
person ended the program by it."""

_CAUSES = {kind: cause for cause, kinds in _KINDS.items() for kind in kinds}


def find_interruption_cause(troubles: Iterable[LogTrouble]) -> InterruptionCause | None:
    """The cause that the errors name. An error that no row of the table names is one of the
    program. None without errors."""
    found = [find_kind_cause(trouble.kind) for trouble in troubles]
    return next((cause for cause in found if cause != "unknown"), found[0] if found else None)


def find_kind_cause(kind: str) -> InterruptionCause:
    """The cause that an error of this kind stands for: `software` if no row of the table names it."""
    return _CAUSES.get(kind, "software")
