"""The job whose processes are looked at, as Slurm has it just now."""

from __future__ import annotations

import re

from msgspec import Struct

from sentinel.core.cluster import Job, Node
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.hostlist import expand_hostlist
from sentinel.core.text import shortened, visible
from sentinel.slurm import nodes, queue
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.complaints import describe_stderr
from sentinel.slurm.ends import choose_end, read_squeue, squeue_columns
from sentinel.slurm.filename_patterns import job_output_path
from sentinel.slurm.job_states import Phase, state_phase
from sentinel.slurm.node_states import is_heard
from sentinel.slurm.words import make_nonce

_ALIVE = frozenset({Phase.RUNNING, Phase.PAUSED, Phase.ENDING})
_JOB_ID = re.compile(r"[0-9]+([_+][0-9]+)?")


class NoSuchJob(SentinelError):
    """There is no such job, or none of its processes can be anywhere."""

    exit_code = 64


class StackTarget(Struct, frozen=True, kw_only=True):
    """The job and its nodes; `lost_nodes` are those that Slurm itself does not reach."""

    job: Job
    nodes: tuple[str, ...]
    states: tuple[Node, ...] = ()

    @property
    def lost_nodes(self) -> frozenset[str]:
        """A step on one of these fails for all."""
        return frozenset(n.name for n in self.states if n.state != "UNKNOWN" and not is_heard(n))


def may_have_processes(job: Job) -> bool:
    """Whether it may have processes."""
    return state_phase(job.state) in _ALIVE


def find_target(client: SlurmClient, job_id: str) -> StackTarget:
    """The job by its number, `ARRAY_TASK` or `JOB+PART`; raises NoSuchJob or CannotTell."""
    job = find_job(client, job_id)
    if not may_have_processes(job):
        raise NoSuchJob(f"job {job.id} is {job.state}: it has no processes")
    names = expand_hostlist(job.nodes)
    return StackTarget(job=job, nodes=names, states=_node_states(client, job.nodes))


def find_job(client: SlurmClient, job_id: str) -> Job:
    """As Slurm has it now, ended or not; raises NoSuchJob or CannotTell."""
    found = job_rows(client, job_id)
    mine = [job for job in found if job.id == job_id]
    running = [job for job in found if may_have_processes(job)]
    if not mine and len(running) > 1:
        some = ", ".join(job.id for job in running[:4])
        raise NoSuchJob(f"{visible(job_id)} has {len(running)} running jobs; name one: {some}")
    chosen = mine or running or found
    if not chosen:
        raise NoSuchJob(f"Slurm knows no job {visible(shortened(job_id, 40))} (see: squeue --me)")
    return chosen[0]


def job_log_path(client: SlurmClient, job: Job) -> str:
    """The file to which the job's output goes; raises CannotTell."""
    mark = make_nonce()
    columns = squeue_columns(mark)
    out = client.ask_slurm("squeue", "-h", "-a", "--states=all", "-j", job.job_id, "-O", columns)
    found = choose_end(read_squeue(out, mark), job.job_id)
    if found is None or not found.stdout:
        raise CannotTell("Slurm does not tell where the job writes")
    return job_output_path(found.stdout, job)


def job_rows(client: SlurmClient, job_id: str) -> list[Job]:
    """What squeue has of it now, ended or not; one row for each element of an array that it
    lists, and for each part of a heterogeneous job, whichever was named. Empty where Slurm knows
    none; raises NoSuchJob for what is no id, or CannotTell."""
    if not _JOB_ID.fullmatch(job_id):
        some = "4711, 4711_3 or 4711+1"
        raise NoSuchJob(f"{visible(shortened(job_id, 40))!r} is no job id; write {some}")
    mark = make_nonce()
    done = client.run_command(
        "squeue", "-h", "-a", "--states=all", "-j", job_id, "-o", queue.squeue_format(mark)
    )
    if done.code and "Invalid job id" in describe_stderr(done.err):
        return []
    return queue.read_jobs(client.believe_output("squeue", done), mark)


def _node_states(client: SlurmClient, names: str) -> tuple[Node, ...]:
    """Only a help in choosing the way: without it srun says itself what it does not reach."""
    try:
        return tuple(nodes.read_nodes(client.ask_slurm(*nodes.NODES_QUESTION, names)))
    except CannotTell:
        return ()
