"""Says how urgent a problem of a training is, and what to do first."""

from collections.abc import Sequence

from sentinel.checks.job.done import last_run
from sentinel.checks.job.ends import find_early_end_s
from sentinel.checks.job.memory import Memory
from sentinel.checks.job.output import get_stdout_path
from sentinel.checks.job.queue import JobQueue
from sentinel.checks.job.rhythm import is_death
from sentinel.core.cluster import Job
from sentinel.core.guidance import Guidance, quote_command
from sentinel.core.text import visible
from sentinel.slurm.job_states import end_meaning
from sentinel.slurm.pending_reasons import explain_reason

_STANDS_STILL = "The training stands still until somebody submits it again."
_READ_THE_LOG = "{owner} reads the end of its log{tail}, mends what ended it, and submits it again."
_ASK_WHY = "Ask {by} why it was cancelled. If that was not meant, {owner} submits it again."
_ASK_LIMITS = (
    "Ask an administrator which limit ended it: its reservation, or the granted time of its account. If nobody"
    " lowered its own limit on purpose, {owner} submits it again, from its last checkpoint."
)
_MAYBE_FINISHED = "If it did not finish, the training stands still until somebody submits it again."
_SEE_WHETHER_FINISHED = (
    "See at the end of its log{tail} whether it finished, and ask {owner} whether it was cancelled. If neither,"
    " {owner} mends what ended it, and submits it again."
)
_FIND_THE_LOG = (
    " (Its log: slurm-{number}.out in its WorkDir, or the file that `-o` of its script names.)"
)


def guide_death(held: Sequence[Job], memory: Memory) -> Guidance:
    """Guidance for a training without a running job."""
    if held:
        return _guide_held(held, memory)
    last = last_run(memory)
    gone = last or (memory.gone[0] if memory.gone else None)
    if gone is None:
        return Guidance(impact="It does not run until somebody submits it.", todo="Submit it.")
    owner, known = visible(gone.seen.user) or "its owner", gone.end is not None or gone.runaway
    path = get_stdout_path(gone)
    by = visible(gone.end.cancelled_by) if gone.end else ""
    step = _ASK_WHY if by else end_meaning(gone.end).first_step if gone.end else ""
    step = _ASK_LIMITS if find_early_end_s(gone) else step
    if not step:
        step = _READ_THE_LOG if known else _SEE_WHETHER_FINISHED
        step += "" if path else _FIND_THE_LOG
    node = gone.end.failed_node if gone.end else ""
    return Guidance(
        impact=_STANDS_STILL if known else _MAYBE_FINISHED,
        todo=step.format(
            owner=owner,
            by=by,
            number=visible(gone.seen.job_id),
            exclude=quote_command("sbatch", f"--exclude={node or 'NODE'}"),
            tail=" (`tail` below)" if path and path.isprintable() else "",
            find_node="" if node else " (`sinfo -R` below names it then)",
        ),
        headline="DIED" if known and is_death(gone) else "",
    )


def guide_wait(queue: JobQueue) -> Guidance:
    """Guidance for a training that is in the queue, but has a problem."""
    if queue.alive or not queue.held:
        return Guidance()
    return _guide_held(queue.held, Memory())


def _guide_held(held: Sequence[Job], memory: Memory) -> Guidance:
    """Guidance for a held job. Only an administrator may release what an administrator holds."""
    reason = explain_reason(held[0].reason)
    number = quote_command(held[0].job_id)
    impact = (
        "The training stands still until somebody lets the job go; it does not start by itself."
    )
    if reason.code == "JobHeldUser":
        return Guidance(impact=impact, todo=_release_step(held[0], number, memory))
    release = (
        f" When that is mended, `scontrol release {number}` lets it start." if reason.held else ""
    )
    return Guidance(
        impact=impact,
        todo=f"`scontrol show job` below shows what it waits for.{release}",
        ask=f"look at job {number}: it does not start ({reason.code}: {reason.meaning})",
    )


def _release_step(held: Job, number: str, memory: Memory) -> str:
    """The first step for a job that its user holds. That is done on purpose, often because the job
    before it failed."""
    last = last_run(memory)
    look = f" look first why job {visible(last.seen.id)} ended, then" if last else ""
    whom = visible(held.user) or "its user"
    return f"Ask {whom} whether it is to run; if so,{look} release it: `scontrol release {number}`."
