"""Counts the GPUs of a node by its Gres in Slurm (slurm.conf(5), gres.conf(5)). Pure."""

import re

from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.slurm.words import parse_count

_BRACKETS = lazy_pattern(r"\([^()]*\)")
_GPU = lazy_pattern(r"gpu(?::([^:,]+))??(?::(\d+))?")
# `<GPU_type>_<slices>g.<memory>gb`: src/plugins/gpu/nvml/gpu_nvml.c, and gres.html.
_MIG = lazy_pattern(r"(?:^|[^0-9a-z])\d+g\.\d+gb")


def count_gres_gpus(gres: str) -> int | None:
    """The number of GPUs in `gpu:8(S:0-1)` or `gpu:h100:4,gpu:a100:4`; 0 without any.

    None if MIG hides the number (`gpu:a100_1g.5gb:7` counts slices), or the form is not known."""
    count = 0
    for item in _BRACKETS.sub("", gres).split(","):
        if item.strip().partition(":")[0] != "gpu":
            continue
        match = _GPU.fullmatch(item.strip())
        if not match or _MIG.search(match[1] or ""):
            return None
        count += parse_count(match[2] or "1")
    return count


def count_job_gpus(
    allocated: str,
    per_job: str,
    per_node: str,
    per_task: str,
    per_socket: str,
    nodes: int,
    tasks: int,
) -> int | None:
    """The number of GPUs of a job, from squeue's -O fields tres-alloc, tres-per-job, -node, -task and -socket.

    tres-alloc has them only if AccountingStorageTRES has gres/gpu (slurm.conf(5)); else the job's
    request counts. 0 if neither names a GPU; None for GPUs by the socket, as it may get any number of them."""
    told = re.findall(r"(?:^|,)gres/gpu(:[^=,]*)?=(\d+)", allocated)
    if told:
        total = [parse_count(number) for kind, number in told if not kind]
        return total[0] if total else sum(parse_count(number) for _, number in told)
    asked = ((per_job, 1), (per_node, nodes), (per_task, tasks))
    other = None if _requested_gpus(per_socket) else 0
    return next((count * times for text, times in asked if (count := _requested_gpus(text))), other)


def _requested_gpus(text: str) -> int:
    """The number in `gres:gpu:2` or, from 21.08 on, `gres/gpu:h100=2`. A type may be of digits alone, with a
    number behind it (`gres/gpu:4090:2`)."""
    named = re.findall(
        r"(?:^|,)(?:gres[:/])?gpu(?::(?:[^,=:]+(?=[:=])|\d*[^\d,:=][^,=:]*))?(?:[:=](\d+))?(?=,|$)",
        text,
    )
    return sum(parse_count(number or "1") for number in named)
