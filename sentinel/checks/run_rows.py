"""What several kinds of checks write into the ledger of runs, and how often."""

from contextlib import suppress

from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Context
from sentinel.core.run_ledger import LedgerRow

WRITE_SPACING_US = 300 * SECOND
"""A row that only grows is written again once in this time, so an ordinary pass writes none."""


def is_write_due(before: Instant | None, now: Instant) -> bool:
    """Whether rows that only grow are written in this pass."""
    return before is None or before.wall // WRITE_SPACING_US != now.wall // WRITE_SPACING_US


def get_steady_wall(first: Instant, now: Instant) -> int:
    """The time (µs UTC) as if the wall clock had not jumped since `first`, for a clock that jumps ahead
    and back would claim time that never was. A small difference is none."""
    steady = first.wall + int(get_elapsed_s(first, now) * SECOND)
    return steady if abs(now.wall - steady) > WRITE_SPACING_US else now.wall


def find_held_gpus(ctx: Context, job: Job) -> int | None:
    """How many GPUs a job has, with all parts of a heterogeneous one. None if Slurm does not tell:
    then the next pass asks again."""
    whole, plus, _ = job.id.partition("+")
    with suppress(CannotTell):
        told = ctx.slurm.gpus()
        if not plus:
            return told.get(job.job_id, 0)
        parts = [one for one in ctx.slurm.jobs() if one.id.partition("+")[0] == whole]
        sizes = [told.get(one.job_id, 0) for one in parts]
        return None if None in sizes else sum(filter(None, sizes))
    return None


def make_held_row(run: str, job: Job, gpus: int | None, now: int) -> LedgerRow:
    """The row of a job that runs: what it has held until now (µs UTC)."""
    started = job.started or now // SECOND
    return LedgerRow(
        run=run,
        kind="held",
        began=started * SECOND,
        ended=max(now, started * SECOND),
        job=job.job_id,
        attempt=started,
        gpus=gpus or 0,
        nodes=job.nodes[:200],
        submitted=job.submitted,
    )
