"""Why a job that is there may not be the one that is looked for."""

import unicodedata

from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.view import View
from sentinel.core.text import shortened, visible
from sentinel.slurm.model import Job

_MOST = 5


def hints(settings: JobSettings, view: View) -> list[str]:
    """Jobs in the queue that are nearly the one: renamed, moved, other user, other spelling."""
    gone = {g.seen.job_id for g in view.memory.gone}
    known = {job.id for job in view.queue.held}
    lines = [_hint(job, settings, gone) for job in view.others if job.id not in known]
    return [line for line in lines if line][:_MOST]


def _hint(job: Job, settings: JobSettings, gone: set[str]) -> str:
    where = f"job {visible(job.id)} of {visible(job.user)} in {visible(job.partition)}"
    name = shortened(visible(job.name), 100)
    if job.job_id in gone:
        return f"{where} is still there, now named {name!r}"
    if settings.names(job.name):
        return f"{where} has that name; `users` or `partition` leave it out"
    if settings.name and _plain(job.name) == _plain(settings.name):
        return f"{where} has nearly that name: {name!r}"
    return ""


def _plain(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
