"""The `checkpoint` check: the folder, the job that fills it, how bad it is.

A look into a folder of checkpoints: which are complete, remembered from look to look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.checkpoint.files import (
    MAX_LOOKS,
    CheckpointContents,
    CheckpointEntry,
    CheckpointFolder,
)
from sentinel.checks.checkpoint.judge import (
    ComparedCheckpoints,
    CompleteCheckpoint,
    FolderObservation,
    UnfinishedCheckpoint,
    count_name_forms,
    explain_incomplete,
    find_last_change,
    find_newest_complete,
    judge_checkpoints,
)
from sentinel.checks.trainings import jobs_by_subject, look_at_each
from sentinel.checks.users import EVERYBODY, running_jobs, watched_users
from sentinel.core.checkpoints import CheckpointRule, validate_place
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.core.declared import Metric
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Coverage, Finding, Report, Sample, Status
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import visible
from sentinel.core.values import Duration
from sentinel.plugin import Check
from sentinel.slurm.filename_patterns import fill_symbols, has_symbols, whose_path
from sentinel.user_files.files import UserFiles


class Memory(Struct, frozen=True, kw_only=True):
    """By name: the complete checkpoints, those that were not when they were looked into, and
    those that nobody has looked into yet."""

    complete: dict[str, CompleteCheckpoint] = {}
    begun: dict[str, UnfinishedCheckpoint] = {}
    unseen: list[str] = []
    looked: bool = False
    stuck: dict[str, proc.StuckProcess] = {}

    def get_last_look(self, name: str) -> UnfinishedCheckpoint | None:
        """What was in it when it was last looked into."""
        found = self.complete.get(name)
        if found is None:
            return self.begun.get(name)
        return UnfinishedCheckpoint(size=found.size, changed=found.written, since=found.since)


class CheckpointLook:
    """Looks at once. Raises CannotTell."""

    def __init__(
        self, folder: CheckpointFolder, rule: CheckpointRule, memory: Memory, now: Instant
    ) -> None:
        self._folder, self._rule, self._before, self._now = folder, rule, memory, now
        self._entries = folder.list_checkpoints()
        self._pointer = folder.read_pointer(rule.latest) if rule.latest else None
        self._highest = self._pointer.find_step(self._entries) if self._pointer else None
        known = memory.complete
        self._complete = {e.name: known[e.name] for e in self._entries if e.name in known}
        self._begun: dict[str, UnfinishedCheckpoint] = {}
        self._lacks: dict[str, str] = {}
        self._inside: dict[str, CheckpointContents] = {}
        self._forms: dict[str, dict[str, int]] = {}
        self._look_into_entries()

    def get_observation(self, ran: float | None) -> FolderObservation:
        """What there is; `ran`: seconds that the job runs."""
        begun = self._find_last_begun()
        return FolderObservation(
            at=self._now,
            complete=self._complete,
            begun=begun,
            why=self._lacks.get(begun, ""),
            ran=ran,
            unfit="" if self._entries else self._folder.describe_unfit(),
        )

    def _find_last_begun(self) -> str:
        """The highest step where it is not complete, or else what was written last of all: after a
        rollback that is a lower one."""
        top = self._entries[0].name if self._entries else ""
        if top in self._lacks:
            return top
        written = {name: self._inside[name].changed for name in self._lacks}
        newest_written = max((one.written for one in self._complete.values()), default=0.0)
        last = max(written, key=lambda name: written[name], default="")
        return last if last and written[last] > newest_written else ""

    def make_memory(self) -> Memory:
        """What to remember of it."""
        seen = {*self._complete, *self._begun}
        unseen = [e.name for e in self._entries if e.name not in seen]
        return Memory(complete=self._complete, begun=self._begun, unseen=unseen, looked=True)

    def _look_into_entries(self) -> None:
        """Into what is not known, while there is time; at one at least. Then judge, the oldest
        first: what is younger is compared with it."""
        for entry in self._order_entries()[:MAX_LOOKS]:
            if self._inside and self._folder.is_short_of_time:
                break
            self._inside[entry.name] = self._folder.look_into(entry, self._rule)
        self._forms = {name: count_name_forms(inside) for name, inside in self._inside.items()}
        looked = [e for e in self._entries if e.name in self._inside]
        for entry in sorted(looked, key=lambda e: (e.changed, e.step)):
            self._judge_entry(entry)

    def _order_entries(self) -> list[CheckpointEntry]:
        """What `latest` names and what was the newest complete one, at each run; the highest step;
        what nobody has looked into; what was not complete when somebody did. All but the first two
        only where it is not known to be complete."""
        last = find_newest_complete(self._complete, self._now)
        always = [e for e in self._entries if e.step == self._highest]
        always += [e for e in self._entries if last and e.name == last[0]]
        rest = [e for e in self._entries if not self._is_untouched(e)]
        young = sorted(rest, key=lambda e: (e.changed, e.step), reverse=True)
        young.sort(key=lambda e: e.name in self._before.begun)
        return [*dict.fromkeys([*always, *rest[:1], *young])]

    def _judge_entry(self, entry: CheckpointEntry) -> None:
        inside, name = self._inside[entry.name], entry.name
        first = not self._before.looked or name in self._before.unseen
        since = find_last_change(inside, self._before.get_last_look(name), self._now, first=first)
        quiet = get_elapsed_s(since, self._now)
        self._complete.pop(name, None)
        unseen = [f.forms for n, f in self._complete.items() if n not in self._forms]
        known = ComparedCheckpoints(
            pointer=self._pointer.first_line_text if self._pointer else "",
            highest=self._highest,
            pointed=self._pointer.written if self._pointer else None,
            complete=[*self._complete.values()],
            looked=[*(f for n, f in self._forms.items() if n != name), *unseen],
        )
        if why := explain_incomplete(entry, inside, self._rule, known, quiet):
            self._lacks[name] = why
            self._begun[name] = UnfinishedCheckpoint(
                size=inside.size, changed=inside.changed, since=since
            )
            return
        self._complete[name] = CompleteCheckpoint(
            step=entry.step,
            size=inside.size,
            since=since,
            changed=entry.changed,
            written=inside.changed,
            marker=inside.marker or 0,
            forms=self._forms[name],
        )

    def _is_untouched(self, entry: CheckpointEntry) -> bool:
        """Known, and neither replaced nor begun to be deleted since it was looked into."""
        known = self._complete.get(entry.name)
        return known is not None and known.changed == entry.changed


IDLE_MEMORY_KEY = "idle"
"""In the memory: at the last look no job ran, and Slurm was asked twice."""

NO_JOB_TEXT = "no such job is running, so no checkpoint is awaited"

LOOKUP_TIMEOUT_S = 20.0
"""Seconds for one question to the file system: a sharded checkpoint has thousands of files."""


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
            "age_seconds", "checkpoint_age_seconds", "Age of the newest.", "seconds", moves="up"
        ),
        Metric("at_risk_seconds", "checkpoint_at_risk_seconds", "Work not saved.", "seconds"),
        Metric("size_bytes", "checkpoint_size_bytes", "Size of the newest.", "bytes"),
        Metric("complete", "checkpoint_complete", "Complete checkpoints there are."),
        Metric("step", "checkpoint_step", "Step of the newest."),
    )
    SOURCES = (
        "The names, sizes and times below `path`, by a child process that is given up where it hangs.",
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
            raise Invalid("has to be longer than nothing", "late_after")
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
            nothing = self._make_finding(self.subject, Status.OK, NO_JOB_TEXT)
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
        idle = None if ctx.one_shot else {**ctx.memory, IDLE_MEMORY_KEY: True}
        finding = self._make_finding(subject, Status.OK, NO_JOB_TEXT)
        return Report(findings=(finding,), coverage=none, memory=idle)

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
            kept = replace(memory, stuck=files.hanging_by_path)  # what is raised remembers nothing
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
            memory=None if ctx.one_shot else to_builtins(look.make_memory()),
        )

    def jobs_of(self) -> frozenset[str] | None:
        """The users squeue has to be asked for; None: everybody. Raises CannotTell."""
        return watched_users(self.whose) if self.job or self.many else frozenset()

    @property
    def many(self) -> bool:
        """Whether each training that is found is a subject; else one name or folder is."""
        return bool(self.job_match or self.min_gpus or self.min_nodes)

    @property
    def whose(self) -> list[str]:
        """`users`, or everybody where nothing but a size says which jobs are meant."""
        return self.users if self.users or self.job or self.job_match else [EVERYBODY]

    @property
    def subject(self) -> str:
        """What the alert is about: the job's configured name, else the folder; where there are
        many what they are found by."""
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
        from shlex import quote

        job = jobs[0] if jobs else None
        return Finding(
            subject=subject,
            status=status,
            summary=summary,
            values=values or {},
            commands=(f"ls -lt {quote(visible(path))} | head",) if status.bad else (),
            labels={"job": visible(job.name), "user": job.user, "partition": job.partition}
            if job
            else {},
        )


def _make_samples(subject: str, values: Mapping[str, Any]) -> tuple[Sample, ...]:
    names = ("age_seconds", "size_bytes", "complete")
    return tuple(
        Sample(subject, name, float(values[name])) for name in names if values[name] is not None
    )


def _get_longest_run_s(jobs: Sequence[Job], now: Instant) -> float | None:
    """How long the job runs; of several the longest, whose loss would be the greatest."""
    ran = [now.wall / SECOND - job.started for job in jobs if job.started is not None]
    return max(0.0, *ran) if ran else None
