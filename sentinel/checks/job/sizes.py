"""Which jobs are large enough to be watched without being named."""

from collections import Counter
from collections.abc import Callable, Sequence

from sentinel.checks.job.settings import JobSettings
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Slurm
from sentinel.core.text import visible
from sentinel.slurm.model import Job


def large(
    mine: Sequence[Job], settings: JobSettings, jobs: Sequence[Job], slurm: Slurm
) -> list[Job]:
    """Those of `mine` with `min_nodes` and `min_gpus` at least. Raises CannotTell."""
    nodes = _total(jobs, lambda job: job.node_count)
    mine = [job for job in mine if nodes[_whole(job)] >= settings.min_nodes]
    if not settings.min_gpus or not mine:
        return list(mine)
    told = slurm.gpus()
    if missing := [job for job in mine if job.job_id not in told]:
        first = visible(missing[0].id)
        raise CannotTell(f"squeue does not tell the GPUs of {len(missing)} jobs, such as {first}")
    gpus = _total(jobs, lambda job: told.get(job.job_id, 0))
    return [job for job in mine if gpus[_whole(job)] >= settings.min_gpus]


def _total(jobs: Sequence[Job], number: Callable[[Job], int]) -> Counter[str]:
    """By whole job: the parts of a heterogeneous one are added up."""
    found: Counter[str] = Counter()
    for job in jobs:
        found[_whole(job)] += number(job)
    return found


def _whole(job: Job) -> str:
    return job.id.partition("+")[0]
