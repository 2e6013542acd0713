"""The `checkpoint` check: the folder, the job that fills it, how bad it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.checkpoint.files import Entry, Folder, unknown_ones
from sentinel.checks.checkpoint.judge import (
    Begun,
    Found,
    Sight,
    highest_named,
    incomplete,
    judge,
    quiet_since,
)
from sentinel.checks.checkpoint.settings import Rule, judge_where
from sentinel.checks.users import running, watched
from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Report, Sample, Status
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.slurm import Job
from sentinel.core.text import visible
from sentinel.core.values import Duration

LOOKUP = 20.0
"""Seconds for one question to the file system: a sharded checkpoint has thousands of files."""


class Memory(Struct, frozen=True, kw_only=True):
    """By name: the complete checkpoints, those that were not when they were looked into, and
    those that nobody has looked into yet."""

    complete: dict[str, Found] = {}
    begun: dict[str, Begun] = {}
    unseen: list[str] = []
    looked: bool = False
    stuck: dict[str, proc.Stuck] = {}

    def before(self, name: str) -> Begun | None:
        """What was in it when it was last looked into."""
        found = self.complete.get(name)
        if found is None:
            return self.begun.get(name)
        return Begun(size=found.size, changed=found.written, since=found.since)


class Checkpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Complete checkpoints: how old the newest is, how large, how many; what is at risk.

    With `job` only while such a job runs, and counted from its start.
    """

    EVERY: ClassVar[float] = 300
    TIMEOUT: ClassVar[float] = 120

    path: FilePath
    match: re.Pattern[str] = re.compile(r"\D*(\d+)\D*")
    complete: Rule = Rule()
    job: str = ""
    users: list[str] = []
    late_after: Duration = Duration(4 * 3600)
    fewest: int = 0

    def __post_init__(self) -> None:
        judge_where(self.path, self.match)
        if self.late_after <= 0:
            raise Invalid("has to be longer than nothing", "late_after")

    def run(self, ctx: Context) -> Report:
        """One finding about the job's name or the folder; CannotTell when it cannot be read."""
        jobs = running(ctx, self.job, self.users) if self.job else []
        if self.job and not jobs:
            nothing = "no such job is running, so no checkpoint is awaited"
            return Report(findings=(self._finding(Status.OK, nothing),))
        memory = _recalled({} if ctx.one_shot else ctx.memory)
        stuck = {p: s for p, s in memory.stuck.items() if proc.still_stuck(s)}
        limit, total = min(LOOKUP, ctx.limit / 3), ctx.limit * 0.8
        folder = Folder(self.path, self.match, limit=limit, total=total, stuck=stuck)
        try:
            sight, kept = self._sight(folder, memory, ctx.now, _longest(jobs, ctx.now))
        except CannotTell as error:
            if ctx.one_shot or not stuck:
                raise
            kept = replace(memory, stuck=stuck)  # what is raised remembers nothing
            finding = self._finding(Status.UNKNOWN, str(error), jobs=jobs)
            return Report(findings=(finding,), memory=to_builtins(kept))
        verdict = judge(sight, self.late_after, self.fewest)
        return Report(
            findings=(self._finding(verdict.status, verdict.summary, verdict.values, jobs),),
            samples=self._samples(verdict.values),
            memory=None if ctx.one_shot else to_builtins(kept),
        )

    def jobs_of(self) -> frozenset[str] | None:
        """The users squeue has to be asked for; None: everybody. Raises CannotTell."""
        return watched(self.users) if self.job else frozenset()

    @property
    def subject(self) -> str:
        """What the alert is about: the job's configured name, else the folder."""
        return visible(self.job or str(self.path))

    def _sight(
        self, folder: Folder, memory: Memory, now: Instant, ran: float | None
    ) -> tuple[Sight, Memory]:
        entries = folder.entries()
        known = {e.name: memory.complete[e.name] for e in entries if e.name in memory.complete}
        named = folder.named(self.complete.latest) if self.complete.latest else ""
        highest = highest_named(named, entries)
        same = {e.name for e in entries if e.step != highest and _untouched(e, known)}
        begun, lacks = dict[str, Begun](), dict[str, str]()
        for entry in unknown_ones(entries, same):
            if (known or begun) and folder.hurries:
                break
            inside = folder.look_into(entry, self.complete)
            first = not memory.looked or entry.name in memory.unseen
            since = quiet_since(inside, memory.before(entry.name), now, first=first)
            quiet = elapsed(since, now)
            why = incomplete(entry, inside, self.complete, named, highest, quiet)
            known.pop(entry.name, None)
            if why:
                begun[entry.name] = Begun(size=inside.size, changed=inside.changed, since=since)
                lacks[entry.name] = why
            else:
                known[entry.name] = Found(
                    step=entry.step,
                    size=inside.size,
                    since=since,
                    changed=entry.changed,
                    written=inside.changed,
                )
        top = entries[0].name if entries else ""
        unseen = [e.name for e in entries if e.name not in known and e.name not in begun]
        sight = Sight(
            at=now,
            complete=known,
            begun=top if top in lacks else "",
            why=lacks.get(top, ""),
            ran=ran,
        )
        return sight, Memory(complete=known, begun=begun, unseen=unseen, looked=True)

    def _finding(
        self,
        status: Status,
        summary: str,
        values: Mapping[str, Any] | None = None,
        jobs: list[Job] | None = None,
    ) -> Finding:
        from shlex import quote

        job = jobs[0] if jobs else None
        return Finding(
            subject=self.subject,
            status=status,
            summary=summary,
            values=values or {},
            commands=(f"ls -lt {quote(visible(self.path))} | head",) if status.bad else (),
            labels={"job": visible(job.name), "user": job.user, "partition": job.partition}
            if job
            else {},
        )

    def _samples(self, values: Mapping[str, Any]) -> tuple[Sample, ...]:
        names = ("age_seconds", "size_bytes", "complete")
        return tuple(
            Sample(self.subject, name, float(values[name]))
            for name in names
            if values[name] is not None
        )


def _longest(jobs: list[Job], now: Instant) -> float | None:
    """How long the job runs; of several the longest, whose loss would be the greatest."""
    ran = [now.wall / SECOND - job.started for job in jobs if job.started is not None]
    return max(0.0, *ran) if ran else None


def _untouched(entry: Entry, known: Mapping[str, Found]) -> bool:
    """Known, and neither replaced nor begun to be deleted since it was looked into."""
    return entry.name in known and known[entry.name].changed == entry.changed


def _recalled(memory: Mapping[str, Any]) -> Memory:
    try:
        return convert(memory, Memory)
    except ValidationError:
        return Memory()
