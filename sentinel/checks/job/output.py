"""Where the job that is gone wrote its output."""

from sentinel.checks.job.memory import Gone, Seen
from sentinel.slurm.filename_patterns import output_of
from sentinel.slurm.model import Job


def stdout(gone: Gone) -> str:
    """The absolute path of its standard output, or "" where it is not known."""
    told = gone.end.stdout if gone.end else ""
    return output_of(told, _job(gone.seen)) if told else ""


def _job(seen: Seen) -> Job:
    """What a file name can depend on."""
    return Job(
        id=seen.id,
        job_id=seen.job_id,
        array_id=seen.array_id,
        task=seen.task,
        name=seen.name,
        user=seen.user,
        partition=seen.partition,
        state=seen.state,
        reason=seen.reason,
        nodes=seen.nodes,
        node_count=0,
        dependency="",
        submitted=None,
        started=seen.started,
        ends=None,
        time_limit=None,
        workdir=seen.workdir,
    )
