"""A second look before a training is said not to run: what Slurm remembers of its jobs.

A list of jobs may be cut where nobody sees it, and a job may have begun and died between two
looks. So Slurm is asked once more, about all jobs that are missing and all names in one question.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from msgspec import Struct, structs

from sentinel.checks.job.ends import is_completed, recency_key
from sentinel.checks.job.memory import MAX_GONE_JOBS, GoneJob, Memory, SeenJob
from sentinel.checks.job.rhythm import SECOND_LOOK_S
from sentinel.checks.job.settings import JobSettings
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job, JobPast, JobRun
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Context
from sentinel.core.text import visible
from sentinel.slurm.job_states import AWAY, REVOKED, Phase, state_phase

NAME_LOOKBACK_S = 86400.0
"""Seconds that accounting is searched for a name of which nothing was seen before."""

RECALL_PERIOD_S = 240.0
"""Seconds after which one that is dead is looked for by name again: slurmctld forgets a job that
is over after 300 (slurm.conf(5), MinJobAge)."""

CLOSE_LOOK_AGE_S = SECOND_LOOK_S - 6.0
"""Seconds after a death from which on it is looked for by name too, until it may be told: what came
after it may have died between two looks."""

ACCOUNTING_LAG_S = 60.0
"""Seconds after which accounting is believed that has no row of a job, or says that it runs, while
slurmctld does not know it."""

END_RECORD_LAG_S = 120.0
"""Seconds in which accounting may come to know of an end: slurmctld sends its records on later."""


class RecalledMemories(Struct, frozen=True):
    """The memories with what Slurm remembers; and why of some it cannot be said that they are
    gone."""

    memories: dict[str, Memory]
    doubts: dict[str, str] = {}


def recall_memories(
    memories: Mapping[str, Memory],
    alive: Container[str],
    settings: JobSettings,
    users: Collection[str] | None,
    ctx: Context,
    *,
    first: bool = False,
) -> RecalledMemories:
    """The second look. `alive`: the subjects of which something is in the queue; `users`: whose
    jobs are meant, None: everybody's; `first`: nothing that is meant was ever seen.

    A question that fails is asked again in the next run; until then nothing is said to be gone
    that was there before, and what two runs have not seen is believed to be gone.
    """
    now = ctx.now
    asks = {s for s, memory in memories.items() if _needs_recall(memory, s not in alive, now)}
    looked = {s: _with_look_time(memory, s in alive, now) for s, memory in memories.items()}
    if not (asks or first):
        return RecalledMemories(
            looked, {s: _describe_elsewhere(m.away) for s, m in looked.items() if m.away}
        )
    dead = {s for s in asks if s not in alive}
    try:
        past = _read_past_jobs(
            [memories[s] for s in asks], [memories[s] for s in dead], settings, ctx
        )
    except CannotTell as error:
        new = (s for s in dead if _is_newly_missing(memories[s], now))
        doubtful = [settings.subject] if first and not asks else new
        return RecalledMemories(looked, dict.fromkeys(doubtful, f"{error}; {_MISSING_REASON}"))
    runs = _group_runs(past.runs, settings, users)
    doubts = {s: why for s in dead if (why := _describe_still_alive(memories[s], runs.get(s, ())))}
    if (
        first
        and not dead
        and (away := _find_job_elsewhere(Memory(), [r for some in runs.values() for r in some]))
    ):
        doubts[settings.subject] = _describe_elsewhere(away)
    for subject in asks - set(doubts):
        away = (
            _find_job_elsewhere(memories[subject], runs.get(subject, ())) if subject in dead else ""
        )
        memory = structs.replace(memories[subject], away=away)
        known = _with_known_ends(memory, past, now)
        found = _find_unseen_ends(known, runs.get(subject, ()), now) if subject in dead else ()
        looked[subject] = structs.replace(
            known,
            gone=_merge_gone_jobs(known.gone, found),
            looked=now,
            recalled=memory.recalled if past.unasked else now,
        )
    doubts |= {s: _describe_elsewhere(m.away) for s, m in looked.items() if m.away}
    if settings.many:
        looked |= _find_unseen_trainings(
            memories, {s: r for s, r in runs.items() if s not in alive}, now
        )
    return RecalledMemories(looked, doubts)


def is_any_in_queue(jobs: Iterable[Job]) -> bool:
    """Whether any of them is not over."""
    return any(state_phase(job.state) is not Phase.OVER for job in jobs)


_MISSING_REASON = "that its jobs are not in the list alone is not believed the first time"


def _needs_recall(memory: Memory, dead: bool, now: Instant) -> bool:
    due = memory.recalled is None or get_elapsed_s(memory.recalled, now) >= RECALL_PERIOD_S
    due = due or any(_needs_closer_look(gone, memory.recalled, now) for gone in memory.gone)
    return any(_is_end_open(gone, now) for gone in memory.gone) or (dead and due)


def _needs_closer_look(gone: GoneJob, recalled: Instant | None, now: Instant) -> bool:
    """Whether this death may be told now, and was not looked for since it may be."""
    before = get_elapsed_s(gone.at, recalled) if recalled else 0.0
    return get_elapsed_s(gone.at, now) >= CLOSE_LOOK_AGE_S and before < SECOND_LOOK_S


def _is_end_open(gone: GoneJob, now: Instant) -> bool:
    """Whether something about its end is not known yet: accounting, which alone knows who has
    cancelled it, is behind slurmctld by some seconds."""
    end = gone.end
    unsaid = end is not None and end.state == "CANCELLED" and not end.cancelled_by
    return not gone.asked or (unsaid and get_elapsed_s(gone.at, now) < END_RECORD_LAG_S)


def _is_newly_missing(memory: Memory, now: Instant) -> bool:
    """Whether it was not seen to be missing before this run."""
    return memory.looked is None or any(gone.at == now for gone in memory.gone)


def _read_past_jobs(
    asks: Sequence[Memory], dead: Sequence[Memory], settings: JobSettings, ctx: Context
) -> JobPast:
    ids = {
        gone.seen.job_id for memory in asks for gone in memory.gone if _is_end_open(gone, ctx.now)
    }
    names = {gone.seen.name for memory in dead for gone in memory.gone}
    if settings.name and dead:
        names.add(settings.name)
    since = max((_get_lookback_s(memory, ctx.now) for memory in dead), default=NAME_LOOKBACK_S)
    return ctx.slurm.past(ids, names, since)


def _get_lookback_s(memory: Memory, now: Instant) -> float:
    return (
        NAME_LOOKBACK_S
        if memory.looked is None
        else min(NAME_LOOKBACK_S, get_elapsed_s(memory.looked, now) + RECALL_PERIOD_S)
    )


def _group_runs(
    runs: Iterable[JobRun], settings: JobSettings, users: Collection[str] | None
) -> dict[str, list[JobRun]]:
    """The runs that the check means, as it would have meant them in the queue. A size cannot be
    judged of a job that is over: what is found by name alone may be another one."""
    found: dict[str, list[JobRun]] = {}
    for run in () if settings.has_size_limit else runs:
        if (
            settings.is_watched_name(run.name)
            and run.id.partition("+")[2] in ("", "0")
            and (users is None or run.user in users)
            and (settings.partition in (None, *run.partition.split(",")))
        ):
            found.setdefault(settings.subject_of(run.user, run.name), []).append(run)
    return found


def _with_look_time(memory: Memory, alive: bool, now: Instant) -> Memory:
    return structs.replace(memory, looked=now, away="" if alive else memory.away)


def _describe_elsewhere(job_id: str) -> str:
    return f"job {visible(job_id)} {AWAY}"


def _find_job_elsewhere(memory: Memory, runs: Sequence[JobRun]) -> str:
    """The newest job, where another cluster of the federation has it. A cluster that is not its
    origin lists it only among all states, and forgets it soon (seen on 26.05): what was found
    once stays until a newer job is found."""
    if not runs:
        return memory.away
    newest = max(reversed(runs), key=lambda run: run.submitted or 0)
    later = [one for one in memory.gone[:1] if (one.started_at_s or 0) > (newest.submitted or 0)]
    return newest.id if newest.state == REVOKED and not later else ""


def _describe_still_alive(memory: Memory, runs: Sequence[JobRun]) -> str:
    """Why the list of jobs is not believed: one that is missing there is alive."""
    gone = {one.seen.job_id for one in memory.gone}
    for run in runs:
        where = _get_run_phase(run)
        alive = where not in (Phase.OVER, Phase.UNCLEAR)
        # What accounting alone has may be a run whose end never came there.
        if alive and run.source == "squeue" and (run.job_id in gone or not memory.seen):
            return (
                f"squeue's list leaves out job {visible(run.id)}, which is {visible(run.state)} "
                "when Slurm is asked once more: the list is not whole"
            )
    return ""


def _get_run_phase(run: JobRun) -> Phase:
    return state_phase(run.state)


def _with_known_ends(memory: Memory, past: JobPast, now: Instant) -> Memory:
    """With the ends of the jobs that were seen."""
    gone = tuple(
        _with_end(g, memory, past, now) if _is_end_open(g, now) else g for g in memory.gone
    )
    return structs.replace(memory, gone=gone)


def _with_end(gone: GoneJob, memory: Memory, past: JobPast, now: Instant) -> GoneJob:
    runs = [run for run in past.runs if _is_same_job(gone.seen, run)]
    newest = max(runs, key=lambda run: (run.started or 0, run.submitted or 0), default=None)
    if gone.asked and not (newest and newest.cancelled_by):
        return gone
    known = newest is not None and newest.source == "squeue"
    lost = None if known else _find_memory_loss_s(gone.seen, memory, past, now)
    late = past.accounting and get_elapsed_s(gone.at, now) < ACCOUNTING_LAG_S
    if newest is None:
        return structs.replace(
            gone, asked=not (past.unasked or late) or lost is not None, lost=lost
        )
    if _get_run_phase(newest) is not Phase.OVER or _is_older(newest, gone.seen):
        # slurmctld does not know it: what accounting alone says to live is a runaway job.
        runaway = newest.source == "sacct" and _is_live_run(newest) and past.accounting and not late
        return structs.replace(
            gone, asked=lost is not None or runaway, lost=lost, runaway=newest.state * runaway
        )
    return structs.replace(
        gone, seen=_with_run_identity(gone.seen, newest), asked=True, end=newest.run_end, lost=lost
    )


def _is_live_run(run: JobRun) -> bool:
    return _get_run_phase(run) not in (Phase.OVER, Phase.UNCLEAR)


def _with_run_identity(seen: SeenJob, run: JobRun) -> SeenJob:
    """The row of an array that waits has the id of the element that begins last."""
    if not run.id or run.id == seen.id:
        return seen
    return structs.replace(seen, id=run.id, task=run.id.partition("_")[2][:20])


def _is_same_job(seen: SeenJob, run: JobRun) -> bool:
    """Whether it is that very job: ids are given anew once slurmctld has lost its memory."""
    begun = seen.started is not None and run.started == seen.started
    named = run.name in ("", seen.name) or begun
    return run.job_id == seen.job_id and named and _same_user(run.user, seen.user)


def _same_user(one: str, other: str) -> bool:
    """Whether two names may be one person's: a host that cannot look a uid up prints `nobody`, or
    the number."""
    unknown = ("", "nobody", "nfsnobody")
    return one == other or any(name in unknown or name.isdigit() for name in (one, other))


def _is_older(run: JobRun, seen: SeenJob) -> bool:
    """Whether it is the run before a requeue: accounting is behind at times, slurmctld never."""
    return run.source == "sacct" and bool(
        seen.has_run and seen.started and run.started and run.started < seen.started
    )


def _find_memory_loss_s(seen: SeenJob, memory: Memory, past: JobPast, now: Instant) -> int | None:
    """When slurmctld started, if it has lost its memory of the job; else None.

    It was started after the job was last seen in the queue, and either gives ids again that it
    had given, or does not know what it would still have to remember (slurmctld(8), -c).
    """
    looked, booted = memory.looked, past.booted
    if looked is None or booted is None or booted * SECOND < looked.wall - SECOND:
        return None
    again = past.next_id is not None and seen.job_id.isdigit() and past.next_id <= int(seen.job_id)
    return booted if again or get_elapsed_s(looked, now) < past.keeps else None


def _find_unseen_ends(memory: Memory, runs: Sequence[JobRun], now: Instant) -> tuple[GoneJob, ...]:
    """Those that began and died between two looks, or before the first; and of an array that is
    gone the elements that were never seen."""
    known = {one.seen.job_id for one in memory.gone}
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
    memories: Mapping[str, Memory], runs: Mapping[str, Sequence[JobRun]], now: Instant
) -> dict[str, Memory]:
    """The trainings that began and failed since the last look: each is a subject of its own. What
    never had nodes is none: sbatch, or who cancelled it, has told its owner."""
    looked = max((m.looked.wall // SECOND for m in memories.values() if m.looked), default=0)
    known = {one.seen.job_id for m in memories.values() for one in m.gone}  # by another name
    found = {
        subject: _find_unseen_ends(
            Memory(),
            [run for run in some if (run.ended or 0) >= looked and run.job_id not in known],
            now,
        )
        for subject, some in runs.items()
        if subject not in memories
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
    """What began last comes first; too many completed elements push no failed one out."""
    if not found:
        return tuple(known)
    every = sorted((*known, *found), key=recency_key, reverse=True)
    kept = sorted(every[1:], key=is_completed)[: MAX_GONE_JOBS - 1]
    return (every[0], *(one for one in every[1:] if one in kept))
