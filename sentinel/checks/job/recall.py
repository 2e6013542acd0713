"""Asks Slurm again before a training is reported as not running. A list of jobs may be incomplete
without any sign of it, and a job may have started and died between two runs. So Slurm is asked once
more, for all missing jobs and all names in one question."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from itertools import chain

from msgspec import Struct, structs

from sentinel.checks.job.ends import is_completed, recency_key
from sentinel.checks.job.memory import MAX_GONE_JOBS, GoneJob, Memory, SeenJob
from sentinel.checks.job.past_runs import group_runs
from sentinel.checks.job.rhythm import EARLY_LOOK_SHARE
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.succession import find_wait_since_death
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job, JobPast, JobRun
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Context
from sentinel.core.text import visible
from sentinel.slurm.job_states import AWAY, REVOKED, Phase, state_phase

NAME_LOOKBACK_S = 86400.0
"""How many seconds of accounting are searched for a name that was never seen."""

RECALL_PERIOD_S = 25.0
"""Seconds until a dead training is searched by name again. Looks come each 30 to 60 s, so each of
them finds the job that was submitted after a message and has died already."""

LOOKBACK_S = 240.0
"""Seconds before the last look in which accounting is searched too. Accounting learns of an end with
a delay."""

CLOSE_LOOK_LEAD_S = 6.0
"""This many seconds before a death may be reported, it is searched by name too. A later job may
have died between two runs."""

SWEEP_PERIOD_S = 100.0
"""Seconds between two searches for trainings that started and died between two runs. They are
reported within two minutes."""

MAX_CLOCK_SKEW_S = 30.0
"""Seconds by which the clocks of slurmctld's host and this host may differ."""

ACCOUNTING_LAG_S = 60.0
"""Seconds after which accounting is believed about a job that slurmctld does not know, if it has no
row of it, or says that it runs."""

END_RECORD_LAG_S = 120.0
"""Seconds until accounting may learn of an end, because slurmctld sends its records with a delay.
"""


class RecalledMemories(Struct, frozen=True):
    """The memories, with what Slurm remembers. `doubts` says why some trainings cannot be called
    gone. `swept` says whether all that Slurm remembers was searched."""

    memories: dict[str, Memory]  # What is remembered, by subject.
    doubts: dict[str, str] = {}  # Why it cannot be called gone, by subject.
    swept: bool = False


def recall_memories(
    memories: Mapping[str, Memory],
    alive: Container[str],
    settings: JobSettings,
    users: Collection[str] | None,
    ctx: Context,
    *,
    first: bool = False,
    swept: Instant | None = None,
) -> RecalledMemories:
    """Ask Slurm about jobs that are missing from the queue.

    `alive` are subjects with jobs in the queue. `users` are those whose jobs are meant, or None.
    `first`: no such job was ever seen. `swept`: when trainings that started and died between two
    runs were last searched for, or None.

    If Slurm does not answer, the next run asks again, and until then nothing is called gone. But a
    job that two runs did not see is believed to be gone."""
    now = ctx.now
    back = {s for s, memory in memories.items() if s in alive and _has_come_back(memory, now)}
    asks = back | _find_due_subjects(memories, alive, settings, ctx)
    looked = {s: _with_look_time(memory, s in alive, now) for s, memory in memories.items()}
    sweeps = swept is not None and get_elapsed_s(swept, now) >= SWEEP_PERIOD_S
    if not (asks or first or sweeps):
        return RecalledMemories(looked, _describe_all_elsewhere(looked))
    dead = {s for s in asks if s not in alive}
    try:
        past = _read_past_jobs(
            [memories[s] for s in asks],
            [memories[s] for s in dead | back],
            settings,
            ctx,
            failed_within=get_elapsed_s(swept, now) + END_RECORD_LAG_S if swept else 0.0,
        )
    except CannotTell as error:
        new = [s for s in dead if _is_newly_missing(memories[s], now)]
        doubtful = new if asks or not first else [settings.subject]
        return RecalledMemories(looked, dict.fromkeys(doubtful, f"{error}; {_MISSING_REASON}"))
    runs = group_runs(past.runs, settings, users)
    doubts = {s: why for s in dead if (why := _describe_still_alive(memories[s], runs.get(s, ())))}
    if first and not dead and (away := _find_job_elsewhere(Memory(), [*chain(*runs.values())])):
        doubts[settings.subject] = _describe_elsewhere(away)
    for subject in asks - set(doubts):
        some = runs.get(subject, ()) if subject in dead | back else ()
        found = _recall_memory(memories[subject], some, past, now)
        looked[subject] = structs.replace(found, away="") if subject in alive else found
    doubts |= _describe_all_elsewhere(looked)
    if settings.many:
        looked |= _find_unseen_trainings(memories, alive, runs, now, swept)
    return RecalledMemories(looked, doubts, swept=True)


def _find_due_subjects(
    memories: Mapping[str, Memory], alive: Container[str], settings: JobSettings, ctx: Context
) -> set[str]:
    """The subjects whose past is asked for in this run."""
    return {s for s, m in memories.items() if _needs_recall(m, s not in alive, settings, ctx)}


def _recall_memory(memory: Memory, runs: Sequence[JobRun], past: JobPast, now: Instant) -> Memory:
    """The memory, with Slurm's answers about the past. `runs` are the runs with its name, if they
    were asked for."""
    away = _find_job_elsewhere(memory, runs)
    known = _with_known_ends(structs.replace(memory, away=away), past, now)
    known = _with_unseen_restarts(known, runs, now)
    found = _find_unseen_ends(known, runs, now)
    return structs.replace(
        known,
        gone=_merge_gone_jobs(known.gone, found),
        looked=now,
        recalled=now if past.was_asked(*(g.seen.name for g in memory.gone)) else memory.recalled,
    )


def is_any_in_queue(jobs: Iterable[Job]) -> bool:
    """Whether any of the jobs is not over."""
    return any(state_phase(job.state) is not Phase.OVER for job in jobs)


_MISSING_REASON = "that its jobs are not in the list alone is not believed the first time"


def _needs_recall(memory: Memory, dead: bool, settings: JobSettings, ctx: Context) -> bool:
    recalled, now = memory.recalled, ctx.now
    due = recalled is None or get_elapsed_s(recalled, now) >= RECALL_PERIOD_S
    due = due or _needs_closer_look(memory, settings.gap if ctx.for_ is None else ctx.for_, now)
    return any(_is_end_open(gone, now) for gone in memory.gone) or (dead and due)


def _needs_closer_look(memory: Memory, gap: float | None, now: Instant) -> bool:
    """Whether the death may be reported now and was not searched for since then."""
    if memory.dead is None or memory.recalled is None:
        return False
    wait = find_wait_since_death(memory, gap).seconds
    between = get_elapsed_s(memory.looked, now) if memory.looked else 0.0
    lead = max(CLOSE_LOOK_LEAD_S, EARLY_LOOK_SHARE * min(between, wait))
    near = get_elapsed_s(memory.dead, now) >= wait - lead
    return near and get_elapsed_s(memory.dead, memory.recalled) < wait


def _has_come_back(memory: Memory, now: Instant) -> bool:
    """Whether a job has appeared after a death. Another may have come and gone before it."""
    return memory.dead is not None and any(one.first == now for one in memory.seen)


def _is_end_open(gone: GoneJob, now: Instant) -> bool:
    """Whether its end is not fully known. Accounting, which is late, knows who cancelled it."""
    end = gone.end
    unsaid = end is not None and end.state == "CANCELLED" and not end.cancelled_by
    return not gone.asked or (unsaid and get_elapsed_s(gone.at, now) < END_RECORD_LAG_S)


def _is_newly_missing(memory: Memory, now: Instant) -> bool:
    """Whether a job was first found missing in this run, or no run has looked before."""
    return memory.looked is None or any(gone.at == now for gone in memory.gone)


def _read_past_jobs(
    asks: Sequence[Memory],
    dead: Sequence[Memory],
    settings: JobSettings,
    ctx: Context,
    *,
    failed_within: float,
) -> JobPast:
    ids = {
        gone.seen.job_id for memory in asks for gone in memory.gone if _is_end_open(gone, ctx.now)
    }
    names = {gone.seen.name for memory in dead for gone in memory.gone}
    if settings.name and dead:
        names.add(settings.name)
    since = max((_get_lookback_s(memory, ctx.now) for memory in dead), default=NAME_LOOKBACK_S)
    return ctx.slurm.past(ids, names, since, failed_within=failed_within)


def _get_lookback_s(memory: Memory, now: Instant) -> float:
    """Seconds of accounting to search: since it last answered about a dead training."""
    answered = memory.looked
    if memory.dead is not None:
        times = (memory.dead, memory.recalled or memory.dead)
        answered = max(times, key=lambda at: at.wall)
    if answered is None:
        return NAME_LOOKBACK_S
    return min(NAME_LOOKBACK_S, get_elapsed_s(answered, now) + LOOKBACK_S)


def _with_look_time(memory: Memory, alive: bool, now: Instant) -> Memory:
    return structs.replace(memory, looked=now, away="" if alive else memory.away)


def _describe_all_elsewhere(memories: Mapping[str, Memory]) -> dict[str, str]:
    return {s: _describe_elsewhere(memory.away) for s, memory in memories.items() if memory.away}


def _describe_elsewhere(job_id: str) -> str:
    return f"job {visible(job_id)} {AWAY}"


def _find_job_elsewhere(memory: Memory, runs: Sequence[JobRun]) -> str:
    """The id of the newest job, if another cluster of the federation has it. A cluster that is not
    the job's origin lists it only with `--states=all`, and soon forgets it (seen on 26.05). So an
    id that was found stays until a newer job is found."""
    if not runs:
        return memory.away
    newest = max(reversed(runs), key=lambda run: run.submitted or 0)
    later = [one for one in memory.gone[:1] if (one.started_at_s or 0) > (newest.submitted or 0)]
    return newest.id if newest.state == REVOKED and not later else ""


def _describe_still_alive(memory: Memory, runs: Sequence[JobRun]) -> str:
    """Why the list of jobs is not believed: a job that is missing in it is alive."""
    gone = {one.seen.job_id for one in memory.gone}
    for run in runs:
        where = _get_run_phase(run)
        alive = where not in (Phase.OVER, Phase.UNCLEAR)
        # A run that only accounting knows may have ended without a record of the end.
        if alive and run.source == "squeue" and (run.job_id in gone or not memory.seen):
            return (
                f"squeue's list leaves out job {visible(run.id)}, which is {visible(run.state)} "
                "when Slurm is asked once more: the list is not whole"
            )
    return ""


def _get_run_phase(run: JobRun) -> Phase:
    return state_phase(run.state)


def _with_known_ends(memory: Memory, past: JobPast, now: Instant) -> Memory:
    """The memory, with the ends of jobs that were seen."""
    gone = tuple(
        _with_end(g, memory, past, now) if _is_end_open(g, now) else g for g in memory.gone
    )
    return structs.replace(memory, gone=gone)


def _with_end(gone: GoneJob, memory: Memory, past: JobPast, now: Instant) -> GoneJob:
    # accounting's REQUEUED is a run that is over; the one after it has a record of its own
    runs = [r for r in past.runs if _is_same_job(gone.seen, r) and not _was_requeued(r)]
    newest = max(runs, key=_age_key, default=None)
    if gone.asked and not (newest and newest.cancelled_by):
        return gone
    known = newest is not None and newest.source == "squeue"
    lost = None if known else _find_memory_loss_s(gone.seen, memory, past, now)
    late = past.accounting and get_elapsed_s(gone.at, now) < ACCOUNTING_LAG_S
    if newest is None:
        return structs.replace(
            gone,
            asked=(past.was_asked(gone.seen.job_id) and not late) or lost is not None,
            lost=lost,
        )
    if _get_run_phase(newest) is not Phase.OVER or _is_older(newest, gone.seen):
        # slurmctld does not know the job. If accounting alone says that it runs, it is a runaway
        # job.
        runaway = newest.source == "sacct" and _is_live_run(newest) and past.accounting and not late
        return structs.replace(
            gone, asked=lost is not None or runaway, lost=lost, runaway=newest.state * runaway
        )
    if lost is not None and newest.ended is not None and newest.ended < lost:
        lost = None  # it was booked before: ids begin anew at MaxJobId too
    return structs.replace(
        gone, seen=_with_run_identity(gone.seen, newest), asked=True, end=newest.run_end, lost=lost
    )


def _was_requeued(run: JobRun) -> bool:
    return run.source == "sacct" and run.state == "REQUEUED"


def _age_key(run: JobRun) -> tuple[int, int]:
    """Sorts the runs of a job by age. Each requeue gives it a new time of submission, but one that never
    started has no start."""
    return run.submitted or run.started or 0, run.started or 0


def _is_live_run(run: JobRun) -> bool:
    return _get_run_phase(run) not in (Phase.OVER, Phase.UNCLEAR)


def _with_run_identity(seen: SeenJob, run: JobRun) -> SeenJob:
    """The job with the run's id. A waiting array has the id of its last element to start."""
    if not run.id or run.id == seen.id:
        return seen
    return structs.replace(seen, id=run.id, task=run.id.partition("_")[2][:20])


def _is_same_job(seen: SeenJob, run: JobRun) -> bool:
    """Whether the run belongs to this job. The same id may belong to another job, if slurmctld has
    lost its memory and started counting again."""
    begun = seen.started is not None and run.started == seen.started
    named = run.name in ("", seen.name) or begun
    return run.job_id == seen.job_id and named and _same_user(run.user, seen.user)


def _same_user(one: str, other: str) -> bool:
    """Whether both names may mean one person. For an unknown uid a host prints `nobody` or a
    number."""
    unknown = ("", "nobody", "nfsnobody")
    return one == other or any(name in unknown or name.isdigit() for name in (one, other))


def _is_older(run: JobRun, seen: SeenJob) -> bool:
    """Whether it is the run before a requeue. Only accounting can be behind, slurmctld never is."""
    return run.source == "sacct" and bool(
        seen.has_run and seen.started and run.started and run.started < seen.started
    )


def _find_memory_loss_s(seen: SeenJob, memory: Memory, past: JobPast, now: Instant) -> int | None:
    """When slurmctld started, if it has lost its memory of the job; otherwise None. It was started
    after the job was last seen in the queue. It also gives out ids again that it gave before, or it
    does not know a job that it should still remember (slurmctld(8), -c)."""
    looked, booted = memory.looked, past.booted
    if looked is None or booted is None or booted * SECOND < looked.wall - SECOND:
        return None
    again = past.next_id is not None and seen.job_id.isdigit() and past.next_id <= int(seen.job_id)
    return booted if again or get_elapsed_s(looked, now) < past.keeps else None


def _with_unseen_restarts(memory: Memory, runs: Sequence[JobRun], now: Instant) -> Memory:
    """The memory, with the ends of jobs that were requeued, and ended again between two runs."""
    gone = tuple(_with_unseen_restart(one, runs, now) for one in memory.gone)
    return structs.replace(memory, gone=gone)


def _with_unseen_restart(gone: GoneJob, runs: Sequence[JobRun], now: Instant) -> GoneJob:
    before = gone.started_at_s
    if gone.end is None or before is None:
        return gone
    later = [
        run
        for run in runs
        if _is_same_job(gone.seen, run)
        and run.id == gone.seen.id
        and _get_run_phase(run) is Phase.OVER
        and (run.started or 0) > before
    ]
    newest = max(later, key=lambda run: run.started or 0, default=None)
    if newest is None:
        return gone
    seen = structs.replace(_make_seen_job(newest, now), how=gone.seen.how)
    return GoneJob(seen=seen, at=now, asked=True, end=newest.run_end, how=gone.how)


def _find_unseen_ends(memory: Memory, runs: Sequence[JobRun], now: Instant) -> tuple[GoneJob, ...]:
    """Jobs that started and died between two runs, or before the first run. If an array is gone,
    also its elements that were never seen."""
    known = {one.job_id for one in (*memory.seen, *(gone.seen for gone in memory.gone))}
    newest = max((one.started_at_s or 0 for one in memory.gone if one.has_run), default=0)
    arrays = {one.seen.array_id for one in memory.gone}
    return tuple(
        GoneJob(seen=_make_seen_job(run, now), at=now, asked=True, end=run.run_end)
        for run in runs
        if run.job_id not in known
        and _get_run_phase(run) is Phase.OVER
        and ((run.ended or 0) > newest or run.array_id in arrays)
    )


def _find_unseen_trainings(
    memories: Mapping[str, Memory],
    alive: Container[str],
    runs: Mapping[str, Sequence[JobRun]],
    now: Instant,
    swept: Instant | None,
) -> dict[str, Memory]:
    """Trainings that started and failed since the last run, each as a subject. Jobs that never had
    nodes are left out. Their owner knows already, from sbatch or because somebody cancelled them.
    """
    known = {one.seen.job_id for m in memories.values() for one in m.gone}  # under another name
    found = {
        subject: _find_unseen_ends(
            Memory(),
            [r for r in some if r.job_id not in known and _ended_since(r, swept, now)],
            now,
        )
        for subject, some in runs.items()
        if subject not in memories and subject not in alive
    }
    failed = {
        subject: gone
        for subject, gone in found.items()
        if any(one.has_run and not is_completed(one) for one in gone)
    }
    return {
        s: Memory(gone=_merge_gone_jobs((), gone), looked=now, recalled=now)
        for s, gone in failed.items()
    }


def _ended_since(run: JobRun, swept: Instant | None, now: Instant) -> bool:
    """Whether it may have ended since then. Accounting learns of an end with a delay, and may not
    know the name of a job that has just ended: it shows `allocation` (seen on 22.05)."""
    booked = run.source == "sacct"
    if booked and (run.ended or 0) > now.wall / SECOND - ACCOUNTING_LAG_S:
        return False
    lag = END_RECORD_LAG_S if booked else MAX_CLOCK_SKEW_S
    return swept is None or (run.ended or 0) >= swept.wall / SECOND - lag


def _make_seen_job(run: JobRun, at: Instant) -> SeenJob:
    return SeenJob(
        id=run.id,
        job_id=run.job_id,
        array_id=run.array_id,
        task=run.id.partition("_")[2][:20],
        name=run.name,
        user=run.user,
        partition=run.partition,
        nodes=run.nodes[:200],
        workdir=run.workdir,
        state=run.state,
        reason="",
        started=run.started,
        first=at,
        since=at,
        waited=0.0,
    )


def _merge_gone_jobs(known: Sequence[GoneJob], found: Sequence[GoneJob]) -> tuple[GoneJob, ...]:
    """Both lists, the latest start first. Completed jobs do not push out failed ones."""
    if not found:
        return tuple(known)
    every = sorted((*known, *found), key=recency_key, reverse=True)
    kept = sorted(every[1:], key=is_completed)[: MAX_GONE_JOBS - 1]
    return (every[0], *(one for one in every[1:] if one in kept))
