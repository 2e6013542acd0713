"""The `job` check: ask, remember, judge."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar

from msgspec import structs

from sentinel.actions.limits import Limits
from sentinel.checks.job import status_line
from sentinel.checks.job.look import LOOKUP, Round
from sentinel.checks.job.memory import Memory, dump, load, noticed
from sentinel.checks.job.recall import in_queue, recalled
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.sizes import large
from sentinel.checks.job.succession import learned
from sentinel.checks.job.trainings import Trainings
from sentinel.checks.users import watched
from sentinel.core.clock import Instant
from sentinel.core.declared import TRAINING, Panel
from sentinel.core.errors import CannotTell
from sentinel.core.model import Coverage, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.plugin import Check
from sentinel.slurm.job_states import leads
from sentinel.slurm.model import Job


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
    SOURCES = (
        "squeue of slurmctld for the jobs; for one that is gone slurmctld once more, then accounting.",
        "The last lines of a dead job's own output.",
    )
    RUNBOOK = "docs/job.md"

    def run(self, ctx: Context) -> Report:
        """One finding for each training; raises CannotTell when Slurm, a group or `done_when`
        gives no answer."""
        jobs = ctx.slurm.jobs()
        users = watched(self.whose, min(LOOKUP, ctx.limit / 4))
        mine = self._mine(ctx, jobs, users)
        if self.many:
            return Trainings(self, ctx, jobs, users).report(mine)
        return self._one(ctx, Round(self, ctx, jobs, mine), mine, users)

    def _one(
        self, ctx: Context, around: Round, mine: Sequence[Job], users: Collection[str] | None
    ) -> Report:
        before = load({} if ctx.one_shot else ctx.memory, Memory)
        memory = noticed(before, mine, ctx.now, around.window)
        alive = [self.subject] if in_queue(mine) else []
        again = recalled({self.subject: memory}, alive, self, users, ctx)
        memory = learned(before, again.memories[self.subject], mine, ctx.now)
        if again.doubts:
            doubt = CannotTell(again.doubts[self.subject])
            if ctx.one_shot:
                raise doubt
            return self._unknown(doubt, memory)
        files = around.files(memory.stuck)
        try:
            seen = around.look(around.view(self.subject, mine, memory), files)
        except CannotTell as error:
            if ctx.one_shot or not files.stuck:
                raise
            return self._unknown(error, structs.replace(memory, stuck=files.stuck))
        return Report(
            findings=(seen.finding,),
            coverage=Coverage(of="jobs by name", meant=1),
            requests=() if ctx.one_shot else seen.wishes,
            samples=seen.finding.samples(("running", "queued")),
            memory=None if ctx.one_shot else dump(seen.memory),
        )

    def jobs_of(self) -> frozenset[str] | None:
        """The users squeue has to be asked for; None: everybody. Raises CannotTell."""
        return watched(self.whose)

    def grants(self) -> Mapping[str, Limits | None]:
        """Naming an action in `on_storm` or `on_death` switches it on, within its own limits."""
        return dict.fromkeys(map(str, (*self.on_storm, *self.on_death)))

    @property
    def may_ask(self) -> bool:
        """Whether it ever asks for an action, as it is configured."""
        return bool(self.on_storm or self.on_death)

    def pulse(self, report: Report, now: Instant) -> tuple[str, str] | None:
        """The path and the line (without newline) to append to it; None without `pulse_log`."""
        if not self.pulse_log:
            return None
        return self.pulse_log, status_line.line(report, self.subject, now)

    def conflicts(self, others: Mapping[str, Check]) -> Iterable[tuple[str, str]]:
        """Configuration errors that only show among all checks: (key, message) each."""
        return [("pulse_log", text) for text in status_line.conflicts(self.pulse_log, others)]

    def _unknown(self, error: CannotTell, memory: Memory) -> Report:
        """What is raised remembers nothing, and a child that waits has to be remembered."""
        finding = Finding(subject=self.subject, status=Status.UNKNOWN, summary=str(error))
        return Report(
            findings=(finding,),
            coverage=Coverage(of="jobs by name", meant=1, unseen=(self.subject,)),
            memory=dump(memory),
        )

    def _mine(self, ctx: Context, jobs: Sequence[Job], users: Collection[str] | None) -> list[Job]:
        mine = [
            job
            for job in jobs
            if self.names(job.name)
            and leads(job)
            and (users is None or job.user in users)
            and (self.partition is None or self.partition in job.partition.split(","))
        ]
        return large(mine, self, jobs, ctx.slurm) if self.sized else mine
