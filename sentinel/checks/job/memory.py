"""What a job check remembers between runs: plain data of limited size."""

from collections.abc import Container, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, structs

from sentinel.checks.wishes import is_owner_muted
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job, JobEnd, Submission
from sentinel.core.stored_memory import decode_memory
from sentinel.proc import StuckProcess
from sentinel.slurm.job_states import Phase, state_phase
from sentinel.slurm.pending_reasons import explain_reason

MAX_JOBS = 200  # jobs that are remembered; if there are more, restarts are not counted
MAX_NODES_CHARS = 200  # of a host list that is remembered; a longer one is cut
MAX_GONE_JOBS = 4  # jobs that left the queue and may still be reported


class SeenJob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job as it was last seen.

    first: When it was first seen.
    since: Since when it has had this state and reason.
    waited: Seconds between its submission and `first`, by Slurm's clock.
    how: How it was submitted. This is asked while it runs, because Slurm may forget it between two
        runs.
    owner_muted: Its owner wants no messages about it.
    """

    id: str  # Id as squeue prints it.
    job_id: str  # Id for scancel.
    array_id: str = ""  # Id of the array.
    task: str = ""  # Index in the array.
    name: str  # Name of the job.
    user: str  # Its owner.
    partition: str  # Its partition.
    nodes: str  # Host list of its nodes.
    workdir: str = ""  # Its working directory.
    state: str  # Its state.
    reason: str  # Why it is pending.
    started: int | None  # When it started, epoch seconds.
    first: Instant
    since: Instant
    waited: float
    how: Submission | None = None
    gpus: int | None = None  # How many GPUs it has. None: Slurm was not asked yet.
    owner_muted: bool = False

    @property
    def has_run(self) -> bool:
        """Whether it has ever run.

        For a pending job, `started` is only an estimate. A job that is over had nodes if it ever
        ran. A submission that was refused or cancelled had none.
        """
        where = state_phase(self.state)
        if where is Phase.OVER:
            return bool(self.nodes)
        return where not in (Phase.WAITING, Phase.HELD, Phase.UNCLEAR)


class GoneJob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that left the queue.

    asked: Slurm has answered. If `end` is None then, neither slurmctld nor accounting knows the
        job.
    end: How it ended.
    lost: When slurmctld started (epoch seconds), if it has lost its memory of the job.
    followed: Whether the job that was submitted after it has been counted.
    how: How it was submitted.
    runaway: Its state in accounting, if slurmctld does not know the job.
    clean_output: Its output was read and shows progress and no problem.
    """

    seen: SeenJob  # The job as it was last seen.
    at: Instant  # When it was noticed.
    asked: bool = False
    end: JobEnd | None = None
    lost: int | None = None
    tail: str | None = None  # Last lines of its output; None: not read yet.
    followed: bool = False
    how: Submission | None = None
    runaway: str = ""
    clean_output: bool = False

    @property
    def has_run(self) -> bool:
        """Whether it ever had nodes. It may have started and ended between two runs of the check."""
        return self.seen.has_run or bool(self.end and self.end.nodes)

    @property
    def started_at_s(self) -> int | None:
        """When its last run started, by Slurm's clock."""
        return (self.end.started if self.end else None) or self.seen.started


class EndedRun(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A run that is over, for what interrupted runs share (shared_nodes.py)."""

    job: str  # Id for scancel.
    started: int  # When it started, epoch seconds.
    ended: int  # When it ended, epoch seconds.
    user: str  # Its owner.
    training: str  # The subject of its training.
    nodes: str  # Host list of its nodes.
    is_interrupted: bool = False  # Nobody had planned its end.


class SubmitDelay(Struct, frozen=True):
    """The delay between an end and the submission of the next job.

    at: When the next job was submitted, epoch seconds.
    prompted: The end had been reported before, so the job may be a person's reaction.
    automatic: No person can have submitted it.
    told_at: When the end was reported, epoch seconds. 0 if it was not.
    """

    seconds: float  # Seconds from the end to the submission.
    at: int
    prompted: bool = False
    automatic: bool = False
    told_at: int = 0


class JobRevival(Struct, frozen=True):
    """A job for which sentinel requested another submission."""

    job: str  # Id of the job that died.
    at: Instant  # When the submission was requested.
    step: str  # Step at which it died.


class Memory(Struct, frozen=True, kw_only=True):
    """The memory of one training.

    alive: When one of its jobs last ran.
    vacant: Starts that would be restarts.
    asked: Holds that were requested, by target, each with the newest restart at that time.
    looked: When it was last checked.
    recalled: When Slurm was last asked again whether it is really gone.
    delays: The delays until the next job after its last ends, by the kind of end.
    dead: Since when none of its jobs runs and none will start.
    revived: Jobs that were requested to be submitted again.
    ended: Runs that are over. A check on many trainings stores them once for all.
    away: Id of its newest job, if another cluster of the federation has it.
    """

    seen: tuple[SeenJob, ...] = ()  # Jobs in the queue at the last run.
    gone: tuple[GoneJob, ...] = ()  # Jobs that have left it.
    alive: Instant | None = None
    vacant: int = 0
    restarts: tuple[Instant, ...] = ()  # When jobs were restarted.
    asked: dict[str, Instant] = {}
    looked: Instant | None = None
    recalled: Instant | None = None
    stuck: dict[str, StuckProcess] = {}  # Child processes that hang, by path.
    delays: dict[str, tuple[SubmitDelay, ...]] = {}
    dead: Instant | None = None
    revived: tuple[JobRevival, ...] = ()
    away: str = ""
    ended: tuple[EndedRun, ...] = ()

    def without_stuck(self) -> "Memory":
        """The memory without `stuck`. A check on many trainings stores it once for all of them."""
        return structs.replace(self, stuck={}) if self.stuck else self

    def get_seen_job(self, job: Job) -> SeenJob | None:
        """What is remembered about a job. A waiting array keeps its id, although its row changes."""
        return next((s for s in self.seen if s.job_id == job.job_id), None)


class TrainingsMemory(Struct, frozen=True, kw_only=True):
    """What a check on many trainings remembers.

    ever: Whether there ever was a training.
    delays: Those of trainings that are no longer reported.
    swept: When Slurm was last asked for trainings that started and died between two runs.
    late: Trainings whose files were not read, for lack of time.
    """

    trainings: dict[str, Memory] = {}  # Memory of each training, by subject.
    delays: dict[str, dict[str, tuple[SubmitDelay, ...]]] = {}
    ever: bool = False
    stuck: dict[str, StuckProcess] = {}  # Child processes that hang, by path.
    swept: Instant | None = None
    late: list[str] = []
    ended: tuple[EndedRun, ...] = ()  # Runs that are over, of all trainings.


Kept = TypeVar("Kept", Memory, TrainingsMemory)


def load_memory(stored: Mapping[str, Any], kind: type[Kept]) -> Kept:
    """The stored memory. If it is damaged or from an older version, a new one is begun."""
    return decode_memory(stored, kind) or kind()


def dump_memory(memory: Memory | TrainingsMemory) -> Mapping[str, Any]:
    """The memory as plain data for the store. JSON does not change it."""
    plain: Mapping[str, Any] = msgspec.json.decode(msgspec.json.encode(memory))
    return plain


def update_memory(
    before: Memory,
    jobs: Sequence[Job],
    now: Instant,
    window: float,
    *,
    elsewhere: Container[str] = (),
    rows: int = MAX_JOBS,
) -> Memory:
    """The memory after reading the queue. Restarts older than `window` seconds are dropped.

    `elsewhere` are ids of jobs that belong to another training by now. They are not gone.
    """
    seen = tuple(
        _remember_job(job, before.get_seen_job(job), now)
        for job in _select_most_telling(jobs, rows)
    )
    vacant, restarts = _count_restarts(before, seen, now) if len(jobs) <= rows else (0, ())
    left = tuple(s for s in before.seen if s.job_id not in elsewhere)
    return structs.replace(
        before,
        seen=seen,
        gone=_update_gone_jobs(structs.replace(before, seen=left), jobs, now),
        alive=now if any(_has_nodes(s) for s in seen) else before.alive,
        vacant=vacant,
        restarts=tuple(at for at in restarts if get_elapsed_s(at, now) <= window)[-MAX_JOBS:],
    )


def _select_most_telling(jobs: Sequence[Job], rows: int) -> list[Job]:
    order = {Phase.RUNNING: 0, Phase.STARTING: 1, Phase.ENDING: 2, Phase.PAUSED: 3}
    return sorted(jobs, key=lambda j: (order.get(state_phase(j.state), 9), j.submitted or 0))[:rows]


def _remember_job(job: Job, before: SeenJob | None, now: Instant) -> SeenJob:
    reason = explain_reason(job.reason).code
    same = before and (before.state, before.reason) == (job.state, reason)
    return SeenJob(
        id=job.id,
        job_id=job.job_id,
        array_id=job.array_id,
        task=job.task[:20],
        name=job.name,
        user=job.user,
        partition=job.partition,
        nodes=job.nodes[:MAX_NODES_CHARS],
        workdir=job.workdir,
        state=job.state,
        reason=reason,
        started=job.started,
        first=before.first if before else now,
        since=before.since if before and same else now,
        waited=before.waited if before else _get_queued_s(job, now),
        how=before.how if before else None,
        gpus=before.gpus if before and before.started == job.started else None,
        owner_muted=is_owner_muted(job),
    )


def with_submission(memory: Memory, job: SeenJob, how: Submission) -> Memory:
    """The memory, with the submission of one of the jobs in the queue."""
    rows = (structs.replace(s, how=how) if s is job else s for s in memory.seen)
    return structs.replace(memory, seen=tuple(rows))


def _get_queued_s(job: Job, now: Instant) -> float:
    return 0.0 if job.submitted is None else max(0.0, now.wall / SECOND - job.submitted)


def _update_gone_jobs(before: Memory, jobs: Sequence[Job], now: Instant) -> tuple[GoneJob, ...]:
    """The jobs that left the queue, newest first.

    Those that ran come first, the latest start before the others. If there are too many, those that
    never ran are dropped first.
    """
    present = {job.job_id for job in jobs}
    left = [s for s in before.seen if s.job_id not in present]
    left.sort(key=lambda s: (s.has_run, s.started or 0), reverse=True)
    earlier = tuple(g for g in before.gone if g.seen.job_id not in present)
    every = (*(GoneJob(seen=s, at=now) for s in left), *earlier)
    kept = sorted(range(len(every)), key=lambda at: not every[at].has_run)[:MAX_GONE_JOBS]
    return tuple(every[at] for at in sorted(kept))


def _count_restarts(
    before: Memory, seen: Sequence[SeenJob], now: Instant
) -> tuple[int, tuple[Instant, ...]]:
    """Count restarts. A start counts if a run of the training has stopped before it.

    A run is identified by job id and start time, because a requeued job keeps its id. Jobs that run
    side by side are not restarts of one another. A suspended run continues. A job that is still
    configuring has no start time yet, because Slurm sets it when the nodes are ready.
    """
    was, runs = _get_run_keys(before.seen), _get_run_keys(seen)
    vacant = min(before.vacant + len(was - runs), MAX_JOBS)
    again = min(len(runs - was), vacant)
    return vacant - again, before.restarts + (now,) * again


def _get_run_keys(seen: Sequence[SeenJob]) -> set[tuple[str, int | None]]:
    begun = (Phase.RUNNING, Phase.PAUSED)
    return {(s.job_id, s.started) for s in seen if state_phase(s.state) in begun}


def _has_nodes(seen: SeenJob) -> bool:
    return state_phase(seen.state) in (Phase.RUNNING, Phase.STARTING)
