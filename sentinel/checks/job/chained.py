"""Jobs that wait for one that only a person lets go: for Slurm their reason is Dependency too.

The form of a dependency: `_depend_list2str()` in src/slurmctld/job_scheduler.c, 20.11 on. Pure.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from sentinel.slurm.model import Job
from sentinel.slurm.pending_reasons import explain

_TERM = re.compile(
    r"(?P<kind>singleton|after\w*)(?::(?P<job>\d+(?:_\d+)?)(?:_\*)?(?:\+\d+)?)?(?:\((?P<state>\w+)\))?"
)


def depends(job: Job) -> bool:
    """Whether it waits for other jobs."""
    return job.state == "PENDING" and explain(job.reason).code == "Dependency"


def chained(jobs: Sequence[Job], held: Callable[[Job], bool]) -> frozenset[str]:
    """The ids of those that wait, at any remove, for one of `jobs` that is `held`."""
    stuck = _Stuck(job for job in jobs if held(job))
    waiting = sorted(filter(depends, jobs), key=lambda job: int(job.job_id))
    found: set[str] = set()
    while more := [job for job in waiting if job.id not in found and stuck.holds_up(job)]:
        found.update(job.id for job in more)
    return frozenset(found)


class _Stuck:
    """Jobs that will not start, by what a dependency may call them."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._names: set[str] = set()
        self._oldest: dict[tuple[str, str], int] = {}
        for job in jobs:
            self._add(job)

    def holds_up(self, job: Job) -> bool:
        """Whether one of them is what the job waits for; it then is one of them."""
        every = any if "?" not in job.dependency else all
        if not every([self._meant(term, job) for term in re.split("[,?]", job.dependency)]):
            return False
        self._add(job)
        return True

    def _add(self, job: Job) -> None:
        self._names |= {job.id, job.job_id, job.array_id}
        whose, number = (job.user, job.name), int(job.job_id)
        self._oldest[whose] = min(number, self._oldest.get(whose, number))

    def _meant(self, term: str, job: Job) -> bool:
        match = _TERM.fullmatch(term)
        if match is None or match["state"] not in (None, "unfulfilled"):
            return False
        if match["kind"] == "singleton":
            return self._oldest.get((job.user, job.name), int(job.job_id)) < int(job.job_id)
        return match["kind"] != "aftercorr" and match["job"] in self._names
