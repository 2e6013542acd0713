"""What a log check writes into the ledger of runs, and remembers for it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.futile_starts import FinishedStart, judge_futile_starts, limit_starts
from sentinel.checks.log.log_findings import WatchedLog
from sentinel.checks.log.log_state import LogState
from sentinel.checks.log.memory import Memory
from sentinel.checks.log.run_tracker import (
    RunTracker,
    RunTrackers,
    list_blind_rows,
    list_open_rows,
    track_look,
)
from sentinel.checks.log.topics import TopicAnswer
from sentinel.checks.run_rows import (
    find_held_gpus,
    get_steady_wall,
    is_write_due,
    make_held_row,
)
from sentinel.core.clock import SECOND
from sentinel.core.ports import Context
from sentinel.core.run_ledger import LedgerRow
from sentinel.slurm.job_states import Phase, state_phase

MAX_NODES_CHARS = 1000
"""The longest host list that is remembered of a start."""

MAX_UNSEEN_START_S = 600
"""A job that has made steps already when sentinel sees it for the first time, and is older than
this, was not watched from its start."""


class TrackedRuns(Struct, frozen=True, kw_only=True):
    """What to remember after a pass, the rows to write, and the alarm about starts that get
    nowhere."""

    memory: RunTrackers = RunTrackers()
    rows: tuple[LedgerRow, ...] = ()
    topics: tuple[TopicAnswer, ...] = ()

    def add_topics(self, seen: Sequence[WatchedLog]) -> list[WatchedLog]:
        """The logs, with the alarm beside what the first one says."""
        return [
            replace(one, asides=(*one.asides, *self.topics)) if not place else one
            for place, one in enumerate(seen)
        ]


def track_runs(ctx: Context, run: str, memory: Memory, seen: Sequence[WatchedLog]) -> TrackedRuns:
    """Follow all jobs of a training in this pass. Jobs that no longer run end their rows."""
    if ctx.one_shot:
        return TrackedRuns()
    work = _TrackingPass(ctx, run, memory)
    for one in seen:
        work.follow_job(one)
    work.end_missing_jobs()
    starts, said = limit_starts(work.starts) if work.starts else (), None
    if starts and work.jobs and not work.counts_epochs:
        highest = [t.start.highest for t in work.jobs.values() if t.start.highest is not None]
        said = judge_futile_starts(starts, max(highest, default=None))
    after = RunTrackers(jobs=work.jobs, counts_epochs=work.counts_epochs, starts=starts)
    return TrackedRuns(memory=after, rows=tuple(work.rows), topics=(said,) if said else ())


class _TrackingPass:
    """One pass over the jobs of a training."""

    def __init__(self, ctx: Context, run: str, memory: Memory) -> None:
        self._ctx, self._run, self._memory = ctx, run, memory
        self._before = memory.tracked
        self.counts_epochs = self._before.counts_epochs
        self.starts: list[FinishedStart] = [*self._before.starts]
        self.jobs: dict[str, RunTracker] = {}
        self.rows: list[LedgerRow] = []

    def follow_job(self, one: WatchedLog) -> None:
        """Follow one job that runs."""
        job = one.sight.job
        if job is None or job.started is None:
            return
        key, known = job.job_id, self._memory.logs.get(job.job_id)
        now = get_steady_wall(one.seen.first, self._ctx.now)
        before = self._before.jobs.get(key)
        if before is None or before.attempt != job.started:
            if state_phase(job.state) is Phase.STARTING:
                return  # Slurm sets the start anew when the nodes are ready
            self._end_tracker(key, key, before)
            before = self._begin_tracker(one)
            self.rows.append(make_held_row(self._run, job, before.gpus, now))
        if before.gpus is None:
            before = replace(before, gpus=find_held_gpus(self._ctx, job))
        self.jobs[key] = before
        if not one.sight.error:
            self._track_look(key, before, known, one, now)
        if is_write_due(known.looked if known else None, self._ctx.now):
            self.rows.append(make_held_row(self._run, job, before.gpus, now))
            self.rows += list_open_rows(self._run, key, self.jobs[key], one.seen)

    def _track_look(
        self, key: str, before: RunTracker, known: LogState | None, one: WatchedLog, now: int
    ) -> None:
        spacing = int(max(one.seen.spacing, self._ctx.every or 0.0) * SECOND)
        before = before if spacing == before.spacing else replace(before, spacing=spacing)
        found = track_look(self._run, before, known, one, now)
        self.jobs[key] = found.tracker
        self.counts_epochs = self.counts_epochs or found.tracker.counts_epochs
        self.rows += found.rows
        self.starts += [found.ended] if found.ended else []

    def end_missing_jobs(self) -> None:
        """End the rows of jobs that no longer run, as they were at the last look."""
        for key, tracker in self._before.jobs.items():
            if key not in self.jobs:
                self._end_tracker(key, key, tracker)

    def _end_tracker(self, key: str, job: str, tracker: RunTracker | None) -> None:
        if tracker is not None:
            known, now = self._memory.logs.get(key), self._ctx.now
            wall = get_steady_wall(known.first, now) if known else now.wall
            self.rows += list_open_rows(self._run, job, tracker, known)
            self.rows += list_blind_rows(self._run, job, tracker, wall)
            self.starts.append(tracker.start)

    def _begin_tracker(self, one: WatchedLog) -> RunTracker:
        job, seen, now = one.sight.job, one.seen, self._ctx.now.wall
        assert job is not None
        assert job.started is not None
        age = now - job.started * SECOND
        return RunTracker(
            attempt=job.started,
            looked=now,
            gpus=find_held_gpus(self._ctx, job),
            counts_epochs=self.counts_epochs,
            late=bool(seen.marks) and age > MAX_UNSEEN_START_S * SECOND,
            start=FinishedStart(nodes=job.nodes[:MAX_NODES_CHARS]),
        )
