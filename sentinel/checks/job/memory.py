"""What a job check remembers from run to run: plain data, bounded in size."""

from collections.abc import Container, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, structs

from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job, JobEnd, Submission
from sentinel.core.stored_memory import decode_memory
from sentinel.proc import StuckProcess
from sentinel.slurm.job_states import Phase, state_phase
from sentinel.slurm.pending_reasons import explain_reason

MAX_JOBS = 200  # rows remembered; with more, restarts are not counted
MAX_GONE_JOBS = 4  # jobs that left the queue and are still talked about


class SeenJob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job as last seen. `first`: when first seen; `since`: in this state for this reason.

    `waited`: seconds between its submission and `first`, by Slurm's clock. `how` it was submitted,
    asked while it runs: between two passes that are far apart Slurm forgets it.
    """

    id: str
    job_id: str
    array_id: str = ""
    task: str = ""
    name: str
    user: str
    partition: str
    nodes: str
    workdir: str = ""
    state: str
    reason: str
    started: int | None
    first: Instant
    since: Instant
    waited: float
    how: Submission | None = None

    @property
    def has_run(self) -> bool:
        """Whether it had begun: a pending job's `started` is only an estimate, and one that is over
        had nodes if it ever ran (a refused or cancelled submission has none)."""
        where = state_phase(self.state)
        if where is Phase.OVER:
            return bool(self.nodes)
        return where not in (Phase.WAITING, Phase.HELD, Phase.UNCLEAR)


class GoneJob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that left the queue: when that was noticed, how it ended, its last lines.

    `asked`: Slurm has answered; `end` None then means that nothing remembers the job.
    `lost`: slurmctld has lost its memory of it, and when it started, epoch seconds. `followed`:
    what was submitted after it has been counted. `how`: it was submitted. `runaway`: the state in
    which accounting still has it, while slurmctld does not know it. `clean_output`: its output was
    read, shows progress and nothing that went wrong.
    """

    seen: SeenJob
    at: Instant
    asked: bool = False
    end: JobEnd | None = None
    lost: int | None = None
    tail: str | None = None
    followed: bool = False
    how: Submission | None = None
    runaway: str = ""
    clean_output: bool = False

    @property
    def has_run(self) -> bool:
        """Whether it ever had nodes: it may have begun and ended between two looks."""
        return self.seen.has_run or bool(self.end and self.end.nodes)

    @property
    def started_at_s(self) -> int | None:
        """When its last run began, by Slurm's clock."""
        return (self.end.started if self.end else None) or self.seen.started


class SubmitDelay(Struct, frozen=True):
    """Seconds between an end and the submission of the next job, which was `at` (epoch seconds).

    `prompted`: somebody had been told of the end before. `automatic`: it cannot have been a hand.
    """

    seconds: float
    at: int
    prompted: bool = False
    automatic: bool = False


class JobRevival(Struct, frozen=True):
    """A job for which another one was asked for, when, and the step at which it died."""

    job: str
    at: Instant
    step: str


class Memory(Struct, frozen=True, kw_only=True):
    """All of it. `alive`: when last something ran; `vacant`: starts that would be restarts.

    `asked`: what was to be held, by target, with the restart that was the newest then. `looked`:
    when it was last looked at; `recalled`: when a second look was last taken. `delays`: how soon
    the next job came after its last ends, by their kind. `dead`: since when nothing of it runs
    and nothing will start. `revived`: what was to be submitted again. `away`: the id of
    its newest job, where another cluster of the federation has that.
    """

    seen: tuple[SeenJob, ...] = ()
    gone: tuple[GoneJob, ...] = ()
    alive: Instant | None = None
    vacant: int = 0
    restarts: tuple[Instant, ...] = ()
    asked: dict[str, Instant] = {}
    looked: Instant | None = None
    recalled: Instant | None = None
    stuck: dict[str, StuckProcess] = {}
    delays: dict[str, tuple[SubmitDelay, ...]] = {}
    dead: Instant | None = None
    revived: tuple[JobRevival, ...] = ()
    away: str = ""

    def without_stuck(self) -> "Memory":
        """Where what hangs is remembered once for many."""
        return structs.replace(self, stuck={}) if self.stuck else self

    def get_seen_job(self, job: Job) -> SeenJob | None:
        """What is remembered of a job; a waiting array keeps its id while its row changes."""
        return next((s for s in self.seen if s.job_id == job.job_id), None)


class TrainingsMemory(Struct, frozen=True, kw_only=True):
    """The memory of a check on many trainings, by subject. `ever`: there was one once; `delays`:
    those of trainings that are not spoken of any more."""

    trainings: dict[str, Memory] = {}
    delays: dict[str, dict[str, tuple[SubmitDelay, ...]]] = {}
    ever: bool = False
    stuck: dict[str, StuckProcess] = {}


Kept = TypeVar("Kept", Memory, TrainingsMemory)


def load_memory(stored: Mapping[str, Any], kind: type[Kept]) -> Kept:
    """The memory as stored; what an older or damaged state holds is started anew."""
    return decode_memory(stored, kind) or kind()


def dump_memory(memory: Memory | TrainingsMemory) -> Mapping[str, Any]:
    """As plain data for the store: what comes back from JSON is the same."""
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
    """The memory after this look at the queue; restarts older than `window` are dropped.

    `elsewhere`: ids of jobs that are in the queue as something else by now, and not gone.
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
        nodes=job.nodes[:200],
        workdir=job.workdir,
        state=job.state,
        reason=reason,
        started=job.started,
        first=before.first if before else now,
        since=before.since if before and same else now,
        waited=before.waited if before else _get_queued_s(job, now),
        how=before.how if before else None,
    )


def with_submission(memory: Memory, job: SeenJob, how: Submission) -> Memory:
    """The memory with how one of the jobs that are there was submitted."""
    rows = (structs.replace(s, how=how) if s is job else s for s in memory.seen)
    return structs.replace(memory, seen=tuple(rows))


def _get_queued_s(job: Job, now: Instant) -> float:
    return 0.0 if job.submitted is None else max(0.0, now.wall / SECOND - job.submitted)


def _update_gone_jobs(before: Memory, jobs: Sequence[Job], now: Instant) -> tuple[GoneJob, ...]:
    """Newly gone jobs first, those that ran before those that never did, latest start first. Of
    those that are too many, what never ran is forgotten first."""
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
    """A start is a restart when something that ran has stopped before it.

    Runs are told apart by (job id, start time): a requeued job keeps its id. Jobs that run
    side by side are no restarts of one another, and a suspended run goes on. A job that is
    still configuring has no start time yet: Slurm sets it anew when the nodes are ready.
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
