"""Many trainings in one check: what each user calls by one name is looked at and told by itself."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.users import refuse_cut, training_subject
from sentinel.core.cluster import Job
from sentinel.core.model import Coverage, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.stored_memory import decode_memory

MAX_ENDED_REMEMBERED = 1000  # trainings that run no more and are remembered, the last that ran
TIME_SHARE = 0.8  # of the run's limit for all of them
MIN_LOOK_S = 1.0  # no look is begun with less time than that
UNSEEN_FOR_TIME = (
    "not looked at: other trainings took all the time; give the check a longer `timeout`"
)


class TrainingMemories(Struct, frozen=True):
    """What the check remembers from run to run, by subject."""

    trainings: dict[str, dict[str, Any]] = {}
    """What is remembered of each training."""
    running: dict[str, list[str]] = {}
    """The ids of its jobs that ran at the last look."""
    late: list[str] = []
    """Those that there was no time for: the next run begins with them."""


def jobs_by_subject(whose: Sequence[str], jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """The jobs of each training."""
    theirs: dict[str, list[Job]] = {}
    for job in jobs:
        theirs.setdefault(training_subject(whose, job.user, job.name), []).append(job)
    return theirs


def look_at_each(
    ctx: Context,
    theirs: Mapping[str, Sequence[Job]],
    look: Callable[[Context, str, Sequence[Job]], Report],
    nothing: Finding,
    of: str,
) -> Report:
    """One report of all that run, and of what ran at the last look; `nothing` where none did.

    `look` gets a context with the training's own memory and the time that is left, its subject,
    and its jobs (none where it runs no more). `of`: what is looked at, in words. Raises CannotTell
    where the list of jobs leaves out one that runs.
    """
    before = (
        None if ctx.one_shot else decode_memory(ctx.memory, TrainingMemories)
    ) or TrainingMemories()
    refuse_cut(ctx, [key for ids in before.running.values() for key in ids])
    deadline, again = time.monotonic() + ctx.limit * TIME_SHARE, inf
    reports: dict[str, Report] = {}
    late: list[str] = []
    runs = {subject: [job.job_id for job in jobs] for subject, jobs in theirs.items()}
    current = dict.fromkeys([*theirs, *before.running])
    first = [subject for subject in before.late if subject in current]
    for subject in dict.fromkeys([*first, *current]):
        memory = before.trainings.get(subject, {})
        left = deadline - time.monotonic()
        if left < MIN_LOOK_S:
            reports[subject] = _unseen_report(subject, memory, of)
            runs.setdefault(subject, before.running.get(subject, []))
            late.append(subject)
            continue
        own = replace(ctx, limit=min(left, ctx.limit), memory=memory)
        reports[subject] = one = look(own, subject, theirs.get(subject, ()))
        again = min(again, time.monotonic() + one.again if one.again is not None else inf)
    after = {"trainings": _kept_memories(before, reports, runs), "running": runs, "late": late}
    every = list(reports.values())
    return Report(
        findings=tuple(f for one in every for f in one.findings)
        or (nothing,) * bool(nothing.subject),
        coverage=_sum_coverage([one.coverage for one in every], of),
        requests=tuple(wish for one in every for wish in one.requests),
        samples=tuple(sample for one in every for sample in one.samples),
        memory=None if ctx.one_shot else after,
        again=max(1.0, again - time.monotonic()) if again < inf else None,
    )


def _kept_memories(
    before: TrainingMemories, reports: Mapping[str, Report], running: Collection[str]
) -> dict[str, dict[str, Any]]:
    """The memory of every training that runs, however many; of the others that of the newest."""
    memories = {s: memory for s, memory in before.trainings.items() if s not in reports}
    memories |= {subject: dict(one.memory or {}) for subject, one in reports.items()}
    ended = [subject for subject in memories if subject not in running]
    forgotten = {*ended[:-MAX_ENDED_REMEMBERED]}
    return {s: memory for s, memory in memories.items() if s not in forgotten}


def _unseen_report(subject: str, memory: Mapping[str, Any], of: str) -> Report:
    return Report(
        findings=(Finding(subject=subject, status=Status.UNKNOWN, summary=UNSEEN_FOR_TIME),),
        coverage=Coverage(of=of, meant=1, unseen=(subject,)),
        memory=memory,
    )


def _sum_coverage(parts: Sequence[Coverage], of: str) -> Coverage:
    meant = sum(part.meant for part in parts)
    return Coverage(
        of=of,
        meant=meant,
        unseen=tuple(name for part in parts for name in part.unseen),
        excused="" if meant else "no such job is running",
    )
