"""Where the job that is gone wrote its output."""

from sentinel.checks.job.memory import Gone, Seen
from sentinel.core.patterns import expanded
from sentinel.core.slurm import Job


def stdout(gone: Gone) -> str:
    """The absolute path of its standard output, or "" where it is not known.

    Slurm hands out the pattern as the user wrote it, and up to 23.11 squeue names an array
    element's default output wrongly: slurm-JOBID.out for slurm-ARRAYID_TASK.out
    (`_print_job_std_out()` in src/squeue/print.c).
    """
    seen, pattern = gone.seen, gone.end.stdout if gone.end else ""
    folder, slash, name = pattern.rpartition("/")
    if seen.task.isdigit() and name == f"slurm-{seen.job_id}.out":
        pattern = f"{folder}{slash}slurm-{seen.array_id}_{seen.task}.out"
    return expanded(pattern, _job(seen)) if pattern else ""


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
