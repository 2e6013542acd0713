"""The `job` check: ask, remember, judge."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from msgspec import Struct, structs

from sentinel.checks.job.files import JobFiles
from sentinel.checks.job.judge import make_unknown_finding
from sentinel.checks.job.look import LOOKUP_TIMEOUT_S, JobRound, SubmitHosts, TrainingResult
from sentinel.checks.job.memory import (
    MAX_JOBS,
    Memory,
    SubmitDelay,
    TrainingsMemory,
    dump_memory,
    load_memory,
    update_memory,
)
from sentinel.checks.job.recall import RecalledMemories, is_any_in_queue, recall_memories
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.succession import learn_delays
from sentinel.checks.users import departed_members, large_jobs, watched_users
from sentinel.core.action_limits import Limits
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.core.declared import TRAINING, Panel
from sentinel.core.errors import CannotTell
from sentinel.core.model import Coverage, Finding, Report, Sample, Status
from sentinel.core.ports import Context
from sentinel.core.text import visible
from sentinel.plugin import Check
from sentinel.slurm.job_states import is_leader


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
        users = watched_users(self.whose, min(LOOKUP_TIMEOUT_S, ctx.limit / 4))
        mine = self._select_watched_jobs(ctx, jobs, users)
        if self.many:
            return TrainingsRound(self, ctx, jobs, users).make_report(mine)
        return self._check_one_training(ctx, JobRound(self, ctx, jobs, mine), mine, users)

    def _check_one_training(
        self, ctx: Context, around: JobRound, mine: Sequence[Job], users: Collection[str] | None
    ) -> Report:
        before = load_memory({} if ctx.one_shot else ctx.memory, Memory)
        memory = update_memory(before, mine, ctx.now, around.window)
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
        files = around.open_files(memory.stuck)
        try:
            view = around.build_view(self.subject, mine, memory)
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
            findings=(seen.finding,),
            coverage=Coverage(of="jobs by name", meant=1),
            requests=() if ctx.one_shot else seen.wishes,
            samples=seen.finding.samples(("running", "queued")),
            memory=None if ctx.one_shot else dump_memory(seen.memory),
        )

    def _departed_member_notes(self, limit: float) -> tuple[str, ...]:
        """A note about members of a group who have left."""
        try:
            names = sorted(departed_members(self.whose, limit))
        except CannotTell:
            return ()
        some = visible(", ".join(names[:5]))
        return (f"not watched, no such user any more: {some}",) if names else ()

    def jobs_of(self) -> frozenset[str] | None:
        """The users squeue has to be asked for; None: everybody. Raises CannotTell."""
        return watched_users(self.whose)

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
        return self.pulse_log, pulse_line(report, self.subject, now)

    def conflicts(self, others: Mapping[str, Check]) -> Iterable[tuple[str, str]]:
        """Configuration errors that only show among all checks: (key, message) each."""
        return [("pulse_log", text) for text in pulse_conflicts(self.pulse_log, others)]

    def _report_unknown(self, error: CannotTell, memory: Memory) -> Report:
        """What is raised remembers nothing, and a child that waits has to be remembered."""
        finding = Finding(subject=self.subject, status=Status.UNKNOWN, summary=str(error))
        return Report(
            findings=(finding,),
            coverage=Coverage(of="jobs by name", meant=1, unseen=(self.subject,)),
            memory=dump_memory(memory),
        )

    def _select_watched_jobs(
        self, ctx: Context, jobs: Sequence[Job], users: Collection[str] | None
    ) -> list[Job]:
        mine = [
            job
            for job in jobs
            if self.is_watched_name(job.name)
            and is_leader(job)
            and (users is None or job.user in users)
            and (self.partition is None or self.partition in job.partition.split(","))
        ]
        return (
            large_jobs(mine, self.min_gpus, self.min_nodes, jobs, ctx.slurm)
            if self.has_size_limit
            else mine
        )


# Many trainings in one check: each is judged, told and forgotten by itself.


MAX_TRAININGS = 5000  # trainings that one check watches
MAX_REMEMBERED_JOBS = 20_000  # jobs that are remembered, of all trainings together


class JobsByTraining(Struct, frozen=True):
    """The jobs of each training in the queue, and the trainings that are too many."""

    jobs: Mapping[str, Sequence[Job]]
    left_out: tuple[str, ...] = ()


class TrainingsRound:
    """One run of a check on many trainings, `jobs` being the whole queue."""

    def __init__(
        self,
        settings: JobSettings,
        ctx: Context,
        jobs: Sequence[Job],
        users: Collection[str] | None,
    ) -> None:
        self._settings, self._ctx, self._jobs, self._users = settings, ctx, jobs, users
        self._doubts: Mapping[str, str] = {}
        self._before = load_memory({} if ctx.one_shot else ctx.memory, TrainingsMemory)

    def make_report(self, mine: Sequence[Job]) -> Report:
        """A finding for each training that is there or whose end is still told of; one about
        what they are found by where there is none."""
        around = JobRound(self._settings, self._ctx, self._jobs, mine)
        found = self._group_jobs(mine)
        again = self._update_memories(found.jobs, around.window)
        self._doubts = again.doubts
        told, host = self._ctx.told, SubmitHosts(self._ctx).find_submit_host
        memories = {
            s: learn_delays(
                self._get_memory(s),
                memory,
                found.jobs.get(s, ()),
                self._ctx.now,
                told=told.get(s),
                host=host,
            )
            for s, memory in again.memories.items()
        }
        files = around.open_files(self._before.stuck)
        seen = {
            subject: self._look_at_training(
                around, subject, found.jobs.get(subject, ()), memory, files
            )
            for subject, memory in memories.items()
        }
        kept = {s: one.memory for s, one in seen.items() if self._must_be_kept(one, around.window)}
        after = TrainingsMemory(
            trainings=kept,
            delays=self._merge_delays(seen, kept),
            ever=self._before.ever or bool(seen),
            stuck=files.hanging_by_path,
        )
        findings = [one.finding for one in seen.values()] or self._report_never_matched(
            around, files
        )
        findings += self._report_left_out(found.left_out)
        wishes = tuple(wish for one in seen.values() for wish in one.wishes)
        one_shot = self._ctx.one_shot
        return Report(
            findings=tuple(findings),
            coverage=_make_coverage(seen, found.left_out),
            requests=() if one_shot else wishes,
            samples=self._count_samples(findings),
            memory=None if one_shot else dump_memory(after),
        )

    def _group_jobs(self, mine: Iterable[Job]) -> JobsByTraining:
        """What is known already, or else is largest, goes first where there is too much."""
        found: dict[str, list[Job]] = {}
        for job in mine:
            found.setdefault(self._settings.subject_of(job.user, job.name), []).append(job)
        if len(found) <= MAX_TRAININGS:
            return JobsByTraining(found)
        known = self._before.trainings
        first = sorted(found, key=lambda s: (s not in known, -max(j.node_count for j in found[s])))
        return JobsByTraining(
            {s: found[s] for s in first[:MAX_TRAININGS]}, tuple(first[MAX_TRAININGS:])
        )

    def _update_memories(
        self, found: Mapping[str, Sequence[Job]], window: float
    ) -> RecalledMemories:
        before = self._before.trainings
        there = {job.job_id for job in self._jobs}
        subjects = [*dict.fromkeys([*found, *before])][: 2 * MAX_TRAININGS]
        rows = min(MAX_JOBS, max(2, MAX_REMEMBERED_JOBS // max(1, len(subjects))))
        now = self._ctx.now
        memories = {
            subject: update_memory(
                self._get_memory(subject),
                found.get(subject, ()),
                now,
                window,
                elsewhere=there,
                rows=rows,
            )
            for subject in subjects
        }
        known = {s: memory for s, memory in memories.items() if memory.seen or memory.gone}
        alive = [subject for subject, jobs in found.items() if is_any_in_queue(jobs)]
        first = not (known or self._before.ever or self._settings.has_size_limit)
        return recall_memories(known, alive, self._settings, self._users, self._ctx, first=first)

    def _get_memory(self, subject: str) -> Memory:
        before = self._before
        anew = Memory(delays=before.delays.get(subject, {}))
        return before.trainings.get(subject, anew)

    def _merge_delays(
        self, seen: Mapping[str, TrainingResult], kept: Container[str]
    ) -> dict[str, dict[str, tuple[SubmitDelay, ...]]]:
        """Of those that are not spoken of any more, the newest last."""
        now = {s: one.memory.delays for s, one in seen.items() if one.memory.delays}
        every = [(s, d) for s, d in {**self._before.delays, **now}.items() if s not in kept]
        return dict(every[-MAX_TRAININGS:])

    def _look_at_training(
        self, around: JobRound, subject: str, mine: Sequence[Job], memory: Memory, files: JobFiles
    ) -> TrainingResult:
        view = around.build_view(subject, mine, memory, many=True)
        if doubt := self._doubts.get(subject):
            return TrainingResult(
                make_unknown_finding(self._settings, view, doubt), (), memory.without_stuck()
            )
        try:
            seen = around.judge_view(view, files)
        except CannotTell as error:
            seen = TrainingResult(
                make_unknown_finding(self._settings, view, str(error)), (), memory
            )
        return TrainingResult(seen.finding, seen.wishes, seen.memory.without_stuck())

    def _must_be_kept(self, seen: TrainingResult, window: float) -> bool:
        """A good end is remembered while it may count as a restart, a bad one while it is told."""
        if seen.memory.seen or not seen.memory.gone:
            return bool(seen.memory.seen)
        good = seen.finding.status is Status.OK
        limit = window if good else float(self._settings.forget_after)
        return get_elapsed_s(seen.memory.gone[0].at, self._ctx.now) < limit

    def _report_never_matched(self, around: JobRound, files: JobFiles) -> list[Finding]:
        """A name or pattern that nothing has ever fitted may be a mistake; a size is none."""
        subject = self._settings.subject
        if subject and (doubt := self._doubts.get(subject)):
            return [Finding(subject=subject, status=Status.UNKNOWN, summary=doubt)]
        if not subject or self._before.ever:
            return []
        return [around.judge_view(around.build_view(subject, (), Memory()), files).finding]

    def _report_left_out(self, left_out: Sequence[str]) -> list[Finding]:
        if not left_out:
            return []
        text = (
            f"{len(left_out)} trainings more than the {MAX_TRAININGS} that one check watches are not looked at;"
            " narrow it down by `min_gpus`, `partition` or `users`"
        )
        return [Finding(subject=self._settings.subject, status=Status.UNKNOWN, summary=text)]

    def _count_samples(self, findings: Sequence[Finding]) -> tuple[Sample, ...]:
        """Of all together: a history of each would be most of the state."""
        subject = self._settings.subject or self._ctx.name
        return tuple(
            Sample(subject, name, float(sum(int(f.values.get(name) or 0) for f in findings)))
            for name in ("running", "queued")
        )


def _make_coverage(seen: Mapping[str, TrainingResult], left_out: Sequence[str]) -> Coverage:
    unseen = [s for s, one in seen.items() if one.finding.status is Status.UNKNOWN]
    return Coverage(
        of="trainings",
        meant=len(seen) + len(left_out),
        unseen=(*unseen, *left_out),
        excused="" if seen or left_out else "no such job is in the queue",
    )


# The pulse: one greppable line per run, and what it must never be written into.


def pulse_line(report: Report, subject: str, now: Instant) -> str:
    """`PULSE 2027-01-15T08:00:00Z ok my-training: running: …`, without a newline."""
    about = [f for f in report.findings if f.subject == subject] or list(report.findings)
    finding = max(about, key=lambda f: f.status.rank, default=None)
    status = finding.status if finding else Status.UNKNOWN
    summary = finding.summary if finding else "nothing was seen"
    if finding and finding.subject not in ("", subject):
        summary = f"{visible(finding.subject)}: {summary}"
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now.wall // SECOND))
    return f"PULSE {at} {status.value} {visible(subject) or 'jobs'}: {visible(summary)}"


def pulse_conflicts(path: str | None, others: Mapping[str, Check]) -> Iterator[str]:
    """One message for each check that takes what is written into the file `path` for life."""
    for name, other in others.items() if path else ():
        if any(_may_be_same_path(path or "", pattern) for pattern in other.watched_logs()):
            yield (
                f"{path} is watched by check {name!r}: the pulse could make a training that"
                " hangs look alive; write the pulse into another file"
            )


def _may_be_same_path(path: str, pattern: str) -> bool:
    """Whether a path may be what a pattern with Slurm's `%x`, `%j`, `%4t` … stands for."""
    names, patterns = os.path.normpath(path).split("/"), os.path.normpath(pattern).split("/")
    return len(names) == len(patterns) and all(map(_matches_name, names, patterns))


def _matches_name(name: str, pattern: str) -> bool:
    """Looks through the name once: users write it, and a regular expression of many symbols tries
    all ways to divide it."""
    first, *parts = re.split(r"%\d*[A-Za-z]", pattern)
    if not parts or not name.startswith(first):
        return name == first
    at = len(first)
    for part in parts[:-1]:
        at = name.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return name.endswith(parts[-1]) and len(name) - at >= len(parts[-1])
