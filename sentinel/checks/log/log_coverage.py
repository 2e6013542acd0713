"""Which logs a run should read, and which it has read."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.checks.log.gather import (
    MAX_JOB_FILES,
)
from sentinel.checks.log.log_findings import WatchedLog
from sentinel.core.cluster import Job
from sentinel.core.model import Coverage, covered

ABSENT_EXCUSE = f"not there, or beyond the {MAX_JOB_FILES} files of a job that are looked at"


def compute_coverage(watched: Sequence[WatchedLog]) -> Coverage:
    """The coverage of a run of the check. A log counts as seen if it could be checked, even if it
    is missing.

    With one file per node, only the existing files count, because Slurm's own %N is only the first
    node (sbatch(1)).
    """
    meant, seen, excused = list[str](), list[str](), ABSENT_EXCUSE
    for one in watched:
        log, now = make_job_key(one.sight.job) or one.sight.path, one.sight
        files = now.meant if len(now.meant) > 1 and not now.error else (log,)
        meant += files
        seen += () if now.error else now.looks if len(files) > 1 and now.looks else files
        excused = "" if now.error else excused
    return covered("logs", meant, seen, excused)


def make_size_key(job: Job | None) -> str:
    """The key of a baseline. With another number of nodes it is another training."""
    return str(job.node_count if job else 0)


def make_job_key(job: Job | None) -> str:
    return job.job_id if job else ""
