"""What people are told of unused GPUs: courteously, and what to do. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from sentinel.checks.idle.job_watch import JobUse, JobWatch
from sentinel.checks.idle.node_use import NodeUse
from sentinel.checks.wishes import is_owner_muted
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job
from sentinel.core.guidance import Guidance, LookingCommand, look, quote_command
from sentinel.core.hostlist import fold_for_people
from sentinel.core.model import Finding, Status
from sentinel.core.text import shortened, visible
from sentinel.core.values import clock_text, duration_text

MAX_SHOWN_JOBS = 10
MAX_NODES_CHARS = 120


class JobAtLook(Struct, frozen=True, kw_only=True):
    """A job with all that this look showed of it."""

    job: Job
    looks: tuple[NodeUse, ...]  # One of each of its nodes.
    watch: JobWatch  # What is remembered of it.
    use: JobUse  # What follows.

    @property
    def is_idle(self) -> bool:
        """Whether it holds GPUs that it did not use over the window, and is a batch job."""
        return bool(self.use.unused) and self.watch.is_batch


def make_finding(
    subject: str,
    jobs: Sequence[JobAtLook],
    window: float,
    now: Instant,
    told: Instant | None,
    *,
    one_shot: bool,
) -> Finding:
    """The finding about all jobs of one training. `told`: when it was reported today, if it was and
    has worked since."""
    idle = [one for one in jobs if one.is_idle]
    worst = max(idle, key=lambda one: one.use.unused, default=jobs[0])
    status = Status.WARNING if idle and told is None else Status.OK
    unknown = next((one.use.unknown for one in jobs if one.use.unknown), "")
    if not idle and unknown:
        status = Status.UNKNOWN
    text = (
        _describe_idle(idle) if idle else _describe_rest(jobs, window, unknown, one_shot=one_shot)
    )
    if idle and told is not None:
        at = clock_text(told.wall / SECOND, now.wall / SECOND)
        text += f"; it was told {at}, and is not told twice a day"
    return Finding(
        subject=subject,
        status=status,
        summary=visible(text),
        values={
            "gpus": sum(one.use.held for one in jobs),
            "idle_gpus": None if unknown and not idle else sum(one.use.unused for one in idle),
            **({"idle_s": int(worst.use.seconds)} if idle else {}),
        },
        details="\n".join(_list_details(idle)) if status.bad else "",
        commands=_suggest_commands(worst.job) if status.bad else (),
        labels=_make_labels(worst),
        tell_once=True,
        owner_muted=any(is_owner_muted(one.job) for one in idle),
        guidance=_guide_owner(worst) if status.bad else Guidance(),
    )


def _describe_idle(idle: Sequence[JobAtLook]) -> str:
    """`8 of 8 GPUs unused for 1h 5m (job 4711)`."""
    unused, held = sum(o.use.unused for o in idle), sum(o.use.held for o in idle)
    which = f"job {idle[0].job.id}" if len(idle) == 1 else f"{len(idle)} jobs"
    seconds = min(one.use.seconds for one in idle)
    text = f"{unused} of {held} GPUs unused for {duration_text(seconds)} ({which})"
    empty = [name for one in idle for name in one.use.empty_nodes]
    if empty:
        names = shortened(fold_for_people(empty), MAX_NODES_CHARS)
        text += f"; no process of it on {names}"
    elif not sum(one.use.gpu_processes for one in idle):
        text += "; no process has memory on them"
    return text


def _describe_rest(
    jobs: Sequence[JobAtLook], window: float, unknown: str, *, one_shot: bool
) -> str:
    """What is said of a training without unused GPUs, or of which nothing can be said."""
    held, busy = sum(o.use.held for o in jobs), sum(o.use.busy_now for o in jobs)
    if unknown:
        return f"use of its {held} GPUs not known: {unknown}"
    if one_shot:
        return f"{busy} of {held} GPUs at work at this look; the service looks over {duration_text(window)}"
    if any(one.watch.is_late for one in jobs):
        return f"looks are too far apart; a window of {duration_text(window)} needs four or more"
    if not any(one.watch.is_batch for one in jobs) and any(one.use.unused for one in jobs):
        return f"{busy} of {held} GPUs at work; an interactive job"
    return f"{busy} of {held} GPUs at work at this look"


def _list_details(idle: Sequence[JobAtLook]) -> Iterator[str]:
    for one in idle[:MAX_SHOWN_JOBS]:
        use = one.use
        yield (
            f"job {visible(one.job.id)} on {shortened(visible(one.job.nodes), MAX_NODES_CHARS)}: "
            f"{use.unused} of {use.held} GPUs unused, processes with memory on them: {use.gpu_processes}"
        )
    if len(idle) > MAX_SHOWN_JOBS:
        yield f"and {len(idle) - MAX_SHOWN_JOBS} more jobs"
    yield (
        "To get no such messages about a job: scontrol update JobId="
        f"{quote_command(idle[0].job.job_id)} Comment='sentinel: off', or --comment='sentinel: off' when you submit it"
    )


def _suggest_commands(job: Job) -> tuple[LookingCommand, ...]:
    return (
        look("sentinel stacks {}", job.job_id),
        look("scontrol show job {} | cat -v", job.job_id),
    )


def _guide_owner(one: JobAtLook) -> Guidance:
    number = quote_command(one.job.job_id)
    return Guidance(
        impact="The job keeps its GPUs, and nobody else can use them meanwhile. sentinel does not end it.",
        todo=f"If it waits on purpose, there is nothing to do. `sentinel stacks {number}` shows where its"
        f" processes stand. If it is not needed any more, its owner ends it: `scancel {number}`.",
    )


def _make_labels(one: JobAtLook) -> dict[str, str]:
    labels = {
        "job": one.job.name,
        "user": one.job.user,
        "partition": one.job.partition,
        "node": one.looks[0].node if len(one.looks) == 1 else "",
    }
    return {name: visible(text) for name, text in labels.items() if text}
