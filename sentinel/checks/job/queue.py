"""The watched jobs, sorted by what they mean for the training."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import tzinfo

from msgspec import Struct

from sentinel.checks.job.memory import Memory
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.slurm.job_states import EXPEDITED, Phase, state_phase
from sentinel.slurm.pending_reasons import DAY_S, ReasonEnd, explain_job_reason, explain_reason


class JobQueue(Struct, frozen=True, kw_only=True):
    """Who runs, who will start by itself, who needs a person, and who we cannot place."""

    running: tuple[Job, ...] = ()
    starting: tuple[Job, ...] = ()
    waiting: tuple[Job, ...] = ()
    held: tuple[Job, ...] = ()
    paused: tuple[Job, ...] = ()
    ending: tuple[Job, ...] = ()
    unclear: tuple[Job, ...] = ()

    @property
    def alive(self) -> tuple[Job, ...]:
        """Those that have nodes and use them, or soon will."""
        return self.running + self.starting

    @property
    def coming(self) -> tuple[Job, ...]:
        """Those that may start without anybody's help."""
        return self.waiting + self.unclear

    @property
    def pending(self) -> tuple[Job, ...]:
        """All that have not begun."""
        return self.waiting + self.unclear + self.held


def count_elements(jobs: Sequence[Job]) -> int:
    """How many jobs the rows stand for: a row of a waiting array is several."""
    return sum(max(1, job.elements) for job in jobs)


def find_held_up(jobs: Sequence[Job], others: Sequence[Job]) -> Collection[str]:
    """The ids of those that wait, at any remove, for one of `others` that only a person lets go."""
    return find_chained_jobs(others, _needs_person) if any(map(has_dependency, jobs)) else ()


class QueueContext(Struct, frozen=True):
    """What else decides whether a job can start.

    `stuck`: ids of those that are held up. `parts`: of heterogeneous jobs, by the id of the first
    part, another part that needs a person. `busy`: accounts of which a job runs. `growing`:
    partitions that are empty, or whose nodes come and go.
    """

    stuck: Collection[str] = ()
    parts: Mapping[str, Job] = {}
    busy: Collection[str] = ()
    growing: Collection[str] = ()


def make_queue_context(
    mine: Sequence[Job], jobs: Sequence[Job], growing: Collection[str] = ()
) -> QueueContext:
    """What all `jobs` in the queue say of whether `mine` can start."""
    leaders = {job.id for job in mine if "+" in job.id}
    parts: dict[str, Job] = {}
    for job in jobs if leaders else ():
        leader = f"{job.id.partition('+')[0]}+0"
        if leader in leaders and job.id != leader and _needs_person(job):
            parts.setdefault(leader, job)
    busy = {job.account or job.user for job in jobs if state_phase(job.state) in _BUSY_PHASES}
    return QueueContext(find_held_up(mine, jobs), parts, busy, growing)


_BUSY_PHASES = (Phase.RUNNING, Phase.STARTING, Phase.ENDING, Phase.PAUSED)


def arrange_jobs(
    jobs: Sequence[Job], memory: Memory, now: Instant, around: QueueContext
) -> JobQueue:
    """Sort jobs into a Queue; `memory` tells for how long each has had its reason. In place of a
    heterogeneous job that cannot start stands the part that keeps it from it."""
    places: dict[Phase, list[Job]] = {}
    for job in jobs:
        waits = state_phase(job.state) in (Phase.WAITING, Phase.HELD)
        part = around.parts.get(job.id) if waits else None
        held = part is not None or job.id in around.stuck
        place = Phase.HELD if held else _find_phase(job, memory, now, around)
        places.setdefault(place, []).append(part or job)
    places.pop(Phase.OVER, None)
    return JobQueue(**{place.value: tuple(members) for place, members in places.items()})


def is_starved(job: Job, memory: Memory, now: Instant, busy: Collection[str]) -> bool:
    """Whether it has waited for a day for what others of its account hold, and none of them runs:
    then it may ask for more than all of it."""
    if not explain_reason(job.reason).shared or (job.account or job.user) in busy:
        return False
    seen = memory.get_seen_job(job)
    waited = max(0.0, now.wall / SECOND - (job.submitted or now.wall / SECOND))
    waited = max(waited, seen.waited + get_elapsed_s(seen.first, now)) if seen else waited
    return (min(waited, get_elapsed_s(memory.alive, now)) if memory.alive else waited) > DAY_S


def _find_phase(job: Job, memory: Memory, now: Instant, around: QueueContext) -> Phase:
    where = state_phase(job.state)
    if where is not Phase.WAITING:
        return where
    expected = job.started is not None and job.started * SECOND > now.wall
    grows = not set(job.partition.split(",")).isdisjoint(around.growing)
    reason = explain_job_reason(job.reason, job.partition, expected=expected, grows=grows)
    seen = memory.get_seen_job(job)
    if is_starved(job, memory, now, around.busy):
        return Phase.HELD
    shown = get_elapsed_s(seen.since, now) if seen else 0.0
    if job.state == "EXPEDITING" and shown > EXPEDITED:
        return Phase.HELD
    if reason.ends is ReasonEnd.ITSELF and reason.patience is not None and shown > reason.patience:
        return Phase.HELD
    return _PHASE_BY_ENDS[reason.ends]


def _needs_person(job: Job) -> bool:
    """Whether by its state and reason alone a person is needed."""
    where = state_phase(job.state)
    waits = where is Phase.WAITING and explain_reason(job.reason).ends is ReasonEnd.PERSON
    return waits or where is Phase.HELD


_PHASE_BY_ENDS = {
    ReasonEnd.ITSELF: Phase.WAITING,
    ReasonEnd.PERSON: Phase.HELD,
    ReasonEnd.UNKNOWN: Phase.UNCLEAR,
}


# What one run gathered; all that the judgement may use.


class TrainingView(Struct, frozen=True, kw_only=True):
    """The queue, what is remembered, and the answers of the file system.

    `others`: every job that was seen, for dependencies and near misses. `kill_switch` None:
    not configured, not needed or not told; `notes` then say what could not be seen.
    `many`: it is one of those that were found, not one that was named.
    `finished`: what proves the end, "" for nothing. `at_risk`: the work that its death costs.
    `maintenance`: the reservation with the flag MAINT that holds a node of the job that ended last,
    "" for none. `ours`: sentinel itself has cancelled it. `for_`: seconds that `for` in the file
    says. `zone`: of the times that people read, None: the host's. `slurm_clusters`: what
    SLURM_CLUSTERS says here, which is not followed.
    """

    subject: str
    now: Instant
    queue: JobQueue
    memory: Memory
    others: Sequence[Job] = ()
    many: bool = False
    kill_switch: bool | None = None
    finished: str = ""
    at_risk: str = ""
    maintenance: str = ""
    ours: bool = False
    for_: float | None = None
    zone: tzinfo | None = None
    slurm_clusters: str = ""
    notes: tuple[str, ...] = ()


# Jobs that wait for one that only a person lets go: for Slurm their reason is Dependency too.
#
# The form of a dependency: `_depend_list2str()` in src/slurmctld/job_scheduler.c, 20.11 on. Pure.


_DEPENDENCY_PATTERN = re.compile(
    r"(?P<kind>singleton|after\w*)(?::(?P<job>\d+(?:_\d+)?)(?:_\*)?(?:\+\d+)?)?(?:\((?P<state>\w+)\))?"
)


def has_dependency(job: Job) -> bool:
    """Whether it waits for other jobs."""
    return job.state == "PENDING" and explain_reason(job.reason).code == "Dependency"


def find_chained_jobs(jobs: Sequence[Job], held: Callable[[Job], bool]) -> frozenset[str]:
    """The ids of those that wait, at any remove, for one of `jobs` that is `held`."""
    stuck = _StuckJobs(job for job in jobs if held(job))
    waiting = sorted(filter(has_dependency, jobs), key=lambda job: int(job.job_id))
    found: set[str] = set()
    while more := [job for job in waiting if job.id not in found and stuck.is_holding_up(job)]:
        found.update(job.id for job in more)
    return frozenset(found)


class _StuckJobs:
    """Jobs that will not start, by what a dependency may call them."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._names: set[str] = set()
        self._oldest: dict[tuple[str, str], int] = {}
        for job in jobs:
            self._add_job(job)

    def is_holding_up(self, job: Job) -> bool:
        """Whether one of them is what the job waits for; it then is one of them."""
        every = any if "?" not in job.dependency else all
        if not every(
            [self._is_term_for_stuck(term, job) for term in re.split("[,?]", job.dependency)]
        ):
            return False
        self._add_job(job)
        return True

    def _add_job(self, job: Job) -> None:
        self._names |= {job.id, job.job_id, job.array_id}
        whose, number = (job.user, job.name), int(job.job_id)
        self._oldest[whose] = min(number, self._oldest.get(whose, number))

    def _is_term_for_stuck(self, term: str, job: Job) -> bool:
        match = _DEPENDENCY_PATTERN.fullmatch(term)
        if match is None or match["state"] not in (None, "unfulfilled"):
            return False
        if match["kind"] == "singleton":
            return self._oldest.get((job.user, job.name), int(job.job_id)) < int(job.job_id)
        return match["kind"] != "aftercorr" and match["job"] in self._names
