"""Which jobs are meant: by name or pattern, by size, and of whom: names, groups, or everybody."""

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from zlib import crc32

from sentinel import proc
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Context, Slurm
from sentinel.core.text import visible
from sentinel.slurm.job_states import Phase, find_unknown_state, is_leader, state_phase, uses_nodes

EVERYBODY = "*"
GROUP_MARK = "group:"
GETENT_LIMIT_S = 5.0  # seconds for finding out who the members of a group are
MAX_NAME_CHARS = 128  # characters of a job's name in a subject
RECENT_S = 60.0  # seconds of accounting: what runs, slurmctld itself knows


def names_one_user(users: Sequence[str]) -> bool:
    """Whether it names one person: then names of jobs cannot collide."""
    return len(users) <= 1 and not any(u == EVERYBODY or u.startswith(GROUP_MARK) for u in users)


def watched_users(users: Sequence[str], limit: float = GETENT_LIMIT_S) -> frozenset[str] | None:
    """The user names that `users` stands for; None for everybody.

    Groups are looked up by getent(1) in a child that is given `limit` seconds, because a
    directory service that hangs must not hang sentinel. Raises CannotTell.
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
    """Members of the groups among `users` whom nobody knows any more: they have left, and their
    group still lists them. Raises CannotTell."""
    groups = [u.removeprefix(GROUP_MARK) for u in users if u.startswith(GROUP_MARK)]
    members = set[str]().union(*(_group_members(g, limit) for g in groups))
    return frozenset(_find_departed(members, limit))


def _find_departed(members: Collection[str], limit: float) -> set[str]:
    """squeue refuses a list with one name that it does not know. Where nobody is known it is the
    directory that does not answer."""
    if not members:
        return set()
    known = {row[0] for row in _ask_getent(["passwd", *sorted(members)], limit)}
    return set(members) - known if known & set(members) else set()


def is_meant_job(name: str | None, match: re.Pattern[str] | None, job: str) -> bool:
    """Whether a job of the name `job` is meant: the whole name counts, and where neither a name
    nor a pattern is given every job's."""
    return bool(match.fullmatch(job)) if match else not name or job == name


def training_subject(whose: Sequence[str], user: str, name: str) -> str:
    """The subject of one training of several: never a job id, and of any two users not the same."""
    text = visible(name) or "(no name)"
    if len(text) > MAX_NAME_CHARS:  # cut, and still another one than others that begin alike
        text = f"{text[:MAX_NAME_CHARS]}…{crc32(name.encode('utf-8', 'surrogatepass')):08x}"
    return text if names_one_user(whose) else f"{visible(user)}/{text}"


def large_jobs(
    mine: Sequence[Job], min_gpus: int, min_nodes: int, jobs: Sequence[Job], slurm: Slurm
) -> list[Job]:
    """Those of `mine` (among all the `jobs`) with as many GPUs and nodes. Raises CannotTell."""
    nodes = _total_by_job(jobs, lambda job: job.node_count)
    mine = [job for job in mine if nodes[_whole_job_id(job)] >= min_nodes]
    if not min_gpus or not mine:
        return list(mine)
    told = slurm.gpus()
    if missing := [job for job in mine if job.job_id not in told]:
        first = visible(missing[0].id)
        raise CannotTell(f"squeue does not tell the GPUs of {len(missing)} jobs, such as {first}")
    gpus = _total_by_job(jobs, lambda job: told.get(job.job_id, 0))
    return [job for job in mine if gpus[_whole_job_id(job)] >= min_gpus]


def _total_by_job(jobs: Sequence[Job], number: Callable[[Job], int]) -> Counter[str]:
    """By whole job: the parts of a heterogeneous one are added up."""
    found: Counter[str] = Counter()
    for job in jobs:
        found[_whole_job_id(job)] += number(job)
    return found


def _whole_job_id(job: Job) -> str:
    return job.id.partition("+")[0]


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
    """The jobs that are meant and run just now. Raises CannotTell.

    `before`: one of that `name` ran at the last look, so that a list without it is not believed
    the first time.
    """
    whose = watched_users(users, min(GETENT_LIMIT_S, ctx.limit / 4))
    jobs = ctx.slurm.jobs()
    mine = [
        job
        for job in jobs
        if is_meant_job(name, match, job.name)
        and is_leader(job)
        and (whose is None or job.user in whose)
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
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


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
    if done.code not in (0, 2):  # 2: one or more supplied key could not be found
        raise CannotTell(f"users: `getent {what[0]}` failed with exit code {done.code}")
    lines = done.out.decode("utf-8", "backslashreplace").splitlines()
    return [fields for fields in (line.split(":") for line in lines) if len(fields) >= 4]
