"""Selects the watched jobs: by name or pattern, by size, and by user: names, groups, or
everybody."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from zlib import crc32

from sentinel import proc
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_document
from sentinel.core.ports import Context, Slurm
from sentinel.core.text import visible
from sentinel.slurm.job_index import QueuedJobs, index_jobs
from sentinel.slurm.job_states import Phase, find_unknown_state, is_leader, state_phase, uses_nodes
from sentinel.user_files.identity import user_name

EVERYBODY = "*"
GROUP_MARK = "group:"
GETENT_LIMIT_S = 5.0  # seconds to find the members of a group
MAX_NAME_CHARS = 128  # characters of a job's name in a subject
RECENT_S = 60.0  # seconds of accounting; slurmctld itself knows the running jobs


def names_one_user(users: Sequence[str]) -> bool:
    """Whether only one user is meant. Then names of jobs cannot collide."""
    return len(users) <= 1 and not any(u == EVERYBODY or u.startswith(GROUP_MARK) for u in users)


def watched_users(users: Sequence[str], limit: float = GETENT_LIMIT_S) -> frozenset[str] | None:
    """The names of the configured `users`. None for everybody.

    getent(1) finds the members of groups, in a child process with `limit` seconds, because a
    directory service may hang. Raises CannotTell.
    """
    if EVERYBODY in users:
        return None
    if not users:
        return frozenset([own_user_name()])
    groups = [u.removeprefix(GROUP_MARK) for u in users if u.startswith(GROUP_MARK)]
    names = {u for u in users if not u.startswith(GROUP_MARK)}
    members = set[str]().union(*(_group_members(g, limit) for g in groups))
    return frozenset(names | (members - _find_departed(members, limit)))


def departed_members(users: Sequence[str], limit: float = GETENT_LIMIT_S) -> frozenset[str]:
    """Members of the groups among `users` whom the directory service does not know any more,
    although their group still lists them. Raises CannotTell."""
    groups = [u.removeprefix(GROUP_MARK) for u in users if u.startswith(GROUP_MARK)]
    members = set[str]().union(*(_group_members(g, limit) for g in groups))
    return frozenset(_find_departed(members, limit))


def _find_departed(members: Collection[str], limit: float) -> set[str]:
    """The members whom the directory service does not know. squeue would refuse a list with one of
    them. Empty if it knows none of them, because then the service itself does not answer."""
    if not members:
        return set()
    known = {row[0] for row in _ask_getent(["passwd", *sorted(members)], limit)}
    return set(members) - known if known & set(members) else set()


def is_meant_job(name: str | None, match: re.Pattern[str] | None, job: str) -> bool:
    """Whether a job with the name `job` is meant. The whole name counts. If neither a name nor a
    pattern is given, every job is meant."""
    return bool(match.fullmatch(job)) if match else not name or job == name


def find_meant_names(
    name: str | None, match: re.Pattern[str] | None, queue: QueuedJobs
) -> Collection[str]:
    """The names in the queue for which `is_meant_job` is true."""
    if match is None and name:
        return (name,)
    every = queue.places_by_name
    return [one for one in every if match.fullmatch(one)] if match else every.keys()


def training_subject(whose: Sequence[str], user: str, name: str) -> str:
    """The subject of one of several trainings. It is never a job id, and the trainings of two users
    never have the same one."""
    text = visible(name) or "(no name)"
    if len(text) > MAX_NAME_CHARS:  # cut, but still different from others with the same beginning
        text = f"{text[:MAX_NAME_CHARS]}…{crc32(name.encode('utf-8', 'surrogatepass')):08x}"
    return text if names_one_user(whose) else f"{visible(user)}/{text}"


def large_jobs(
    mine: Sequence[Job], min_gpus: int, min_nodes: int, jobs: Sequence[Job], slurm: Slurm
) -> list[Job]:
    """Those of `mine` (among all the `jobs`) with at least this many GPUs and nodes, or with an unknown number
    of GPUs. The sizes of the parts of a heterogeneous job are added. Raises CannotTell."""
    parts = index_jobs(jobs).parts_by_whole_id

    def parts_of(job: Job) -> Sequence[Job]:
        whole, plus, _ = job.id.partition("+")
        return parts[whole] if plus else (job,)

    mine = [job for job in mine if sum(one.node_count for one in parts_of(job)) >= min_nodes]
    if not min_gpus or not mine:
        return list(mine)
    told = count_gpus(mine, slurm)
    sizes = [[told.get(one.job_id, 0) for one in parts_of(job)] for job in mine]
    large = (None in size or sum(filter(None, size)) >= min_gpus for size in sizes)
    return list(compress(mine, large))


def count_gpus(jobs: Sequence[Job], slurm: Slurm) -> Mapping[str, int | None]:
    """How many GPUs jobs have, by job id; without those of `jobs` that have ended since they were
    listed. Anybody may submit and cancel jobs all the time, and that must keep nobody's job from
    being seen. Raises CannotTell if no job at all is told."""
    told = slurm.gpus() if jobs else {}
    if jobs and not told:
        first = visible(jobs[0].id)
        raise CannotTell(f"squeue does not tell the GPUs of {len(jobs)} jobs, such as {first}")
    return told


def running_jobs(
    ctx: Context,
    name: str,
    users: Sequence[str],
    *,
    before: bool = False,
    match: re.Pattern[str] | None = None,
    min_gpus: int = 0,
    min_nodes: int = 0,
) -> list[Job]:
    """The watched jobs that run now. Raises CannotTell.

    `before`: a job with that `name` ran at the last run. Then a list without it is not believed the
    first time.
    """
    whose = watched_users(users, min(GETENT_LIMIT_S, ctx.limit / 4))
    jobs = index_jobs(ctx.slurm.jobs())
    mine = [
        job
        for job in jobs.find_named(find_meant_names(name, match, jobs))
        if is_leader(job) and (whose is None or job.user in whose)
    ]
    if min_gpus or min_nodes:
        mine = large_jobs(mine, min_gpus, min_nodes, jobs, ctx.slurm)
    found = [job for job in mine if uses_nodes(job)]
    if not found and (why := find_unknown_state(mine)):
        raise CannotTell(visible(why))
    if not found and name and (before or ctx.one_shot):
        small = {job.job_id for job in jobs} if min_gpus or min_nodes else ()
        refuse_lost(ctx, name, whose, small)
    return found


def refuse_lost(
    ctx: Context, name: str, whose: Collection[str] | None, known: Collection[str] = ()
) -> None:
    """Raises CannotTell where Slurm, asked once more for all that it remembers, has a job of this
    name (or id) that runs and is not among the `known`: the list was not whole."""
    for run in ctx.slurm.past((), (name,), RECENT_S).runs:
        mine = name in (run.name, run.id, run.job_id) and (whose is None or run.user in whose)
        if mine and state_phase(run.state) is Phase.RUNNING and run.job_id not in known:
            raise CannotTell(
                f"job {run.id} runs and is not in the list of jobs: the list is not whole"
            )


def refuse_cut(ctx: Context, before: Collection[str]) -> None:
    """Raises CannotTell where a job of these ids, which ran at the last look, is not in the list
    of jobs, and Slurm, asked once more, says that it runs."""
    missing = set(before) - {job.job_id for job in ctx.slurm.jobs()}
    for run in ctx.slurm.past(missing, (), RECENT_S).runs if missing else ():
        if run.job_id in missing and state_phase(run.state) is Phase.RUNNING:
            raise CannotTell(
                f"job {visible(run.id)} runs and is not in the list of jobs: the list is not whole"
            )


def own_user_name() -> str:
    """Who runs this: the name, or the number of a user that has none."""
    return user_name(os.geteuid())


def _group_members(group: str, limit: float) -> set[str]:
    """Those the group lists and those whose primary group it is (getent group omits them)."""
    found = _ask_getent(["group", group], limit)
    if not found:
        raise CannotTell(
            f"users: there is no group {visible(group)!r} on this host; correct `users`"
        )
    gid, listed = found[0][2], found[0][3]
    primary = {row[0] for row in _ask_getent(["passwd"], limit) if row[3:4] == [gid]}
    return primary.union(filter(None, listed.split(",")))


def _ask_getent(what: list[str], limit: float) -> list[list[str]]:
    done = proc.run(["getent", *what], limit=limit)
    if done.code not in (0, 2):  # 2: one or more names could not be found (getent(1))
        raise CannotTell(f"users: `getent {what[0]}` failed with exit code {done.code}")
    lines = decode_document(done.out).split("\n")
    return [fields for fields in (line.split(":") for line in lines) if len(fields) >= 4]
