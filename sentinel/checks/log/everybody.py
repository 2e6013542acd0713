"""One name and everybody's jobs: what each user calls so is a training of its own."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from sentinel.checks.log.memory import Memory
from sentinel.checks.log.run import Pass, Plan
from sentinel.core.model import Coverage, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.recall import recalled
from sentinel.core.text import visible
from sentinel.slurm.model import Job

MOST_USERS = 1000  # whose trainings are remembered, the last that ran
SHARE = 0.8  # of the run's limit for all of them
LEAST = 1.0  # seconds that a user's logs are worth beginning with
LATE = "not looked at: the logs of other users took all the time; give the check a longer `timeout`"


class Users(Struct, frozen=True):
    """What is remembered, by user."""

    users: dict[str, Memory] = {}


def report(ctx: Context, plan: Plan, jobs: Iterable[Job], nothing: Finding) -> Report:
    """As that of one training, for each user who has one; `nothing` where nobody has."""
    before, theirs = _stored(ctx), _by_user(jobs)
    deadline = time.monotonic() + ctx.limit * SHARE
    active = [user for user, memory in before.items() if memory.logs]
    reports: dict[str, Report] = {}
    for user in dict.fromkeys([*theirs, *active]):
        memory = before.get(user, Memory())
        own = replace(plan, subject=f"{visible(user)}/{plan.subject}")
        left = deadline - time.monotonic()
        if left < LEAST:
            reports[user] = _late(own.subject, memory)
            continue
        one = Pass(replace(ctx, limit=min(left, ctx.limit)), own, memory)
        mine = theirs.get(user)
        reports[user] = (
            one.report(mine) if mine else one.rest(replace(nothing, subject=own.subject))
        )
    return _together(ctx, before, reports, nothing)


def _by_user(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    theirs: dict[str, list[Job]] = {}
    for job in jobs:
        theirs.setdefault(job.user, []).append(job)
    return theirs


def _stored(ctx: Context) -> dict[str, Memory]:
    """Damaged memory is as good as none."""
    found = None if ctx.one_shot else recalled(ctx.memory, Users)
    return found.users if found else {}


def _late(subject: str, memory: Memory) -> Report:
    return Report(
        findings=(Finding(subject=subject, status=Status.UNKNOWN, summary=LATE),),
        coverage=Coverage(of="logs", meant=1, unseen=(subject,)),
        memory=to_builtins(memory),
    )


def _together(
    ctx: Context, before: Mapping[str, Memory], reports: Mapping[str, Report], nothing: Finding
) -> Report:
    """One report of all; the memory of those who ran last comes last."""
    every = list(reports.values())
    kept: dict[str, Any] = {u: to_builtins(m) for u, m in before.items() if u not in reports}
    kept |= {user: one.memory for user, one in reports.items()}
    return Report(
        findings=tuple(f for one in every for f in one.findings) or (nothing,),
        coverage=_coverage([one.coverage for one in every]),
        requests=tuple(wish for one in every for wish in one.requests),
        samples=tuple(sample for one in every for sample in one.samples),
        memory=None if ctx.one_shot else {"users": dict(list(kept.items())[-MOST_USERS:])},
    )


def _coverage(parts: Sequence[Coverage]) -> Coverage:
    meant = sum(part.meant for part in parts)
    return Coverage(
        of="logs",
        meant=meant,
        unseen=tuple(name for part in parts for name in part.unseen),
        excused="" if meant else "no such job is running",
    )
