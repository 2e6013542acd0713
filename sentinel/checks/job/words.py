"""What a person would ask next, in one line: which job, since when, where, why, until when."""

from collections.abc import Callable, Sequence

from sentinel.checks.job.dependencies import has_dependency
from sentinel.checks.job.queue import JobQueue, count_elements
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job
from sentinel.core.guidance import LookingCommand, look
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.slurm.pending_reason_row import ReasonEnd
from sentinel.slurm.pending_reasons import explain_job_reason, explain_reason

MAX_JOBS_SHOWN = 3  # jobs named one by one; the rest is counted
MAX_ESTIMATE_AGE_S = 600.0  # seconds after which an estimate that did not come true is none
ENDLESS_LIMIT_S = (
    300 * 86400.0
)  # seconds: for squeue a job without a limit ends a year after its start


def describe_running(queue: JobQueue, now: Instant) -> str:
    """`running: job 4711 on 4 nodes (n[0-3]) for 2h 05m, at most 17h more; 3 queued behind it`."""
    jobs = queue.alive
    head = "running" if queue.running else "starting"
    count = f" {len(jobs)} jobs" if len(jobs) > 1 else ""
    behind = count_elements(queue.coming)
    tail = f"; {behind} queued behind {'it' if len(jobs) == 1 else 'them'}" if behind else ""
    return f"{head}{count}: {_join_some(jobs, lambda job: _describe_running_job(job, now))}{tail}{describe_held(queue)}"


def describe_pending(jobs: Sequence[Job], queue: JobQueue, now: Instant) -> str:
    """`pending: job 4711 waits 2h 05m for 4 nodes (Priority: …), expected start in 3h`."""
    return f"pending: {_join_some(jobs, lambda job: _describe_pending_job(job, now))}{describe_held(queue)}"


def describe_stuck(jobs: Sequence[Job]) -> str:
    """`job 4711 (JobHeldUser: held …)` for each that only a person can let go."""
    return _join_some(jobs, lambda job: f"job {_short_job_id(job)} ({_explain_stuck(job)})")


def _explain_stuck(job: Job) -> str:
    if explain_reason(job.reason).shared and job.state == "PENDING":
        code = explain_reason(job.reason).code
        if code == "Licenses":  # these are the cluster's, not an account's
            return "Licenses: it has waited for a day: it may ask for more licences than there are"
        return (
            f"{code}: it has waited for a day, and nothing of its account runs:"
            " it may ask for more than the limit"
        )
    if not has_dependency(job):
        return describe_reason(job)
    whom = shortened(visible(job.dependency), 160)
    return f"Dependency: waits for a job that needs a person: {whom}"


def describe_resting(jobs: Sequence[Job]) -> str:
    """`job 4711 is SUSPENDED on 4 nodes`: jobs that are in the queue and do nothing."""
    return _join_some(
        jobs, lambda job: f"job {_short_job_id(job)} is {visible(job.state)}{_describe_nodes(job)}"
    )


def describe_reason(job: Job) -> str:
    """Slurm's reason and its meaning. For held states, the state."""
    text = shortened(visible(job.reason.strip()), 160)
    if job.state != "PENDING":
        text = f"{visible(job.state)}, {text}" if text not in ("", "None") else visible(job.state)
    reason = explain_job_reason(job.reason, job.partition)
    if job.state == "EXPEDITING":
        return (
            f"{text}: requeued to start at once, which a drained node or its epilog keeps it from"
        )
    if job.state != "PENDING" and reason.ends is not ReasonEnd.PERSON:
        return text
    return f"{text or 'no reason given'}: {reason.meaning}"


def suggest_queue_commands(jobs: Sequence[Job]) -> tuple[LookingCommand, ...]:
    """What shows jobs that are in the queue. None of it changes them: commands are pasted together."""
    return tuple(look("scontrol show job {} | cat -v", job.job_id) for job in jobs[:MAX_JOBS_SHOWN])


def get_expected_wait_s(job: Job, now: Instant) -> float | None:
    """Seconds until Slurm expects a pending job to start (0: any moment); None: no estimate.

    One that has passed stays until the scheduler comes to the job again, which may be never.
    """
    left = None if job.started is None else job.started - now.wall / SECOND
    return None if left is None or left < -MAX_ESTIMATE_AGE_S else max(0.0, left)


def _join_some(jobs: Sequence[Job], one: Callable[[Job], str]) -> str:
    more = f" and {len(jobs) - MAX_JOBS_SHOWN} more" if len(jobs) > MAX_JOBS_SHOWN else ""
    return ", ".join(one(job) for job in jobs[:MAX_JOBS_SHOWN]) + more


def _describe_running_job(job: Job, now: Instant) -> str:
    state = "" if job.state == "RUNNING" else f" ({visible(job.state)})"
    since = f" for {_duration_since(job.started, now)}" if job.started else ""
    left = _seconds_to(job.ends, now)
    limit = f", at most {duration_text(left)} more" if 0 < left < ENDLESS_LIMIT_S else ""
    return f"job {_short_job_id(job)}{state}{_describe_nodes(job)}{since}{limit}"


def _describe_pending_job(job: Job, now: Instant) -> str:
    since = f" {_duration_since(job.submitted, now)}" if job.submitted else ""
    wants = f" for {_count_noun(job.node_count, 'node')}" if job.node_count else ""
    tasks = f", {_count_noun(job.elements, 'task')}" if job.elements > 1 else ""
    left = get_expected_wait_s(job, now)
    start = f", expected start in {duration_text(left)}" if left else ""
    return f"job {_short_job_id(job)} waits{since}{wants}{tasks} ({describe_reason(job)}){start}"


def describe_held(queue: JobQueue) -> str:
    """`; 2 more will not start: …`, or nothing."""
    if not queue.held:
        return ""
    return f"; {count_elements(queue.held)} more will not start: {describe_stuck(queue.held)}"


def _describe_nodes(job: Job) -> str:
    if not job.nodes:
        return ""
    if job.node_count <= 1:
        return f" on {shortened(visible(job.nodes), 60)}"
    return f" on {_count_noun(job.node_count, 'node')} ({shortened(visible(job.nodes), 60)})"


def _count_noun(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _short_job_id(job: Job) -> str:
    return shortened(visible(job.id), 60)


def _duration_since(moment: int | None, now: Instant) -> str:
    return duration_text(max(0.0, now.wall / SECOND - (moment or 0)))


def _seconds_to(moment: int | None, now: Instant) -> float:
    return max(0.0, moment - now.wall / SECOND) if moment else 0.0
