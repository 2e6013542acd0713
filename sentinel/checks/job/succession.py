"""What follows the end of a job, and how soon: whose end it was, and what is learned from it. Pure."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import structs

from sentinel.checks.job.done import last_run
from sentinel.checks.job.memory import GoneJob, Memory, SubmitDelay
from sentinel.checks.job.rhythm import PLANNED_GAP_S, get_end_kind, get_end_state
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job, Reservation
from sentinel.core.errors import Invalid
from sentinel.core.hostlist import expand_hostlist

SUBMITTED_BEFORE_END_S = 120.0
"""Seconds before the end of a job within which it may itself submit its successor: a trap of
`sbatch --signal` does. Earlier ones were queued in any case and say nothing of what follows."""

MAX_DELAYS = 10
"""Delays kept of each kind of end."""

HostFinder = Callable[[Job], str]
"""From which host a job was submitted; empty where that is not known."""


def is_cancelled_by_owner(gone: GoneJob) -> bool:
    """Whether accounting says that its own user has cancelled it."""
    canceller = gone.end.cancelled_by if gone.end else ""
    return get_end_state(gone) == "CANCELLED" and canceller == gone.seen.user != ""


def find_maintenance(last: GoneJob, reservations: Iterable[Reservation], now: Instant) -> str:
    """The maintenance reservation that is in force on one of its nodes, of several the one that ends
    last; "" for none."""
    nodes, wall = _get_end_nodes(last), now.wall // SECOND
    found = [
        (r.ends, r.name)
        for r in reservations
        if "MAINT" in r.flags
        and r.starts <= wall < r.ends
        and ("ALL_NODES" in r.flags or not nodes.isdisjoint(r.nodes))
    ]
    return max(found)[1] if found and last.has_run else ""


def _get_end_nodes(last: GoneJob) -> frozenset[str]:
    return frozenset(
        _expand_nodes(last.end.nodes if last.end else "") or _expand_nodes(last.seen.nodes)
    )


def _expand_nodes(nodes: str) -> Sequence[str]:
    try:
        return expand_hostlist(nodes)
    except Invalid:  # cut where it was too long to be remembered
        return ()


def learn_delays(
    before: Memory,
    memory: Memory,
    jobs: Sequence[Job],
    now: Instant,
    *,
    told: Instant | None = None,
    host: HostFinder = lambda _: "",
) -> Memory:
    """The memory with what has followed the last end: a job that was submitted since, one that began
    and ended between two looks, or the same one requeued; what sentinel itself has submitted again
    says nothing. `before` and `memory` are those before and after this look at the `jobs`. `told`:
    when somebody was last told of this training."""
    last = last_run(before)
    if last is not None and any(job.job_id == last.seen.job_id for job in jobs):
        requeued = SubmitDelay(
            get_elapsed_s(last.at, now), now.wall // SECOND, _was_told_after(told, last), True
        )
        return _with_delay(memory, last, requeued)
    unseen = _find_unseen_runs(before, memory, now)
    last = last_run(structs.replace(memory, gone=[g for g in memory.gone if g not in unseen]))
    ours = last is not None and any(one.job == last.seen.id for one in memory.revived)
    if last is None or last.followed or not last.asked or ours:
        return memory
    seen = before.looked or last.at  # what nobody remembers ended after it was looked at last
    ended = (last.end.ended if last.end else None) or seen.wall // SECOND
    since = [
        (at, job) for job in jobs if (at := job.submitted or 0) >= ended - SUBMITTED_BEFORE_END_S
    ]
    # After longer than that others may have come before it, of which Slurm says nothing any more.
    found = [(g.started_at_s or 0, None) for g in unseen]
    between = [
        one for one in found if ended - SUBMITTED_BEFORE_END_S <= one[0] <= ended + PLANNED_GAP_S
    ]
    if not (since or between):
        return memory
    at, job = min([*since, *between], key=lambda one: one[0])
    automatic = at < ended or (job is not None and _is_from_node(host(job), last))
    gone = tuple(structs.replace(g, followed=True) if g is last else g for g in memory.gone)
    prompted = _was_told_after(told, last) and told is not None and told.wall // SECOND <= at
    delay = SubmitDelay(max(0.0, float(at - ended)), at, prompted, automatic)
    return _with_delay(structs.replace(memory, gone=gone), last, delay)


def _is_from_node(host: str, last: GoneJob) -> bool:
    """Whether the host is a node of the job; Slurm knows it with its domain, or without."""
    return not {host, host.partition(".")[0]}.isdisjoint(_get_end_nodes(last) - {""})


def _was_told_after(told: Instant | None, last: GoneJob) -> bool:
    """Whether what was told was told after this end."""
    return told is not None and told.wall >= last.at.wall


def _find_unseen_runs(before: Memory, memory: Memory, now: Instant) -> list[GoneJob]:
    """Those that began and ended between this look and the one before."""
    known = {s.job_id for s in before.seen} | {g.seen.job_id for g in before.gone}
    return [g for g in memory.gone if g.has_run and g.at == now and g.seen.job_id not in known]


def _with_delay(memory: Memory, last: GoneJob, delay: SubmitDelay) -> Memory:
    kind = get_end_kind(last)
    kept = (*memory.delays.get(kind, ()), delay)[-MAX_DELAYS:]
    return structs.replace(memory, delays={**memory.delays, kind: kept})
