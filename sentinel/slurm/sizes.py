"""Asks squeue how many GPUs the jobs have; only `-O` shows all the ways in which a job can ask for
GPUs.

The -O names exist from 20.11 to 26.05 (src/squeue/opts.c); a field with a mark behind it and no
width is never cut."""

from __future__ import annotations

from sentinel.core.errors import CannotTell
from sentinel.slurm.gres import count_job_gpus
from sentinel.slurm.words import decode_text, parse_count

_SIZES = (
    *("JobID", "tres-alloc", "tres-per-job", "tres-per-node", "tres-per-task", "tres-per-socket"),
    "NumNodes",
)


def gpu_columns(nonce: str) -> str:
    """The value of squeue's `-O` for an answer that `read_gpu_counts` understands."""
    fields = [f"{name}:{nonce}|" for name in _SIZES]
    return ",".join([*fields, f"NumTasks:{nonce}."])


def read_gpu_counts(out: bytes, nonce: str) -> dict[str, int | None]:
    """GPUs by job id, None where squeue does not tell how many. Raises CannotTell unless every record is whole and in the form asked for."""
    *records, rest = out.split(f"{nonce}.\n".encode())
    sizes = dict[str, int | None]()
    try:
        if rest:
            raise ValueError("the last record is cut off")
        for record in records:
            job, *tres, nodes, tasks = (
                decode_text(f).strip() for f in record.split(f"{nonce}|".encode())
            )
            alloc, per_job, per_node, per_task, per_socket = tres
            counts = parse_count(nodes), parse_count(tasks)
            sizes[job] = count_job_gpus(alloc, per_job, per_node, per_task, per_socket, *counts)
    except ValueError as error:
        raise CannotTell(f"squeue's answer is not in the form asked for: {error}") from None
    return sizes
