"""Finds out why a job in the queue may not be the watched one."""

from itertools import islice

from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.view import TrainingView
from sentinel.checks.users import find_meant_names
from sentinel.core.cluster import Job
from sentinel.core.text import shortened, visible
from sentinel.slurm.job_index import index_jobs, normalise_name

_MAX_HINTS = 5


def find_similar_jobs(settings: JobSettings, view: TrainingView) -> list[str]:
    """Jobs in the queue that almost match: renamed, moved, of another user, or with another
    spelling."""
    gone = {g.seen.job_id for g in view.memory.gone}
    known = {job.id for job in view.queue.held}
    known |= {f"{job.id.partition('+')[0]}+0" for job in view.queue.held}
    queue = index_jobs(view.others)
    names = {*find_meant_names(settings.name, settings.match, queue)}
    names |= {*queue.names_by_spelling.get(normalise_name(settings.name or ""), ())}
    near = queue if gone & queue.job_ids else queue.find_named(names)
    lines = (_describe_similarity(job, settings, gone) for job in near if job.id not in known)
    return list(islice(filter(None, lines), _MAX_HINTS))


def _describe_similarity(job: Job, settings: JobSettings, gone: set[str]) -> str:
    where = f"job {visible(job.id)} of {visible(job.user)} in {visible(job.partition)}"
    name = shortened(visible(job.name), 100)
    if job.job_id in gone:
        return f"{where} is still there, now named {name!r}"
    if settings.is_watched_name(job.name):
        return f"{where} has that name; `users` or `partition` leave it out"
    if settings.name and normalise_name(job.name) == normalise_name(settings.name):
        return f"{where} has nearly that name: {name!r}"
    return ""
