"""Checks many trainings in one check. The jobs of one user with one name are one training, which is
checked and reported separately."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.turns import take_turns
from sentinel.checks.users import refuse_cut, training_subject
from sentinel.checks.wishes import limit_letters
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.model import Coverage, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import shortened, visible

MAX_ENDED_REMEMBERED = 1000  # how many ended trainings are remembered, the newest ones
TIME_SHARE = 0.8  # share of the run's time limit for all trainings
MIN_LOOK_S = 1.0  # with less time left, no further training is checked
UNSEEN_FOR_TIME = (
    "not looked at: other trainings took all the time; give the check a longer `timeout`"
)


class TrainingMemories(Struct, frozen=True):
    """What the check remembers from run to run, by subject."""

    trainings: dict[str, dict[str, Any]] = {}
    """The memory of each training."""
    running: dict[str, list[str]] = {}
    """The ids of its jobs that ran at the last look."""
    late: list[str] = []
    """Trainings that lacked time in this run. The next run begins with them."""
    looked: dict[str, int] = {}
    """When each that runs was looked at last, in microseconds since 1970."""


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
    """One report about all trainings that run, or ran at the last run. `nothing` is the report if
    there are none.

    `look` gets a context with the training's own memory and time, its subject, and its jobs (empty
    if it no longer runs). `of` names the things that are checked. Users take turns, by the time
    that was spent on each. While other users wait, one call may take at most half of the remaining
    time. What fails at one training leaves it unknown, and the others are looked at. Raises CannotTell if the
    list of jobs lacks one that runs, or if `look` raises it for each training.
    """
    before = (
        None if ctx.one_shot else decode_memory(ctx.memory, TrainingMemories)
    ) or TrainingMemories()
    refuse_cut(ctx, [key for ids in before.running.values() for key in ids])
    deadline, again = time.monotonic() + ctx.limit * TIME_SHARE, inf
    reports, failures = dict[str, Report](), list[Exception | None]()
    late, looked = list[str](), dict[str, int]()
    runs = {subject: [job.job_id for job in jobs] for subject, jobs in theirs.items()}
    owners = {subject: jobs[0].user for subject, jobs in theirs.items()}
    order = dict.fromkeys([*before.late, *theirs, *before.running])
    for subject, share in _share_time(order, owners):
        memory = before.trainings.get(subject, {})
        left = deadline - time.monotonic()
        looked[subject] = ctx.now.wall
        if left < MIN_LOOK_S:
            looked[subject] = before.looked.get(subject, ctx.now.wall)
            unseen_s = (ctx.now.wall - looked[subject]) / SECOND
            reports[subject] = _unseen_report(
                subject, owners.get(subject, ""), unseen_s, memory, of
            )
            runs.setdefault(subject, before.running.get(subject, []))
            late.append(subject)
            continue
        own = replace(ctx, limit=max(MIN_LOOK_S, left / share), memory=memory)
        one, failure = _look_at_one(look, own, subject, theirs.get(subject, ()), of)
        reports[subject] = one
        failures.append(failure)
        again = min(again, time.monotonic() + one.again if one.again is not None else inf)
    _raise_if_none_was_seen(failures, len(reports))
    kept = _kept_memories(before, reports, runs)
    after = {"trainings": kept, "running": runs, "late": late, "looked": looked}
    return replace(
        _join_reports(list(reports.values()), nothing, of),
        memory=None if ctx.one_shot else after,
        again=max(1.0, again - time.monotonic()) if again < inf else None,
    )


def _look_at_one(
    look: Callable[[Context, str, Sequence[Job]], Report],
    ctx: Context,
    subject: str,
    jobs: Sequence[Job],
    of: str,
) -> tuple[Report, Exception | None]:
    """What `look` reports of the training, or that it is unknown and the error."""
    try:
        return look(ctx, subject, jobs), None
    except Exception as error:
        owner, why = jobs[0].user if jobs else "", explain_failure(subject, error)
        return _unseen_report(subject, owner, 0.0, ctx.memory, of, why), error


def _raise_if_none_was_seen(failures: Iterable[Exception | None], trainings: int) -> None:
    """Raise the first CannotTell if there is one of each training."""
    unseen = [error for error in failures if isinstance(error, CannotTell)]
    if unseen and len(unseen) == trainings:
        raise unseen[0]


def explain_failure(subject: str, error: Exception) -> str:
    """Why one training was not looked at: what its user wrote costs nobody else a look. An error of sentinel
    itself is logged with its trace."""
    if isinstance(error, CannotTell):
        return str(error)
    import logging  # takes half as long as the start of the interpreter

    logging.getLogger("sentinel").error("%s failed inside", visible(subject), exc_info=error)
    return shortened(f"not looked at: internal error: {visible(repr(error))}", 300)


def _share_time(subjects: Iterable[str], owners: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Each training in its turn, and by what the remaining time is divided for it."""
    waiting = Counter(owners.values())
    for subject in take_turns(subjects, lambda s: owners.get(s, "")):
        owner = owners.get(subject, "")
        waiting[owner] -= 1
        others_wait = any(count > 0 for who, count in waiting.items() if who != owner)
        yield subject, 2 if others_wait else 1


def _join_reports(reports: Sequence[Report], nothing: Finding, of: str) -> Report:
    """The findings of all trainings together. `nothing` if there are none."""
    return Report(
        findings=tuple(f for one in reports for f in one.findings)
        or (nothing,) * bool(nothing.subject),
        coverage=_sum_coverage([one.coverage for one in reports], of),
        requests=tuple(wish for one in reports for wish in one.requests),
        samples=tuple(sample for one in reports for sample in one.samples),
        letters=limit_letters(letter for one in reports for letter in one.letters),
        watched_jobs=tuple(name for one in reports for name in one.watched_jobs),
        shown={name: cells for one in reports for name, cells in one.shown.items()},
        ledger=tuple(row for one in reports for row in one.ledger),
    )


def _kept_memories(
    before: TrainingMemories, reports: Mapping[str, Report], running: Collection[str]
) -> dict[str, dict[str, Any]]:
    """The memory of every training that runs, however many there are. Of the others, only that of
    the newest ones."""
    memories = {s: memory for s, memory in before.trainings.items() if s not in reports}
    memories |= {subject: dict(one.memory or {}) for subject, one in reports.items()}
    ended = [subject for subject in memories if subject not in running]
    forgotten = {*ended[:-MAX_ENDED_REMEMBERED]}
    return {s: memory for s, memory in memories.items() if s not in forgotten}


def _unseen_report(
    subject: str,
    owner: str,
    unseen_s: float,
    memory: Mapping[str, Any],
    of: str,
    why: str = UNSEEN_FOR_TIME,
) -> Report:
    unseen = Finding(
        subject=subject,
        status=Status.UNKNOWN,
        summary=why,
        values={"unseen_seconds": unseen_s},
        labels={"user": owner} if owner else {},
    )
    return Report(
        findings=(unseen,),
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
