"""The watched jobs, sorted by what their state means for the training."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from sentinel.checks.job.dependencies import find_chained_jobs, has_dependency
from sentinel.checks.job.memory import Memory
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.slurm.job_index import index_jobs
from sentinel.slurm.job_states import EXPEDITED, Phase, state_phase
from sentinel.slurm.pending_reason_row import DAY_S, ReasonEnd
from sentinel.slurm.pending_reasons import explain_job_reason, explain_reason


class JobQueue(Struct, frozen=True, kw_only=True):
    """Jobs that run, that will start by themselves, that need a person, and whose state is unclear."""

    running: tuple[Job, ...] = ()  # Jobs that run.
    starting: tuple[Job, ...] = ()  # Jobs that have nodes and start.
    waiting: tuple[Job, ...] = ()  # Jobs that will start by themselves.
    held: tuple[Job, ...] = ()  # Jobs that need a person.
    paused: tuple[Job, ...] = ()  # Jobs that are suspended.
    ending: tuple[Job, ...] = ()  # Jobs that are completing.
    unclear: tuple[Job, ...] = ()  # Jobs whose state is unclear.

    @property
    def alive(self) -> tuple[Job, ...]:
        """Jobs that have nodes and use them, or soon will."""
        return self.running + self.starting

    @property
    def coming(self) -> tuple[Job, ...]:
        """Jobs that may start without a person."""
        return self.waiting + self.unclear

    @property
    def pending(self) -> tuple[Job, ...]:
        """All jobs that have not started."""
        return self.waiting + self.unclear + self.held


def count_elements(jobs: Sequence[Job]) -> int:
    """How many jobs the rows are. The row of a waiting array represents several."""
    return sum(max(1, job.elements) for job in jobs)


def find_held_up(jobs: Sequence[Job], others: Sequence[Job]) -> Collection[str]:
    """The ids of jobs that wait, directly or through other jobs, for one of `others` that only a
    person can release."""
    return find_chained_jobs(others, _needs_person) if any(map(has_dependency, jobs)) else ()


class QueueContext(Struct, frozen=True):
    """Further facts that decide whether a job can start.

    stuck: Ids of jobs that are held up.
    parts: For each heterogeneous job, by the id of its first part, another part that needs a
        person.
    busy: Accounts with a running job.
    growing: Partitions that are empty, or whose nodes come and go.
    """

    stuck: Collection[str] = ()
    parts: Mapping[str, Job] = {}
    busy: Collection[str] = ()
    growing: Collection[str] = ()


def make_queue_context(
    mine: Sequence[Job], jobs: Sequence[Job], growing: Collection[str] = ()
) -> QueueContext:
    """Whether the jobs in `mine` can start, as far as all `jobs` in the queue show it."""
    leaders = {job.id for job in mine if "+" in job.id}
    parts: dict[str, Job] = {}
    for job in jobs if leaders else ():
        leader = f"{job.id.partition('+')[0]}+0"
        if leader in leaders and job.id != leader and _needs_person(job):
            parts.setdefault(leader, job)
    busy = index_jobs(jobs).busy_accounts
    return QueueContext(find_held_up(mine, jobs), parts, busy, growing)


def arrange_jobs(
    jobs: Sequence[Job], memory: Memory, now: Instant, around: QueueContext
) -> JobQueue:
    """Sort jobs into a JobQueue.

    `memory` says how long each job has had its reason. If a heterogeneous job cannot start, the
    part that prevents it stands for the whole job.
    """
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
    """Whether it has waited for a day for its account's limit, while no job of the account runs.
    Then it may ask for more than the whole limit."""
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
    """Whether state, reason and partitions alone show that a person is needed."""
    where = state_phase(job.state)
    ends = explain_job_reason(job.reason, job.partition).ends
    return where is Phase.HELD or (where is Phase.WAITING and ends is ReasonEnd.PERSON)


_PHASE_BY_ENDS = {
    ReasonEnd.ITSELF: Phase.WAITING,
    ReasonEnd.PERSON: Phase.HELD,
    ReasonEnd.UNKNOWN: Phase.UNCLEAR,
}
