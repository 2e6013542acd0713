"""The job in which a command runs, by the environment that Slurm gives its processes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.core.errors import CannotTell
from sentinel.core.hostlist import expand_hostlist

_CPUS_PATTERN = re.compile(r"(\d{1,6})(?:\(x\d{1,6}\))?")


class OwnJob(Struct, frozen=True, kw_only=True):
    """The user's own job."""

    job_id: str  # The id of the job, as srun takes it.
    nodes: Sequence[str]  # Names of its nodes.
    gpus: int  # GPUs that it has on each node.
    cpus: int  # Processors that it has on the node where it has fewest; 0: not known.

    def list_tests(self) -> list[str]:
        """The tests that measure and that the job has the nodes and GPUs for."""
        further = [*(["nccl"] if self.gpus > 1 else []), *(["ib"] if len(self.nodes) > 1 else [])]
        return ["disk", "memory", *further]


def find_own_job(environ: Mapping[str, str]) -> OwnJob:
    """Raises CannotTell outside of a job, and Invalid if its list of nodes is none."""
    job, nodes = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_JOB_NODELIST", "")
    if not job.isdecimal() or not nodes:
        raise CannotTell("this is no job of Slurm: SLURM_JOB_ID and SLURM_JOB_NODELIST are not set")
    gpus = environ.get("SLURM_GPUS_ON_NODE", "")
    cpus = _CPUS_PATTERN.findall(environ.get("SLURM_JOB_CPUS_PER_NODE", ""))
    return OwnJob(
        job_id=job,
        nodes=expand_hostlist(nodes),
        gpus=int(gpus) if gpus.isdecimal() and len(gpus) < 4 else 0,
        cpus=min(map(int, cpus), default=0),
    )
