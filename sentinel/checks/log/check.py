"""The `log` check: which files, what do they show, how bad is it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.job.users import watched
from sentinel.checks.log.files import Files
from sentinel.checks.log.judge import (
    Rules,
    Seen,
    Sight,
    Verdict,
    judge,
    number_in,
    remembered,
    values,
)
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Report, Sample, Status
from sentinel.core.patterns import expanded, has_symbols
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.slurm import Job
from sentinel.core.text import shortened, visible, visible_lines
from sentinel.core.values import Duration

TAIL = 2**20  # bytes searched for progress: a chatty log still shows its last iterations
SHOWN = 8192  # bytes of the end that a bad finding quotes from
LOOKUP = 5.0  # seconds for one question to a file system or a directory service


class Memory(Struct, frozen=True, kw_only=True):
    """What the check remembers: each log by job id, and children that hang, by path."""

    logs: dict[str, Seen] = {}
    stuck: dict[str, proc.Stuck] = {}


class Watched(Struct, frozen=True, kw_only=True):
    """One log with what was seen, what is remembered, and what that means."""

    sight: Sight
    seen: Seen
    verdict: Verdict


class Log(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A training's log grows, or the number in it advances, while its job runs.

    `path` may hold Slurm's %-symbols; without it the job's own output is watched. With
    `progress`, whose first group captures a number, growth alone does not count.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 60

    path: FilePath | None = None
    job: str | None = None
    users: list[str] = []
    stale_after: Duration = Duration(1800)
    startup: Duration = Duration(1800)
    progress: re.Pattern[str] | None = None

    def __post_init__(self) -> None:
        if not self.path and not self.job:
            raise Invalid("a log check needs a `path`, or a `job` whose output is watched")
        if self.path and not self.job and has_symbols(self.path):
            raise Invalid(f"{self.path!r} depends on a job; name the `job`", "path")
        if self.path and not self.job and not self.path.startswith("/"):
            raise Invalid(f"{self.path!r} is no absolute path; begin it with /", "path")
        if self.progress and not self.progress.groups:
            raise Invalid(r"captures nothing; put the number in a group, as (\d+)", "progress")
        if self.stale_after <= 0:
            raise Invalid("has to be longer than nothing", "stale_after")

    def run(self, ctx: Context) -> Report:
        """One finding about the job's name or the path; raises CannotTell when the queue
        cannot be read.
        """
        memory = _recalled({} if ctx.one_shot else ctx.memory)
        jobs = self._running(ctx) if self.job else []
        if self.job and not jobs:
            nothing = "no such job is running, so there is no log to watch"
            return Report(findings=(self._finding(Status.OK, nothing),), memory={})
        files = Files(min(LOOKUP, ctx.limit / 4), ctx.limit * 0.7, memory.stuck)
        watched = [self._watched(ctx, job, memory, files) for job in (*jobs,) or (None,)]
        logs = {_key(one.sight.job): one.seen for one in watched}
        return Report(
            findings=(self._told(watched, files),),
            samples=self._samples(watched),
            memory=None if ctx.one_shot else to_builtins(Memory(logs=logs, stuck=files.stuck)),
        )

    def jobs_of(self) -> frozenset[str] | None:
        """The users squeue has to be asked for; None: everybody. Raises CannotTell."""
        return watched(self.users, LOOKUP) if self.job else frozenset()

    def watched_logs(self) -> list[str]:
        """Paths and patterns of the logs that nothing but the job may write into."""
        return [self.path] if self.path else []

    @property
    def subject(self) -> str:
        """What the alert is about: the job's configured name, else the path."""
        return visible(str(self.job or self.path))

    def _running(self, ctx: Context) -> list[Job]:
        users = watched(self.users, min(LOOKUP, ctx.limit / 4))
        return [
            job
            for job in ctx.slurm.jobs()
            if job.name == self.job
            and job.state == "RUNNING"
            and (users is None or job.user in users)
        ]

    def _watched(self, ctx: Context, job: Job | None, memory: Memory, files: Files) -> Watched:
        before = memory.logs.get(_key(job))
        sight = self._sight(ctx, job, before, files)
        rules = Rules(
            stale_after=self.stale_after,
            startup=self.startup,
            by_number=self.progress is not None,
            one_look=ctx.one_shot,
        )
        seen = remembered(sight, before, rules)
        return Watched(sight=sight, seen=seen, verdict=judge(sight, seen, rules))

    def _sight(self, ctx: Context, job: Job | None, before: Seen | None, files: Files) -> Sight:
        sight = Sight(path=str(self.path or ""), at=ctx.now, job=job)
        try:
            sight = replace(sight, path=self._path(ctx, job, before))
            sight = replace(sight, look=files.look(sight.path))
            self._refuse_foreign(sight)
            if self.progress and sight.look:
                sight = replace(sight, tail=files.tail(sight.path, TAIL))
                sight = replace(sight, number=number_in(sight.tail, self.progress))
        except CannotTell as error:
            return replace(sight, error=str(error))
        return sight

    def _path(self, ctx: Context, job: Job | None, before: Seen | None) -> str:
        if self.path:
            return expanded(str(self.path), job) if job else str(self.path)
        if job is None or (before and before.path and before.started == job.started):
            return before.path if before else ""
        end = ctx.slurm.job_end(job.job_id)
        if end is None or not end.stdout:
            raise CannotTell(
                f"Slurm does not tell where job {visible(job.id)} writes; give the `path`"
            )
        return expanded(end.stdout, job)

    def _refuse_foreign(self, sight: Sight) -> None:
        """A job names its output itself: a link must not make root read others' files."""
        look, job = sight.look, sight.job
        if look and job and not self.path and job.user not in (look.owner, look.uid):
            raise CannotTell(
                f"{visible(sight.path)} belongs to {visible(look.owner)}, not to "
                f"{visible(job.user)} whose job writes there; give the `path` if that is right"
            )

    def _told(self, watched: Sequence[Watched], files: Files) -> Finding:
        """The worst log speaks; how many others are not well is added."""
        ranked = sorted(watched, key=lambda one: one.verdict.status.rank, reverse=True)
        worst, *others = ranked
        unwell = sum(one.verdict.status is not Status.OK for one in others)
        more = f"; {unwell} more of {len(watched)} running jobs likewise" if unwell else ""
        return replace(
            self._finding(worst.verdict.status, worst.verdict.summary + more),
            values=values(worst.sight, worst.seen, worst.verdict),
            details=_last_lines(worst, files) if worst.verdict.status.bad else "",
            commands=_commands(worst.sight) if worst.verdict.status.bad else (),
            labels=_labels(worst.sight.job),
        )

    def _finding(self, status: Status, summary: str) -> Finding:
        return Finding(subject=self.subject, status=status, summary=summary)

    def _samples(self, watched: Sequence[Watched]) -> tuple[Sample, ...]:
        if len(watched) != 1:
            return ()
        sight = watched[0].sight
        size = sight.look.size if sight.look else None
        numbers = {"size_bytes": size, "progress": sight.number}
        return tuple(
            Sample(self.subject, name, float(number))
            for name, number in numbers.items()
            if number is not None
        )


def _key(job: Job | None) -> str:
    return job.job_id if job else ""


def _recalled(memory: Mapping[str, Any]) -> Memory:
    try:
        return convert(memory, Memory)
    except ValidationError:
        return Memory()


def _last_lines(one: Watched, files: Files) -> str:
    if one.sight.look is None:
        return ""
    try:
        text = one.sight.tail[-SHOWN:] or files.tail(one.sight.path, SHOWN)
    except CannotTell as error:
        return str(error)
    return "\n".join(shortened(line, 300) for line in visible_lines(text).splitlines()[-20:])


def _commands(sight: Sight) -> tuple[str, ...]:
    from shlex import quote

    job = (f"scontrol show job {quote(visible(sight.job.job_id))}",) if sight.job else ()
    return (*job, f"tail -n 50 {quote(visible(sight.path))}")


def _labels(job: Job | None) -> dict[str, str]:
    if job is None:
        return {}
    return {"job": visible(job.name), "user": job.user, "partition": job.partition}
