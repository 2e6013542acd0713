"""The `job` check: it asks Slurm, remembers, and judges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar

from msgspec import structs

from sentinel.checks.job.ledger_rows import list_ledger_rows, with_held_gpus
from sentinel.checks.job.look import LOOKUP_TIMEOUT_S, JobRound, SubmitHosts
from sentinel.checks.job.memory import (
    Memory,
    dump_memory,
    load_memory,
    update_memory,
)
from sentinel.checks.job.node_watch import NodeWatch
from sentinel.checks.job.pulse import pulse_conflicts, pulse_line
from sentinel.checks.job.recall import is_any_in_queue, recall_memories
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.shared_nodes import add_ended_runs
from sentinel.checks.job.succession import learn_delays
from sentinel.checks.job.trainings_round import TrainingsRound
from sentinel.checks.text_child import TextReader
from sentinel.checks.users import departed_members, find_meant_names, large_jobs, watched_users
from sentinel.checks.wishes import list_refusals
from sentinel.core.action_limits import Limits
from sentinel.core.clock import Instant
from sentinel.core.cluster import Job
from sentinel.core.declared import TRAINING, Panel
from sentinel.core.errors import CannotTell
from sentinel.core.model import Coverage, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.shown import Column
from sentinel.core.text import visible
from sentinel.plugin import Check
from sentinel.slurm.job_index import QueuedJobs, index_jobs
from sentinel.slurm.job_states import is_leader

READ_SHARE = 0.5
"""The share of the run's time limit for reading job outputs."""


class JobCheck(JobSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A training job runs, or waits for a reason that ends by itself; else what happened.

    One subject: the configured name; or each training that fits, told by its own name (and its
    user's where there are several). Critical only when nothing of it runs and nothing will
    start; a queue that cannot be read raises CannotTell.
    """

    EVERY: ClassVar[float] = 60.0
    TIMEOUT: ClassVar[float] = 60.0
    METRICS = TRAINING
    PANEL: ClassVar[Panel] = "jobs"
    COLUMNS = (
        Column("training", "subject"),
        Column("running", "running", "count"),
        Column("queued", "queued", "count"),
        Column("nodes", "nodes", "count", optional=True),
        Column("last 24 hours", "running", "day"),
        Column("status", "status", "status"),
        Column("summary", "summary"),
    )
    SOURCES = (
        "squeue of slurmctld for the jobs; for one that is gone slurmctld once more, then accounting.",
        "The last lines of a dead job's own output.",
    )
    RUNBOOK = "docs/job.md"

    def run(self, ctx: Context) -> Report:
        """One finding per training. Raises CannotTell if Slurm, a group or `done_when` gives no
        answer."""
        jobs = index_jobs(ctx.slurm.jobs())
        users = watched_users(self.whose, min(LOOKUP_TIMEOUT_S, ctx.limit / 4))
        mine = self._select_watched_jobs(ctx, jobs, users)
        with TextReader(in_child=not ctx.one_shot, total_s=ctx.limit * READ_SHARE) as reader:
            around = JobRound(self, ctx, jobs, mine, reader)
            if self.many:
                return TrainingsRound(self, ctx, jobs, users).make_report(around, mine)
            return self._check_one_training(ctx, around, mine, users)

    def _check_one_training(
        self, ctx: Context, around: JobRound, mine: Sequence[Job], users: Collection[str] | None
    ) -> Report:
        before = load_memory({} if ctx.one_shot else ctx.memory, Memory)
        memory = update_memory(before, mine, ctx.now, around.window)
        memory = with_held_gpus(memory, mine, ctx)
        alive = [self.subject] if is_any_in_queue(mine) else []
        again = recall_memories({self.subject: memory}, alive, self, users, ctx)
        told, hosts = ctx.told.get(self.subject), SubmitHosts(ctx)
        known = again.memories[self.subject]
        memory = learn_delays(before, known, mine, ctx.now, told=told, host=hosts.find_submit_host)
        if again.doubts:
            doubt = CannotTell(again.doubts[self.subject])
            if ctx.one_shot:
                raise doubt
            return self._report_unknown(doubt, memory)
        ended = add_ended_runs(before.ended, {self.subject: memory.gone}, ctx.now)
        memory = structs.replace(memory, ended=ended)
        files = around.open_files(memory.stuck)
        try:
            view = around.build_view(self.subject, mine, memory, ended=memory.ended)
            notes = (
                *view.notes,
                *self._departed_member_notes(min(LOOKUP_TIMEOUT_S, ctx.limit / 4)),
            )
            seen = around.judge_view(structs.replace(view, notes=notes), files)
        except CannotTell as error:
            if ctx.one_shot:
                raise
            return self._report_unknown(error, structs.replace(memory, stuck=files.hanging_by_path))
        return Report(
            findings=(
                seen.finding,
                *NodeWatch(self, ctx).list_findings({self.subject: mine}),
            ),
            coverage=Coverage(of="jobs by name", meant=1),
            requests=() if ctx.one_shot else seen.wishes,
            samples=seen.finding.samples(("running", "queued")),
            letters=() if ctx.one_shot else list_refusals(mine, lambda _: self.subject),
            watched_jobs=tuple(job.job_id for job in mine),
            memory=None if ctx.one_shot else dump_memory(seen.memory),
            ledger=()
            if ctx.one_shot
            else tuple(list_ledger_rows(ctx, self.subject, before, seen.memory)),
        )

    def _departed_member_notes(self, limit: float) -> tuple[str, ...]:
        """A note about members of a group who have left it."""
        try:
            names = sorted(departed_members(self.whose, limit))
        except CannotTell:
            return ()
        some = visible(", ".join(names[:5]))
        return (f"not watched, no such user any more: {some}",) if names else ()

    def jobs_of(self) -> frozenset[str] | None:
        """The users whose jobs squeue is asked for. None means everybody. Raises CannotTell."""
        return watched_users(self.whose)

    def grants(self) -> Mapping[str, Limits | None]:
        """The actions that `on_storm` and `on_death` allow. To name an action there switches it on,
        within its own limits."""
        return dict.fromkeys(map(str, (*self.on_storm, *self.on_death)))

    @property
    def may_ask(self) -> bool:
        """Whether this configuration can request any action."""
        return bool(self.on_storm or self.on_death)

    def pulse(self, report: Report, now: Instant) -> tuple[str, str] | None:
        """The path of `pulse_log` and the line to append to it, without newline. None without
        `pulse_log`."""
        if not self.pulse_log:
            return None
        return self.pulse_log, pulse_line(report, self.subject, now)

    def conflicts(self, others: Mapping[str, Check]) -> Iterable[tuple[str, str]]:
        """Configuration errors that can be seen only if all checks are known: a key and a message
        each."""
        return [("pulse_log", text) for text in pulse_conflicts(self.pulse_log, others)]

    def _report_unknown(self, error: CannotTell, memory: Memory) -> Report:
        """Report UNKNOWN. An exception would lose the memory, and a hanging child process has to be
        remembered."""
        finding = Finding(subject=self.subject, status=Status.UNKNOWN, summary=str(error))
        return Report(
            findings=(finding,),
            coverage=Coverage(of="jobs by name", meant=1, unseen=(self.subject,)),
            memory=dump_memory(memory),
        )

    def _select_watched_jobs(
        self, ctx: Context, jobs: QueuedJobs, users: Collection[str] | None
    ) -> list[Job]:
        mine = [
            job
            for job in jobs.find_named(find_meant_names(self.name, self.match, jobs))
            if is_leader(job)
            and (users is None or job.user in users)
            and (self.partition is None or self.partition in job.partition.split(","))
        ]
        return (
            large_jobs(mine, self.min_gpus, self.min_nodes, jobs, ctx.slurm)
            if self.has_size_limit
            else mine
        )
