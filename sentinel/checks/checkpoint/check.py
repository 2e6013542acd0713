"""The `checkpoint` check: it finds the folder and the job that fills it, and reports how bad it is.

The check remembers from run to run which checkpoints are complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.checks.checkpoint.files import (
    CheckpointFolder,
)
from sentinel.checks.checkpoint.judge import (
    judge_checkpoints,
)
from sentinel.checks.checkpoint.ledger_rows import list_saved_rows
from sentinel.checks.checkpoint.look import CheckpointLook, Memory
from sentinel.checks.trainings import jobs_by_subject, look_at_each
from sentinel.checks.users import EVERYBODY, running_jobs, watched_users
from sentinel.checks.wishes import is_owner_muted
from sentinel.core.checkpoints import CheckpointRule, validate_place
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job
from sentinel.core.declared import Metric
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.guidance import Guidance, LookingCommand, look
from sentinel.core.model import Coverage, Finding, Report, Sample, Status
from sentinel.core.ports import Context
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.settings import FilePath
from sentinel.core.shown import Column
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import visible
from sentinel.core.values import Duration, duration_text
from sentinel.plugin import Check
from sentinel.slurm.filename_patterns import fill_symbols, has_symbols, whose_path
from sentinel.user_files.files import UserFiles

IDLE_MEMORY_KEY = "idle"
"""Key in the memory: no job ran at the last run, and Slurm was asked twice."""

LAST_LOOKS_KEY = "last_looks"
"""Key in the memory: how many looks there were since the job ended."""

MAX_LAST_LOOKS = 3
"""So many looks after its end see the last checkpoint of a job: one to find it, and others until it
is settled."""

NO_JOB_TEXT = "no job {} runs, so no checkpoint is awaited"

LOOKUP_TIMEOUT_S = 20.0
"""How many seconds one question to the file system may take. A sharded checkpoint has thousands of
files."""


class CheckpointCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Complete checkpoints: how old the newest is, how large, how many; what is at risk.

    path: The folder that holds the checkpoints (files or folders; links are none); for several
        trainings with Slurm's %-symbols.
    match: A regular expression for the whole name; its first group is the step, which orders them.
    complete: What shows that one is complete.
    job: Only while a job of this name runs, and counted from its start.
    job_match: A regular expression for the whole name, in place of `job`: each training is a subject.
    users: Whose jobs count: user names, `group:NAME`, or `*` for everybody; unset, who runs
        sentinel, or with a size alone everybody.
    min_gpus: Only jobs with so many GPUs or more, each a subject.
    min_nodes: Only jobs on so many nodes or more, each a subject.
    late_after: Critical when more work than that is at risk.
    fewest: A warning when fewer complete ones are there.
    """

    EVERY: ClassVar[float] = 300
    TIMEOUT: ClassVar[float] = 120
    METRICS = (
        Metric(
            "age_seconds",
            "checkpoint_age_seconds",
            "Age of the newest checkpoint.",
            "seconds",
            moves="up",
        ),
        Metric("at_risk_seconds", "checkpoint_at_risk_seconds", "Work not saved.", "seconds"),
        Metric("size_bytes", "checkpoint_size_bytes", "Size of the newest checkpoint.", "bytes"),
        Metric("complete", "checkpoint_complete", "Complete checkpoints there are."),
        Metric("step", "checkpoint_step", "Step of the newest checkpoint."),
    )
    COLUMNS = (
        Column("training or folder", "subject"),
        Column("newest step", "step", "count"),
        Column("age", "age_seconds", "time"),
        Column("size", "size_bytes", "size"),
        Column("complete", "complete", "count"),
        Column("work at risk", "at_risk_seconds", "time"),
        Column("status", "status", "status"),
    )
    ROW_COLUMNS = (
        Column("step", "step", "count"),
        Column("size", "size_bytes", "size"),
        Column("age", "age_seconds", "time"),
        Column("checkpoint", "name"),
        Column("complete", "complete"),
    )
    SOURCES = (
        "Names, sizes and times below `path`; a hung mount cannot block it.",
        "With `job`: squeue of slurmctld.",
    )
    RUNBOOK = "docs/checkpoint.md"

    path: FilePath
    match: re.Pattern[str] = re.compile(r"\D*(\d+)\D*")
    complete: CheckpointRule = CheckpointRule()
    job: str = ""
    job_match: re.Pattern[str] | None = None
    users: list[str] = []
    min_gpus: int = 0
    min_nodes: int = 0
    late_after: Duration = Duration(4 * 3600)
    fewest: int = 0

    def __post_init__(self) -> None:
        validate_place(self.path, self.match)
        if self.late_after <= 0:
            raise Invalid("must be longer than 0s", "late_after")
        if self.job and self.many:
            raise Invalid(
                "`job` (one training) and `job_match` or a size exclude each other", "job"
            )
        for key in ("min_gpus", "min_nodes"):
            if getattr(self, key) < 0:
                raise Invalid(f"`{key}` cannot be negative", key)
        if self.many and not has_symbols(self.path):
            raise Invalid("is one folder of many trainings; write %x or %j in it", "path")

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if not (self.job or self.many):
            yield "users", "it says whose `job` is meant; name the job"

    def run(self, ctx: Context) -> Report:
        """One finding about the job's name or the folder, or about each training; CannotTell when it
        cannot be read."""
        if self.many:
            gpus, nodes, match = self.min_gpus, self.min_nodes, self.job_match
            jobs = running_jobs(ctx, "", self.whose, match=match, min_gpus=gpus, min_nodes=nodes)
            nothing = self._make_finding(self.subject, Status.OK, NO_JOB_TEXT.format("that fits"))
            return look_at_each(
                ctx, jobs_by_subject(self.whose, jobs), self._check_job_folder, nothing, "folders"
            )
        before = not ctx.memory.get(IDLE_MEMORY_KEY)
        jobs = running_jobs(ctx, self.job, self.users, before=before) if self.job else []
        if self.job and not jobs:
            return self._report_idle(ctx, self.subject)
        return self._check_folder(ctx, self.subject, self.path, jobs)

    def _check_job_folder(self, ctx: Context, subject: str, jobs: Sequence[Job]) -> Report:
        if not jobs:
            return self._report_idle(ctx, subject)
        path = str(self.path)
        try:
            path = fill_symbols(path, jobs[0])
            return self._check_folder(ctx, subject, path, jobs)
        except CannotTell as error:
            finding = self._make_finding(subject, Status.UNKNOWN, str(error), jobs=jobs, path=path)
            none = Coverage(of="folders", meant=1, unseen=(subject,))
            return Report(findings=(finding,), coverage=none, memory=ctx.memory)

    def _report_idle(self, ctx: Context, subject: str) -> Report:
        none = Coverage(of="folders", meant=0, excused="no such job is running")
        finding = self._make_finding(subject, Status.OK, NO_JOB_TEXT.format("of exactly this name"))
        if ctx.one_shot:
            return Report(findings=(finding,), coverage=none)
        looks = int(ctx.memory.get(LAST_LOOKS_KEY) or 0)
        memory, rows = ctx.memory, tuple[LedgerRow, ...]()
        if looks < MAX_LAST_LOOKS and not has_symbols(self.path):
            memory, rows = self._look_once_more(ctx, subject)
        idle = {**memory, IDLE_MEMORY_KEY: True, LAST_LOOKS_KEY: min(looks + 1, MAX_LAST_LOOKS)}
        return Report(findings=(finding,), coverage=none, memory=idle, ledger=rows)

    def _look_once_more(
        self, ctx: Context, subject: str
    ) -> tuple[Mapping[str, Any], tuple[LedgerRow, ...]]:
        """The memory and the rows of the ledger after a look at what the job saved at its end.
        Nobody is told of it, so a folder that cannot be read is no trouble."""
        memory = decode_memory(ctx.memory, Memory)
        if memory is None or not memory.looked:
            return ctx.memory, ()
        files = UserFiles(min(LOOKUP_TIMEOUT_S, ctx.limit / 3), ctx.limit * 0.8, memory.stuck)
        folder = CheckpointFolder(str(self.path), self.match, files, whose_path(self.path, None))
        try:
            look = CheckpointLook(folder, self.complete, memory, ctx.now)
        except CannotTell:
            return ctx.memory, ()
        return to_builtins(look.make_memory()), list_saved_rows(subject, memory, look, ctx.now)

    def _check_folder(self, ctx: Context, subject: str, path: str, jobs: Sequence[Job]) -> Report:
        memory = (None if ctx.one_shot else decode_memory(ctx.memory, Memory)) or Memory()
        files = UserFiles(min(LOOKUP_TIMEOUT_S, ctx.limit / 3), ctx.limit * 0.8, memory.stuck)
        whose = whose_path(self.path, jobs[0] if jobs else None)
        folder = CheckpointFolder(path, self.match, files, whose)
        try:
            look = CheckpointLook(folder, self.complete, memory, ctx.now)
        except CannotTell as error:
            if ctx.one_shot or not files.hanging_by_path:
                raise
            # an exception would lose the memory
            kept = replace(memory, stuck=files.hanging_by_path)
            finding = self._make_finding(subject, Status.UNKNOWN, str(error), jobs=jobs, path=path)
            none = Coverage(of="folders", meant=1, unseen=(path,))
            return Report(findings=(finding,), coverage=none, memory=to_builtins(kept))
        verdict = judge_checkpoints(
            look.get_observation(_get_longest_run_s(jobs, ctx.now)), self.late_after, self.fewest
        )
        found = self._make_finding(
            subject, verdict.status, verdict.summary, verdict.values, jobs, path=path
        )
        return Report(
            findings=(found,),
            coverage=Coverage(of="folders", meant=1),
            samples=_make_samples(subject, verdict.values),
            watched_jobs=tuple(job.job_id for job in jobs),
            memory=None if ctx.one_shot else to_builtins(look.make_memory()),
            ledger=()
            if ctx.one_shot or not jobs
            else list_saved_rows(subject, memory, look, ctx.now),
            shown={subject: look.show_checkpoints()} if ctx.one_shot else {},
        )

    def jobs_of(self) -> frozenset[str] | None:
        """The users to ask squeue for. None means everybody. Raises CannotTell."""
        return watched_users(self.whose) if self.job or self.many else frozenset()

    @property
    def many(self) -> bool:
        """Whether the check reports each training that it finds as a subject. Otherwise its one
        subject is the job's name or the folder."""
        return bool(self.job_match or self.min_gpus or self.min_nodes)

    @property
    def whose(self) -> list[str]:
        """`users`, or everybody if only a size says which jobs are watched."""
        return self.users if self.users or self.job or self.job_match else [EVERYBODY]

    @property
    def subject(self) -> str:
        """The subject of the alert: the configured name of the job, or the folder if no name is
        configured. If the check reports many trainings, it is `job_match`, or empty if only a size
        selects them."""
        found = self.job_match.pattern if self.job_match else ""
        return visible(self.job or found or ("" if self.many else str(self.path)))

    def _make_finding(
        self,
        subject: str,
        status: Status,
        summary: str,
        values: Mapping[str, Any] | None = None,
        jobs: Sequence[Job] = (),
        path: str = "",
    ) -> Finding:
        job = jobs[0] if jobs else None
        return Finding(
            subject=subject,
            status=status,
            summary=summary,
            values=values or {},
            commands=_suggest_commands(path, job, status) if status.bad else (),
            guidance=_guide_checkpoint(values or {}, status) if status.bad else Guidance(),
            labels={"job": visible(job.name), "user": job.user, "partition": job.partition}
            if job
            else {},
            owner_muted=is_owner_muted(job),
        )


def _guide_checkpoint(values: Mapping[str, Any], status: Status) -> Guidance:
    risk = values.get("at_risk_seconds")
    lost = f"{duration_text(risk or 0)} of work is lost if the job ends now, and more every minute."
    if status is not Status.CRITICAL:
        lost = ""
    return Guidance(
        impact=lost if risk and lost else _few_impact(values.get("complete")),
        todo="See in the job's log (StdOut of `scontrol show job` below) whether it saves, and by `df`"
        " below whether the disk is full. If it is full, make room. If it saves too rarely, let it save"
        " more often from its next start."
        if status is Status.CRITICAL
        else "`ls` below shows what is left, newest first. If older ones were removed, let the trainer"
        " keep more of them, and see what else removes files there. If there never were more, the job"
        " saves too rarely: let it save more often from its next start.",
    )


def _few_impact(complete: Any) -> str:
    older = int(complete or 0) - 1
    if older < 0:
        return "The training has no checkpoint to go back to."
    back = "no older one" if older == 0 else f"only {older} older"
    return f"If the newest checkpoint cannot be read, there is {back} to go back to."


def _suggest_commands(path: str, job: Job | None, status: Status) -> tuple[LookingCommand, ...]:
    newest = look("ls -ltq {} | head", path)
    log = [look("scontrol show job {} | grep StdOut | cat -v", job.job_id)] if job else []
    return (newest, look("df -h {}", path), *log) if status is Status.CRITICAL else (newest,)


def _make_samples(subject: str, values: Mapping[str, Any]) -> tuple[Sample, ...]:
    names = ("age_seconds", "size_bytes", "complete")
    return tuple(
        Sample(subject, name, float(values[name])) for name in names if values[name] is not None
    )


def _get_longest_run_s(jobs: Sequence[Job], now: Instant) -> float | None:
    """How many seconds the job has run. Of several jobs the one that has run longest counts,
    because its loss would be the greatest. None if no start is known."""
    ran = [now.wall / SECOND - job.started for job in jobs if job.started is not None]
    return max(0.0, *ran) if ran else None
