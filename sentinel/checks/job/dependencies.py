"""Finds jobs that wait for a job that only a person can release. Slurm's reason for them is just
Dependency. Pure.

The form of a dependency: `_depend_list2str()` in src/slurmctld/job_scheduler.c, since 20.11.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from sentinel.core.cluster import Job
from sentinel.slurm.pending_reasons import explain_reason
from sentinel.slurm.words import has_element

_DEPENDENCY_PATTERN = re.compile(
    r"(?P<kind>singleton|after\w*)(?::(?P<job>\d+(?:_\d+)?)(?:_\*)?(?:\+\d+)?)?(?:\((?P<state>\w+)\))?"
)


def has_dependency(job: Job) -> bool:
    """Whether the job waits for other jobs."""
    return job.state == "PENDING" and explain_reason(job.reason).code == "Dependency"


def find_chained_jobs(jobs: Sequence[Job], held: Callable[[Job], bool]) -> frozenset[str]:
    """The ids of jobs that wait, directly or through other jobs, for one of `jobs` that is `held`."""
    stuck = _StuckJobs(job for job in jobs if held(job))
    waiting = sorted(filter(has_dependency, jobs), key=lambda job: int(job.job_id))
    found: set[str] = set()
    while more := [job for job in waiting if job.id not in found and stuck.is_holding_up(job)]:
        found.update(job.id for job in more)
    return frozenset(found)


class _StuckJobs:
    """Jobs that will not start, by the names that a dependency may use for them."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._names: set[str] = set()
        # elements that wait in one row, by array
        self._elements: dict[str, str] = {}
        self._oldest: dict[tuple[str, str], int] = {}
        for job in jobs:
            self._add_job(job)

    def is_holding_up(self, job: Job) -> bool:
        """Whether the job waits for one of them. If so, it is added to them."""
        terms = re.split("[,?]", job.dependency)
        stuck = [self._is_term_for_stuck(term, job) for term in terms]
        # Of `a?b` one is enough, and one that has failed helps no more.
        helps = [
            not term.endswith("(failed)") and not no for term, no in zip(terms, stuck, strict=True)
        ]
        if not any(stuck) or ("?" in job.dependency and any(helps)):
            return False
        self._add_job(job)
        return True

    def _add_job(self, job: Job) -> None:
        self._names |= {job.id, job.job_id, job.array_id}
        if "[" in job.id:
            self._elements[job.array_id] = job.task
        whose, number = (job.user, job.name), int(job.job_id)
        self._oldest[whose] = min(number, self._oldest.get(whose, number))

    def _is_term_for_stuck(self, term: str, job: Job) -> bool:
        match = _DEPENDENCY_PATTERN.fullmatch(term)
        if match is None or match["state"] not in (None, "unfulfilled"):
            return False
        if match["kind"] == "singleton":
            return self._oldest.get((job.user, job.name), int(job.job_id)) < int(job.job_id)
        if (
            match["kind"] == "aftercorr"
        ):  # each of its elements waits for the one of the same number
            return (
                self._elements.get(match["job"], "*").partition("%")[0]
                == job.task.partition("%")[0]
            )
        return self._is_stuck(match["job"] or "")

    def _is_stuck(self, name: str) -> bool:
        array, _, number = name.partition("_")
        task = self._elements.get(array, "") if number else ""
        return name in self._names or (bool(task) and has_element(task, int(number)))
