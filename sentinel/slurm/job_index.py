"""Indexes of the jobs in the queue, made once for all checks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from unicodedata import normalize

from sentinel.core.cluster import Job
from sentinel.slurm.job_states import Phase, state_phase

BUSY_PHASES = (Phase.RUNNING, Phase.STARTING, Phase.ENDING, Phase.PAUSED)
"""Phases in which a job has nodes."""


class QueuedJobs(tuple[Job, ...]):
    """The jobs of one answer of Slurm, with indexes, so that a check looks at its own jobs and not
    at the whole queue."""

    @cached_property
    def places_by_name(self) -> Mapping[str, Sequence[int]]:
        """Positions in the queue of the jobs of each name, parts of heterogeneous jobs too."""
        found: dict[str, list[int]] = {}
        for place, one in enumerate(self):
            found.setdefault(one.name, []).append(place)
        return found

    @cached_property
    def job_ids(self) -> frozenset[str]:
        """The id of each job, by which Slurm knows no other."""
        return frozenset(one.job_id for one in self)

    @cached_property
    def busy_accounts(self) -> frozenset[str]:
        """Accounts that have a job with nodes. A job without an account counts by its user."""
        return frozenset(
            one.account or one.user for one in self if state_phase(one.state) in BUSY_PHASES
        )

    @cached_property
    def parts_by_whole_id(self) -> Mapping[str, Sequence[Job]]:
        """The parts of heterogeneous jobs (`15+0`, `15+1`), by the id without the part."""
        found: dict[str, list[Job]] = {}
        for one in self:
            whole, plus, _ = one.id.partition("+")
            if plus:
                found.setdefault(whole, []).append(one)
        return found

    @cached_property
    def names_by_spelling(self) -> Mapping[str, Sequence[str]]:
        """Names that look alike to a person, by their common spelling."""
        found: dict[str, list[str]] = {}
        for name in self.places_by_name:
            found.setdefault(normalise_name(name), []).append(name)
        return found

    def find_named(self, names: Iterable[str]) -> list[Job]:
        """The jobs with one of these names, in the order of the queue."""
        places = [self.places_by_name.get(name, ()) for name in names]
        return [self[place] for place in sorted(chain.from_iterable(places))]


def normalise_name(name: str) -> str:
    """A spelling that all names which look alike share."""
    return " ".join(normalize("NFKC", name).casefold().split())


def index_jobs(jobs: Iterable[Job]) -> QueuedJobs:
    """The same jobs with their index. An answer of Slurm has its index already, which all callers
    share."""
    return jobs if isinstance(jobs, QueuedJobs) else QueuedJobs(jobs)
