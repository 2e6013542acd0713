"""Looks up a job whose processes are examined, as Slurm has it now."""

from __future__ import annotations

from msgspec import Struct

from sentinel.core.cluster import Job, Node
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.hostlist import expand_hostlist
from sentinel.core.lazy_pattern import lazy_pattern
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
_JOB_ID = lazy_pattern(r"[0-9]+([_+][0-9]+)?")


class NoSuchJob(SentinelError):
    """There is no such job, or it cannot have processes."""

    exit_code = 64


class StackTarget(Struct, frozen=True, kw_only=True):
    """The job and its nodes; `lost_nodes` are those that Slurm itself does not reach."""

    job: Job  # The job.
    nodes: tuple[str, ...]  # Names of its nodes.
    states: tuple[Node, ...] = ()  # These nodes, as Slurm shows them.

    @property
    def lost_nodes(self) -> frozenset[str]:
        """Names of the nodes that Slurm does not reach: a step that includes one of them fails on
        all of its nodes."""
        return frozenset(n.name for n in self.states if n.state != "UNKNOWN" and not is_heard(n))


def is_job_id(text: str) -> bool:
    """Whether the text has the form of a job id in Slurm."""
    return bool(_JOB_ID.fullmatch(text))


def may_have_processes(job: Job) -> bool:
    """Whether a job in this state may have processes."""
    return state_phase(job.state) in _ALIVE


def find_target(client: SlurmClient, job_id: str) -> StackTarget:
    """Find a job by its number, `ARRAY_TASK` or `JOB+PART`, or its name. Raises NoSuchJob if there
    is none or it has no processes, and CannotTell."""
    job = find_job(client, job_id)
    if not may_have_processes(job):
        raise NoSuchJob(f"job {job.id} is {job.state}: it has no processes")
    names = expand_hostlist(job.nodes)
    return StackTarget(job=job, nodes=names, states=_node_states(client, job.nodes))


def find_job(client: SlurmClient, job_id: str) -> Job:
    """Find a job as Slurm has it now, ended or not. If `job_id` is a name, the one job of that name
    that has processes. Raises NoSuchJob or CannotTell."""
    if not is_job_id(job_id):
        return _find_named_job(client, job_id)
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


def _find_named_job(client: SlurmClient, name: str) -> Job:
    mark, shown = make_nonce(), visible(shortened(name, 40))
    rows = client.ask_slurm("squeue", "-h", "-a", "-o", queue.squeue_format(mark))
    found = [j for j in queue.read_jobs(rows, mark) if j.name == name and may_have_processes(j)]
    if not found:
        raise NoSuchJob(f"no job of the name {shown!r} runs, and it is no id (see: squeue --me)")
    if len(found) > 1:
        some = ", ".join(job.id for job in found[:4])
        raise NoSuchJob(f"{len(found)} jobs of the name {shown!r} run; name one by its id: {some}")
    return found[0]


def job_log_path(client: SlurmClient, job: Job) -> str:
    """The file to which the job's output goes. Raises CannotTell."""
    mark = make_nonce()
    columns = squeue_columns(mark)
    out = client.ask_slurm("squeue", "-h", "-a", "--states=all", "-j", job.job_id, "-O", columns)
    found = choose_end(read_squeue(out, mark), job.job_id)
    if found is None or not found.stdout:
        raise CannotTell("Slurm does not tell where the job writes")
    return job_output_path(found.stdout, job)


def job_rows(client: SlurmClient, job_id: str) -> list[Job]:
    """The rows that squeue has of a job now, ended or not: one for each element of an array that it
    lists, and for each part of a heterogeneous job, whichever was named.

    Empty if Slurm does not know the job. Raises NoSuchJob if the text is not a job id, or
    CannotTell."""
    if not is_job_id(job_id):
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
    """The states of the nodes; empty if Slurm does not answer. They only help to choose the way:
    without them srun itself says which nodes it does not reach."""
    try:
        return tuple(nodes.read_nodes(client.ask_slurm(*nodes.NODES_QUESTION, names)))
    except CannotTell:
        return ()
