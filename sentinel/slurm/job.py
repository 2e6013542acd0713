"""The job whose processes are looked at, as Slurm has it just now."""

from __future__ import annotations

import re

from msgspec import Struct

from sentinel.core.cluster import Job, Node
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.hostlist import expand
from sentinel.core.text import shortened, visible
from sentinel.slurm import nodes, queue
from sentinel.slurm.client import Client
from sentinel.slurm.complaints import complaint
from sentinel.slurm.ends import chosen, read_squeue, squeue_columns
from sentinel.slurm.filename_patterns import output_of
from sentinel.slurm.job_states import Phase, phase
from sentinel.slurm.node_states import is_heard
from sentinel.slurm.words import nonce

_ALIVE = frozenset({Phase.RUNNING, Phase.PAUSED, Phase.ENDING})
_ID = re.compile(r"[0-9]+([_+][0-9]+)?")


class NoJob(SentinelError):
    """There is no such job, or none of its processes can be anywhere."""

    exit_code = 64


class Target(Struct, frozen=True, kw_only=True):
    """The job and its nodes; `lost` are those that Slurm itself does not reach."""

    job: Job
    nodes: tuple[str, ...]
    states: tuple[Node, ...] = ()

    @property
    def lost(self) -> frozenset[str]:
        """A step on one of these fails for all."""
        return frozenset(n.name for n in self.states if n.state != "UNKNOWN" and not is_heard(n))


def alive(job: Job) -> bool:
    """Whether it may have processes."""
    return phase(job.state) in _ALIVE


def find(client: Client, job_id: str) -> Target:
    """The job by its number, `ARRAY_TASK` or `JOB+PART`; raises NoJob or CannotTell."""
    job = find_job(client, job_id)
    if not alive(job):
        raise NoJob(f"job {job.id} is {job.state}: it has no processes")
    names = expand(job.nodes)
    return Target(job=job, nodes=names, states=_states(client, job.nodes))


def find_job(client: Client, job_id: str) -> Job:
    """As Slurm has it now, ended or not; raises NoJob or CannotTell."""
    found = rows(client, job_id)
    mine = [job for job in found if job.id == job_id]
    running = [job for job in found if alive(job)]
    if not mine and len(running) > 1:
        some = ", ".join(job.id for job in running[:4])
        raise NoJob(f"{visible(job_id)} has {len(running)} running jobs; name one: {some}")
    chosen = mine or running or found
    if not chosen:
        raise NoJob(f"Slurm knows no job {visible(shortened(job_id, 40))} (see: squeue --me)")
    return chosen[0]


def log_path(client: Client, job: Job) -> str:
    """The file to which the job's output goes; raises CannotTell."""
    mark = nonce()
    columns = squeue_columns(mark)
    out = client.ask("squeue", "-h", "-a", "--states=all", "-j", job.job_id, "-O", columns)
    found = chosen(read_squeue(out, mark), job.job_id)
    if found is None or not found.stdout:
        raise CannotTell("Slurm does not tell where the job writes")
    return output_of(found.stdout, job)


def rows(client: Client, job_id: str) -> list[Job]:
    """What squeue has of it now, ended or not; one row for each element of an array that it
    lists, and for each part of a heterogeneous job, whichever was named. Empty where Slurm knows
    none; raises NoJob for what is no id, or CannotTell."""
    if not _ID.fullmatch(job_id):
        some = "4711, 4711_3 or 4711+1"
        raise NoJob(f"{visible(shortened(job_id, 40))!r} is no job id; write {some}")
    mark = nonce()
    done = client.run("squeue", "-h", "-a", "--states=all", "-j", job_id, "-o", queue.columns(mark))
    if done.code and "Invalid job id" in complaint(done.err):
        return []
    return queue.read_jobs(client.believe("squeue", done), mark)


def _states(client: Client, names: str) -> tuple[Node, ...]:
    """Only a help in choosing the way: without it srun says itself what it does not reach."""
    try:
        return tuple(nodes.read_nodes(client.ask(*nodes.QUESTION, names)))
    except CannotTell:
        return ()
