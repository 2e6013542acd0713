"""The watched jobs, sorted by what they mean for the training."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import tzinfo

from msgspec import Struct

from sentinel.checks.job.memory import Memory
from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.cluster import Job
from sentinel.slurm.job_states import EXPEDITED, Phase, phase
from sentinel.slurm.pending_reasons import DAY, Ends, explain, explain_of


class Queue(Struct, frozen=True, kw_only=True):
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


def elements(jobs: Sequence[Job]) -> int:
    """How many jobs the rows stand for: a row of a waiting array is several."""
    return sum(max(1, job.elements) for job in jobs)


def held_up(jobs: Sequence[Job], others: Sequence[Job]) -> Collection[str]:
    """The ids of those that wait, at any remove, for one of `others` that only a person lets go."""
    return chained(others, _held) if any(map(depends, jobs)) else ()


class Around(Struct, frozen=True):
    """What else decides whether a job can start.

    `stuck`: ids of those that are `held_up`. `parts`: of heterogeneous jobs, by the id of the first
    part, another part that needs a person. `busy`: accounts of which a job runs. `growing`:
    partitions that are empty, or whose nodes come and go.
    """

    stuck: Collection[str] = ()
    parts: Mapping[str, Job] = {}
    busy: Collection[str] = ()
    growing: Collection[str] = ()


def around(mine: Sequence[Job], jobs: Sequence[Job], growing: Collection[str] = ()) -> Around:
    """What all `jobs` in the queue say of whether `mine` can start."""
    leaders = {job.id for job in mine if "+" in job.id}
    parts: dict[str, Job] = {}
    for job in jobs if leaders else ():
        leader = f"{job.id.partition('+')[0]}+0"
        if leader in leaders and job.id != leader and _held(job):
            parts.setdefault(leader, job)
    busy = {job.account or job.user for job in jobs if phase(job.state) in _BUSY}
    return Around(held_up(mine, jobs), parts, busy, growing)


_BUSY = (Phase.RUNNING, Phase.STARTING, Phase.ENDING, Phase.PAUSED)


def arranged(jobs: Sequence[Job], memory: Memory, now: Instant, around: Around) -> Queue:
    """Sort jobs into a Queue; `memory` tells for how long each has had its reason. In place of a
    heterogeneous job that cannot start stands the part that keeps it from it."""
    places: dict[Phase, list[Job]] = {}
    for job in jobs:
        waits = phase(job.state) in (Phase.WAITING, Phase.HELD)
        part = around.parts.get(job.id) if waits else None
        held = part is not None or job.id in around.stuck
        place = Phase.HELD if held else _place(job, memory, now, around)
        places.setdefault(place, []).append(part or job)
    places.pop(Phase.OVER, None)
    return Queue(**{place.value: tuple(members) for place, members in places.items()})


def is_starved(job: Job, memory: Memory, now: Instant, busy: Collection[str]) -> bool:
    """Whether it has waited for a day for what others of its account hold, and none of them runs:
    then it may ask for more than all of it."""
    if not explain(job.reason).shared or (job.account or job.user) in busy:
        return False
    seen = memory.of(job)
    waited = max(0.0, now.wall / SECOND - (job.submitted or now.wall / SECOND))
    waited = max(waited, seen.waited + elapsed(seen.first, now)) if seen else waited
    return (min(waited, elapsed(memory.alive, now)) if memory.alive else waited) > DAY


def _place(job: Job, memory: Memory, now: Instant, around: Around) -> Phase:
    where = phase(job.state)
    if where is not Phase.WAITING:
        return where
    expected = job.started is not None and job.started * SECOND > now.wall
    grows = not set(job.partition.split(",")).isdisjoint(around.growing)
    reason = explain_of(job.reason, job.partition, expected=expected, grows=grows)
    seen = memory.of(job)
    if is_starved(job, memory, now, around.busy):
        return Phase.HELD
    shown = elapsed(seen.since, now) if seen else 0.0
    if job.state == "EXPEDITING" and shown > EXPEDITED:
        return Phase.HELD
    if reason.ends is Ends.ITSELF and reason.patience is not None and shown > reason.patience:
        return Phase.HELD
    return _PHASE[reason.ends]


def _held(job: Job) -> bool:
    """Whether by its state and reason alone a person is needed."""
    where = phase(job.state)
    waits = where is Phase.WAITING and explain(job.reason).ends is Ends.PERSON
    return waits or where is Phase.HELD


_PHASE = {Ends.ITSELF: Phase.WAITING, Ends.PERSON: Phase.HELD, Ends.UNKNOWN: Phase.UNCLEAR}


# What one run gathered; all that the judgement may use.


class View(Struct, frozen=True, kw_only=True):
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
    queue: Queue
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
