"""What interrupted a run, how often, and how long it took until steps were made again. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from sentinel.core.run_ledger import InterruptionCause
from sentinel.report.lost_steps import JobSteps

MIN_CASES = 5
"""With fewer cases no rate is given."""

AUTOMATIC_SUBMIT_S = 60
"""A job that was submitted within this many seconds after an end came from a script."""

PLANNED_ENDS = frozenset({"", "completed", "person"})
"""After these ends nobody may have wanted a next job."""

_Z_95 = 1.959964


class Interruption(Struct, frozen=True, kw_only=True):
    """One interruption of a run. Times are µs UTC."""

    at: int  # When steps ended.
    cause: InterruptionCause
    job: str  # The id of the job that was interrupted.
    nodes: str = ""  # Host list of the nodes that failed, or of the job's.
    resumed: int | None = None  # When steps were made again. None: not yet.
    ended_by: str = ""  # automatic or person. Empty: it has not ended, or nobody knows.


class MeanTime(Struct, frozen=True, kw_only=True):
    """A mean with its number of cases. `mean_s` is None below MIN_CASES."""

    cases: int
    mean_s: float | None = None
    low_s: float | None = None  # The lower end of the 95 % interval.
    high_s: float | None = None  # The upper end.


def find_interruptions(jobs: Sequence[JobSteps]) -> list[Interruption]:
    """Every end of a job that nobody had planned, and every restart inside a job, by time. The jobs
    are ordered by their beginning."""
    found = list[Interruption]()
    for number, job in enumerate(jobs):
        if not job.is_steady:
            found += _find_restarts_inside(job)
        if job.held.cause and job.held.cause not in ("completed", "time_limit"):
            following = jobs[number + 1] if number + 1 < len(jobs) else None
            found.append(_make_job_interruption(job, following))
    return sorted(found, key=lambda one: one.at)


def _find_restarts_inside(job: JobSteps) -> list[Interruption]:
    return [
        Interruption(
            at=before.ended,
            cause=before.row.cause if _is_cause(before.row.cause) else "unknown",  # type: ignore[arg-type]
            job=job.held.job,
            nodes=before.row.nodes,
            resumed=after.began,
            ended_by="automatic",
        )
        for before, after in zip(job.steps, job.steps[1:], strict=False)
        if after.first < before.last
    ]


def _is_cause(cause: str) -> bool:
    return cause not in ("", "completed", "time_limit")


def _make_job_interruption(job: JobSteps, following: JobSteps | None) -> Interruption:
    held = job.held
    ended_by, resumed = "", None
    if following is not None:
        submitted = following.held.submitted
        same_job = following.held.job == held.job
        if same_job or submitted is not None:
            in_time = (
                submitted is not None and submitted <= held.ended // 10**6 + AUTOMATIC_SUBMIT_S
            )
            ended_by = "automatic" if same_job or in_time else "person"
        resumed = following.steps[0].began if following.steps else None
    return Interruption(
        at=held.ended,
        cause=held.cause,  # type: ignore[arg-type]
        job=held.job,
        nodes=held.nodes,
        resumed=resumed,
        ended_by=ended_by if resumed is not None else "",
    )


def count_causes(found: Sequence[Interruption]) -> dict[str, int]:
    """How many interruptions each cause has, the most frequent first."""
    return dict(Counter(one.cause for one in found).most_common())


def compute_mtbf(cases: int, held_us: int) -> MeanTime:
    """The mean time between interruptions: the time of running jobs by their number.

    The interval is that of a Poisson count, by Byar's approximation.
    """
    if cases < MIN_CASES:
        return MeanTime(cases=cases)
    seconds = held_us / 10**6
    fewest = cases * (1 - 1 / (9 * cases) - _Z_95 / (3 * math.sqrt(cases))) ** 3
    more = cases + 1
    most = more * (1 - 1 / (9 * more) + _Z_95 / (3 * math.sqrt(more))) ** 3
    return MeanTime(
        cases=cases, mean_s=seconds / cases, low_s=seconds / most, high_s=seconds / fewest
    )


def compute_mttr(found: Sequence[Interruption], ended_by: str = "") -> MeanTime:
    """The mean time from an interruption until steps are made again; with `ended_by` only of those
    that ended so."""
    times = [
        (one.resumed - one.at) / 10**6
        for one in found
        if one.resumed is not None and ended_by in ("", one.ended_by)
    ]
    if len(times) < MIN_CASES:
        return MeanTime(cases=len(times))
    mean = sum(times) / len(times)
    variance = sum((one - mean) ** 2 for one in times) / (len(times) - 1)
    margin = _Z_95 * math.sqrt(variance / len(times))
    return MeanTime(
        cases=len(times), mean_s=mean, low_s=max(0.0, mean - margin), high_s=mean + margin
    )
