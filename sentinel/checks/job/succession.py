"""The next job after an end, and how soon it came. sentinel learns delays from it. Pure."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import structs

from sentinel.checks.job.done import last_run
from sentinel.checks.job.ends import recency_key
from sentinel.checks.job.memory import GoneJob, Memory, SubmitDelay
from sentinel.checks.job.rhythm import (
    PLANNED_GAP_S,
    SuccessorWait,
    find_wait,
    get_end_kind,
    get_end_state,
)
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job, Reservation
from sentinel.core.errors import Invalid
from sentinel.core.hostlist import expand_hostlist

SUBMITTED_BEFORE_END_S = 120.0
"""Seconds before its end in which a job may submit the next one itself, e.g. by a trap with `sbatch
--signal`. Jobs that were submitted earlier say nothing about what follows an end."""

MAX_DELAYS = 10
"""How many delays are stored for each kind of end."""

MAX_UNSEEN_WAIT_S = 900.0
"""Seconds after which jobs that start and die between two runs are reported at the latest."""

HostFinder = Callable[[Job], str]
"""Returns the host from which a job was submitted. Empty if it is not known."""


def find_wait_since_death(memory: Memory, gap: float | None) -> SuccessorWait:
    """How long to wait for the next job, counted from when nothing of the training was left.

    A job that no run saw may have started and ended since then. In this case the wait starts again
    at its end.
    """
    last = last_run(memory) or next(iter(memory.gone), None)
    wait = find_wait(last, memory, gap)
    ended = last.end.ended if last and last.end else None
    was_seen = last is None or last.seen.first.wall < last.at.wall
    if was_seen or not wait.why or ended is None or memory.dead is None:
        return wait
    later = max(0.0, ended - memory.dead.wall / SECOND)
    longest = max(wait.seconds, MAX_UNSEEN_WAIT_S)
    return structs.replace(wait, seconds=min(wait.seconds + later, longest))


def is_cancelled_by_owner(gone: GoneJob) -> bool:
    """Whether accounting says that its own user has cancelled it."""
    canceller = gone.end.cancelled_by if gone.end else ""
    return get_end_state(gone) == "CANCELLED" and canceller == gone.seen.user != ""


def find_maintenance(last: GoneJob, reservations: Iterable[Reservation], now: Instant) -> str:
    """The name of the active maintenance reservation on one of its nodes. Empty if there is none.
    Of several, the one that ends last."""
    nodes, wall = _get_end_nodes(last), now.wall // SECOND
    found = [
        (r.ends, r.name)
        for r in reservations
        if "MAINT" in r.flags
        and r.starts <= wall < r.ends
        and ("ALL_NODES" in r.flags or not nodes.isdisjoint(r.nodes))
    ]
    return max(found)[1] if found and last.has_run else ""


def list_maintenances(
    last: GoneJob | None, reservations: Iterable[Reservation], now: Instant
) -> list[Reservation]:
    """The active maintenance reservations that hold all nodes of the last job. Without it, all that
    are active. The beginning of one with the flag TIME_FLOAT moves on, so it is never active."""
    nodes, wall = _get_end_nodes(last) if last else frozenset(), now.wall // SECOND
    return [
        r
        for r in reservations
        if "MAINT" in r.flags
        and "TIME_FLOAT" not in r.flags
        and r.starts <= wall < r.ends
        and (last is None or "ALL_NODES" in r.flags or (nodes and nodes <= r.nodes))
    ]


def _get_end_nodes(last: GoneJob) -> frozenset[str]:
    return frozenset(
        _expand_nodes(last.end.nodes if last.end else "") or _expand_nodes(last.seen.nodes)
    )


def _expand_nodes(nodes: str) -> Sequence[str]:
    try:
        return expand_hostlist(nodes)
    except Invalid:  # the stored list was cut, because it was too long
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
    """The memory, with the delays of jobs that have followed the last end.

    Such a job was submitted since then, or started and ended between two runs, or is the same job
    requeued. Jobs that sentinel itself has submitted again do not count. `before` and `memory` are
    the memories before and after reading the queue. `told` is when the training was last reported.
    """
    last = last_run(before)
    if last is not None and any(job.job_id == last.seen.job_id for job in jobs):
        at = now.wall // SECOND
        told_at = _get_told_time_s(told, last, at)
        requeued = SubmitDelay(get_elapsed_s(last.at, now), at, told_at > 0, True, told_at)
        return _with_delay(memory, last, requeued)
    unseen = sorted(_find_unseen_runs(before, memory, now), key=recency_key)
    arrays = {_get_submission_id(last)} if last else set()
    for number, run in enumerate(unseen):
        if _get_submission_id(run) in arrays:
            continue  # it was submitted with the one before
        arrays.add(_get_submission_id(run))
        starts = [(run.started_at_s or 0, None)]
        memory = _learn_delay(before, memory, unseen[number:], starts, told, host)
    return _learn_delay(before, memory, (), [(j.submitted or 0, j) for j in jobs], told, host)


def _learn_delay(
    before: Memory,
    memory: Memory,
    later: Sequence[GoneJob],
    starts: Sequence[tuple[int, Job | None]],
    told: Instant | None,
    host: HostFinder,
) -> Memory:
    """The memory, with the delay after the last end that is not in `later`, if one of `starts`
    followed it.

    `starts` are times of submission. For a job that no run saw, it is the time of its start.
    """
    last = last_run(structs.replace(memory, gone=[g for g in memory.gone if g not in later]))
    if last is None or last.followed or not last.asked:
        return memory
    if any(one.job == last.seen.id for one in memory.revived):
        return memory
    seen = before.alive or last.at  # a forgotten job ended after it was last seen running
    ended = (last.end.ended if last.end else None) or seen.wall // SECOND
    # Other jobs may have come before a job that started later than this, but Slurm no longer knows
    # them.
    since = [
        (at, job)
        for at, job in starts
        if at >= ended - SUBMITTED_BEFORE_END_S and (job or at <= ended + PLANNED_GAP_S)
    ]
    if not since:
        return memory
    at, job = min(since, key=lambda one: one[0])
    automatic = at < ended or (job is not None and _is_from_node(host(job), last))
    gone = tuple(structs.replace(g, followed=True) if g is last else g for g in memory.gone)
    told_at = _get_told_time_s(told, last, at)
    delay = SubmitDelay(max(0.0, float(at - ended)), at, told_at > 0, automatic, told_at)
    return _with_delay(structs.replace(memory, gone=gone), last, delay)


def _is_from_node(host: str, last: GoneJob) -> bool:
    """Whether the host is a node of the job. Slurm may know the node with or without its domain."""
    return not {host, host.partition(".")[0]}.isdisjoint(_get_end_nodes(last) - {""})


def _get_told_time_s(told: Instant | None, last: GoneJob, submitted: int) -> int:
    """When the last message was sent, if that was after this end and before the submission.
    Otherwise 0."""
    if told is None or told.wall < last.at.wall or told.wall // SECOND > submitted:
        return 0
    return told.wall // SECOND


def _find_unseen_runs(before: Memory, memory: Memory, now: Instant) -> list[GoneJob]:
    """Jobs that started and ended between this run and the one before."""
    known = {s.job_id for s in before.seen} | {g.seen.job_id for g in before.gone}
    return [g for g in memory.gone if g.has_run and g.at == now and g.seen.job_id not in known]


def _get_submission_id(gone: GoneJob) -> str:
    """What all elements of an array have in common."""
    return gone.seen.array_id or gone.seen.job_id


def _with_delay(memory: Memory, last: GoneJob, delay: SubmitDelay) -> Memory:
    kind = get_end_kind(last)
    kept = (*memory.delays.get(kind, ()), delay)[-MAX_DELAYS:]
    return structs.replace(memory, delays={**memory.delays, kind: kept})
