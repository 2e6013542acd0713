"""Rules about a training that is running or queued. Each rule finds one problem or none."""

import re

from sentinel.checks.job import words
from sentinel.checks.job.memory import Memory
from sentinel.checks.job.queue import JobQueue, count_elements
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.view import TrainingView
from sentinel.core.clock import get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.core.text import visible
from sentinel.core.values import duration_text

HANDOVER_S = 600.0  # seconds without a running job that a handover to the next job may take
# seconds that nodes may take to become ready, e.g. a reboot with memory tests
MAX_STARTING_S = 1800.0
# seconds that a job may be completing: KillWait, UnkillableStepTimeout, epilog
MAX_ENDING_S = 600.0
# seconds that a job may be suspended before anybody is told: ten time slices of gang scheduling
# (SchedulerTimeSlice of slurm.conf, 30 s by default)
MAX_PAUSED_S = 300.0

_AFTER_END_PATTERN = re.compile(r"after(?:ok|any|notok|corr):(\d+)")


def find_too_few(settings: JobSettings, view: TrainingView) -> str:
    """Fewer than `queued` jobs will start after the running one. Jobs that need a person do not
    count."""
    behind = count_elements(view.queue.coming)
    if not view.queue.alive or behind >= settings.queued:
        return ""
    return f"only {behind} queued behind the running job, {settings.queued} wanted"


def find_handover_gap(settings: JobSettings, view: TrainingView) -> str:
    """The last running job reaches its time limit long before another job can take over."""
    ends = [job.ends for job in view.queue.alive if job.ends is not None]
    starts = [
        (s, j) for j in view.queue.coming if (s := _get_earliest_start_s(j, view)) is not None
    ]
    if not ends or len(ends) < len(view.queue.alive) or len(starts) < len(view.queue.coming):
        return ""
    first, job = min(starts, key=lambda pair: pair[0], default=(0, None))
    if job is None or first - max(ends) <= HANDOVER_S:
        return ""
    return (
        f"its time limit comes {duration_text(first - max(ends))} before the next job can start"
        f" ({visible(job.id)}: {words.describe_reason(job)})"
    )


def _get_earliest_start_s(job: Job, view: TrainingView) -> float | None:
    """The time (epoch seconds) before which it is not expected to start. None if it is not known.

    Without an estimate from Slurm, a job that waits for running jobs can start when the last of
    them reaches its time limit.
    """
    if words.get_expected_wait_s(job, view.now) is not None:
        return job.started
    before = set(_AFTER_END_PATTERN.findall(job.dependency))
    if not before:
        return None
    ends = [j.ends for j in view.others if before & {j.job_id, j.array_id} and j.ends]
    return max(ends, default=None)


def find_restart_storm(settings: JobSettings, view: TrainingView) -> str:
    """The training was restarted at least as often within a time as `restarts` says."""
    often = settings.parse_restarts()
    seen = len(view.memory.restarts)
    if often is None or seen < often.count:
        return ""
    return (
        f"restarted {seen} {'time' if seen == 1 else 'times'} within {duration_text(often.window)}"
    )


def find_kill_switch(settings: JobSettings, view: TrainingView) -> str:
    """The kill switch exists while jobs are queued. Each of them would start and stop at once."""
    if not view.kill_switch or not view.queue.pending:
        return ""
    return (
        f"kill switch {visible(settings.kill_switch or '')} is there while"
        f" {count_elements(view.queue.pending)} queued: remove it or cancel them"
    )


def find_late_start(settings: JobSettings, view: TrainingView) -> str:
    """Nothing runs, and nothing is expected to start within `starts_within`.

    Jobs with dependencies have no estimate (N/A). They are judged by how long they have waited
    while nothing ran.
    """
    limit = settings.starts_within
    if limit is None or view.queue.alive or not view.queue.coming:
        return ""
    if any(_get_start_delay_s(job, view) <= limit for job in view.queue.coming):
        return ""
    soonest = min(view.queue.coming, key=lambda job: _get_start_delay_s(job, view))
    left = words.get_expected_wait_s(soonest, view.now)
    if left is not None:
        return f"not expected to start within {limit}: the estimate is in {duration_text(left)}"
    return f"waits for {duration_text(_get_start_delay_s(soonest, view))} without an estimate, {limit} allowed"


def _get_start_delay_s(job: Job, view: TrainingView) -> float:
    estimate = words.get_expected_wait_s(job, view.now)
    return get_waited_s(job, view.memory, view) if estimate is None else estimate


def get_waited_s(job: Job, memory: Memory, view: TrainingView) -> float:
    """Seconds that a pending job has waited while nothing of this training ran."""
    seen = memory.get_seen_job(job)
    total = seen.waited + get_elapsed_s(seen.first, view.now) if seen else 0.0
    return min(total, get_elapsed_s(memory.alive, view.now)) if memory.alive else total


def find_slow_start(settings: JobSettings, view: TrainingView) -> str:
    """All live jobs have had their nodes for long, and the nodes are still not ready."""
    queue = view.queue
    if queue.running or not queue.starting:
        return ""
    since = min(_get_state_age_s(job, view) for job in queue.starting)
    return f"still CONFIGURING after {duration_text(since)}" if since > MAX_STARTING_S else ""


def find_slow_end(settings: JobSettings, view: TrainingView) -> str:
    """Nothing is alive, and a job stays in the state COMPLETING, because a process or epilog hangs."""
    queue = view.queue
    if queue.alive or not queue.ending:
        return ""
    since = max(_get_state_age_s(job, view) for job in queue.ending)
    return f"still COMPLETING after {duration_text(since)}" if since > MAX_ENDING_S else ""


def find_paused(settings: JobSettings, view: TrainingView) -> str:
    """Nothing is alive, and a job has its nodes but is suspended or stopped."""
    queue: JobQueue = view.queue
    if queue.alive or not queue.paused:
        return ""
    since = max(_get_state_age_s(job, view) for job in queue.paused)
    told = f" for {duration_text(since)} at least" if since else ""
    return f"not running{told}: {words.describe_resting(queue.paused)}"


def _get_state_age_s(job: Job, view: TrainingView) -> float:
    seen = view.memory.get_seen_job(job)
    return get_elapsed_s(seen.since, view.now) if seen else 0.0


def find_future_troubles(settings: JobSettings, view: TrainingView) -> list[str]:
    """Problems that no longer count when the training has finished, because no job has to follow."""
    found = (rule(settings, view) for rule in (find_too_few, find_handover_gap, find_late_start))
    return [text for text in found if text]


def find_present_troubles(settings: JobSettings, view: TrainingView) -> list[str]:
    """Problems that count in any case."""
    found = (
        rule(settings, view)
        for rule in (
            find_restart_storm,
            find_slow_start,
            find_slow_end,
            find_paused,
            find_kill_switch,
        )
    )
    return [text for text in found if text]
