"""What a job check writes into the ledger of runs: what each job held, how it ended, the queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from sentinel.checks.job.done import last_run
from sentinel.checks.job.ends import is_completed
from sentinel.checks.job.memory import GoneJob, Memory, SeenJob
from sentinel.checks.job.succession import list_maintenances
from sentinel.checks.run_rows import (
    WRITE_SPACING_US,
    find_held_gpus,
    get_steady_wall,
    is_write_due,
)
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Context
from sentinel.core.run_ledger import EndCause, LedgerRow
from sentinel.slurm.job_states import Phase, find_state_cause, lost_partition, state_phase

MAINTENANCE_REASON = "ReqNodeNotAvail, Reserved for maintenance"
"""Why a job waits, in Slurm's words, if it is a maintenance that keeps it from its nodes."""

MAX_START_DIFFERENCE_S = 60
"""Starts of one job within this many seconds are the same start."""

_WITH_NODES = (Phase.RUNNING, Phase.PAUSED, Phase.ENDING)
"""Slurm sets the start anew when the nodes are ready, so a job that is still configuring counts from
then on."""


def with_held_gpus(memory: Memory, jobs: Sequence[Job], ctx: Context) -> Memory:
    """The memory with the number of GPUs of each job that has nodes. Slurm is asked once per job."""
    if ctx.one_shot:
        return memory
    by_id = {job.job_id: job for job in jobs}
    rows = [
        replace(seen, gpus=find_held_gpus(ctx, by_id[seen.job_id]))
        if seen.gpus is None and holds_nodes(seen) and seen.job_id in by_id
        else seen
        for seen in memory.seen
    ]
    return replace(memory, seen=tuple(rows))


def holds_nodes(seen: SeenJob) -> bool:
    """Whether the job has nodes now, and its start is known."""
    return bool(seen.started) and state_phase(seen.state) in _WITH_NODES


def list_ledger_rows(ctx: Context, run: str, before: Memory, after: Memory) -> list[LedgerRow]:
    """The rows to write after a run of the check: all that has begun or ended since the last one,
    and from time to time what goes on."""
    now, due = ctx.now, is_write_due(before.looked, ctx.now)
    if not due and (after.seen, after.gone) == (before.seen, before.gone):
        return []
    running = {(s.job_id, s.started): s for s in before.seen if holds_nodes(s)}
    rows = list[LedgerRow]()
    for seen in after.seen:
        if not holds_nodes(seen):
            continue
        is_new = (seen.job_id, seen.started) not in running
        if is_new:
            rows += _list_queue_rows(run, seen)
        if is_new or due:
            rows.append(_make_held_row(run, seen, get_steady_wall(seen.first, now)))
    rows += _list_requeued(run, before, after)
    known = {(g.seen.job_id, g.seen.started): g for g in before.gone}
    for gone in after.gone:
        if gone.has_run and known.get((gone.seen.job_id, gone.seen.started)) != gone:
            rows += _list_ended(run, gone, before)
    if due and not any(holds_nodes(seen) for seen in after.seen):
        rows += _list_waiting(run, after, now)
        rows += _list_maintenance(ctx, run, after)
    return rows


def _make_held_row(run: str, seen: SeenJob, ended: int, cause: EndCause = "") -> LedgerRow:
    began = (seen.started or 0) * SECOND
    return LedgerRow(
        run=run,
        kind="held",
        began=began,
        ended=max(began, ended),
        job=seen.job_id,
        attempt=seen.started or 0,
        gpus=seen.gpus or 0,
        nodes=seen.nodes,
        submitted=_get_submit_time(seen),
        cause=cause,
    )


def _get_submit_time(seen: SeenJob) -> int:
    return int(seen.first.wall / SECOND - seen.waited)


def _list_queue_rows(run: str, seen: SeenJob) -> Iterator[LedgerRow]:
    began, ended = _get_submit_time(seen) * SECOND, (seen.started or 0) * SECOND
    if ended > began:
        yield LedgerRow(run=run, kind="queued", began=began, ended=ended)


def _list_requeued(run: str, before: Memory, after: Memory) -> Iterator[LedgerRow]:
    """Jobs that Slurm has put back into the queue: they keep their id, and nothing else tells that
    they ended. It does so after a node failed, for preemption, and when somebody asks for it."""
    now = {s.job_id: s for s in after.seen}
    for seen in before.seen:
        other = now.get(seen.job_id)
        if (
            other
            and holds_nodes(seen)
            and not (holds_nodes(other) and other.started == seen.started)
        ):
            last = before.looked or seen.since
            yield _make_held_row(run, seen, last.wall, "unknown")


def _list_ended(run: str, gone: GoneJob, before: Memory) -> Iterator[LedgerRow]:
    """The row of a job that has left the queue, as far as it is known now."""
    started = _get_known_start(gone)
    if started is None:
        return
    seen = replace(gone.seen, started=started)
    if seen.gpus is None and gone.how is not None:
        seen = replace(seen, gpus=gone.how.gpus)
    was_running = any(s.job_id == seen.job_id and holds_nodes(s) for s in before.seen)
    looked = before.looked if was_running else None
    last = get_steady_wall(seen.first, looked) if looked else 0
    ended = max(last, (gone.end.ended or 0) * SECOND if gone.end else 0)
    if not ended:
        return
    row = _make_held_row(run, seen, ended, find_end_cause(gone))
    blamed = gone.end and not lost_partition(gone.end)
    failed = gone.end.failed_node if gone.end and blamed else ""
    yield replace(row, nodes=failed or row.nodes)
    yield from _list_queue_rows(run, seen)


def _get_known_start(gone: GoneJob) -> int | None:
    """The start that its row is named by: the one that was seen while it ran, unless Slurm speaks of
    a later run. Accounting may differ from slurmctld by a second."""
    seen, said = gone.seen.started, gone.started_at_s
    same_run = bool(seen and said and abs(said - seen) <= MAX_START_DIFFERENCE_S)
    return seen if same_run else said


def find_end_cause(gone: GoneJob) -> EndCause:
    """Why the job ended. Empty while Slurm has not answered."""
    if gone.lost is not None:
        return "slurm"
    if gone.end is None:
        return "unknown" if gone.asked else ""
    if is_completed(gone):
        return "completed"
    if cause := find_state_cause(gone.end):
        return cause
    return _find_error_cause(gone.tail or "") or ("software" if gone.end.exit_code else "unknown")


def _find_error_cause(tail: str) -> EndCause:
    """The cause that the job's last lines name. Empty if they name none."""
    try:
        from sentinel.checks.log.trouble_cause import find_interruption_cause
        from sentinel.checks.log.troubles import TroubleFinder
    except ModuleNotFoundError:  # the kind `log` was taken out
        return ""
    troubles = [trouble for _, trouble in TroubleFinder({}, []).find_troubles(tail)]
    return find_interruption_cause(troubles) or ""


def _list_waiting(run: str, after: Memory, now: Instant) -> Iterator[LedgerRow]:
    """Nothing of the training has nodes: the time in the queue until now."""
    waiting = [s for s in after.seen if state_phase(s.state) is Phase.WAITING]
    if waiting:
        began = min(_get_submit_time(seen) for seen in waiting) * SECOND
        yield LedgerRow(run=run, kind="queued", began=began, ended=max(began, now.wall))


def _list_maintenance(ctx: Context, run: str, after: Memory) -> Iterator[LedgerRow]:
    """The announced maintenance that keeps the training from its nodes.

    If a job waits, Slurm says that it waits for one. Otherwise it holds all nodes of the last job,
    which did not end well. Slurm was asked for its reservations then in this pass.
    """
    waiting = [s for s in after.seen if state_phase(s.state) is Phase.WAITING]
    last = last_run(after)
    if not waiting and (last is None or is_completed(last)):
        return
    if waiting and all(seen.reason != MAINTENANCE_REASON for seen in waiting):
        return
    with suppress(CannotTell):
        known = None if waiting else last
        for one in list_maintenances(known, ctx.slurm.reservations(), ctx.now):
            began, ended, now = one.starts * SECOND, one.ends * SECOND, ctx.now.wall
            # The last row has its announced end: the reservation is gone at the next look.
            ended = ended if ended - now < WRITE_SPACING_US else now
            yield LedgerRow(run=run, kind="maintenance", began=began, ended=ended)
