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
from sentinel.slurm.job_states import Phase, leads, phase, runs, strange

EVERYBODY = "*"
GROUP = "group:"
LOOKUP = 5.0  # seconds for finding out who the members of a group are
LONGEST = 128  # characters of a job's name in a subject
RECENT = 60.0  # seconds of accounting: what runs, slurmctld itself knows


def one_user(users: Sequence[str]) -> bool:
    """Whether it names one person: then names of jobs cannot collide."""
    return len(users) <= 1 and not any(u == EVERYBODY or u.startswith(GROUP) for u in users)


def watched(users: Sequence[str], limit: float = LOOKUP) -> frozenset[str] | None:
    """The user names that `users` stands for; None for everybody.

    Groups are looked up by getent(1) in a child that is given `limit` seconds, because a
    directory service that hangs must not hang sentinel. Raises CannotTell.
    """
    if EVERYBODY in users:
        return None
    if not users:
        return frozenset([me()])
    groups = [u.removeprefix(GROUP) for u in users if u.startswith(GROUP)]
    names = {u for u in users if not u.startswith(GROUP)}
    members = set[str]().union(*(_members(g, limit) for g in groups))
    return frozenset(names | (members - _departed(members, limit)))


def departed(users: Sequence[str], limit: float = LOOKUP) -> frozenset[str]:
    """Members of the groups among `users` whom nobody knows any more: they have left, and their
    group still lists them. Raises CannotTell."""
    groups = [u.removeprefix(GROUP) for u in users if u.startswith(GROUP)]
    members = set[str]().union(*(_members(g, limit) for g in groups))
    return frozenset(_departed(members, limit))


def _departed(members: Collection[str], limit: float) -> set[str]:
    """squeue refuses a list with one name that it does not know. Where nobody is known it is the
    directory that does not answer."""
    if not members:
        return set()
    known = {row[0] for row in _getent(["passwd", *sorted(members)], limit)}
    return set(members) - known if known & set(members) else set()


def fits(name: str | None, match: re.Pattern[str] | None, job: str) -> bool:
    """Whether a job of the name `job` is meant: the whole name counts, and where neither a name
    nor a pattern is given every job's."""
    return bool(match.fullmatch(job)) if match else not name or job == name


def subject_of(whose: Sequence[str], user: str, name: str) -> str:
    """The subject of one training of several: never a job id, and of any two users not the same."""
    text = visible(name) or "(no name)"
    if len(text) > LONGEST:  # cut, and still another one than others that begin alike
        text = f"{text[:LONGEST]}…{crc32(name.encode('utf-8', 'surrogatepass')):08x}"
    return text if one_user(whose) else f"{visible(user)}/{text}"


def large(
    mine: Sequence[Job], min_gpus: int, min_nodes: int, jobs: Sequence[Job], slurm: Slurm
) -> list[Job]:
    """Those of `mine` (among all the `jobs`) with as many GPUs and nodes. Raises CannotTell."""
    nodes = _total(jobs, lambda job: job.node_count)
    mine = [job for job in mine if nodes[_whole(job)] >= min_nodes]
    if not min_gpus or not mine:
        return list(mine)
    told = slurm.gpus()
    if missing := [job for job in mine if job.job_id not in told]:
        first = visible(missing[0].id)
        raise CannotTell(f"squeue does not tell the GPUs of {len(missing)} jobs, such as {first}")
    gpus = _total(jobs, lambda job: told.get(job.job_id, 0))
    return [job for job in mine if gpus[_whole(job)] >= min_gpus]


def _total(jobs: Sequence[Job], number: Callable[[Job], int]) -> Counter[str]:
    """By whole job: the parts of a heterogeneous one are added up."""
    found: Counter[str] = Counter()
    for job in jobs:
        found[_whole(job)] += number(job)
    return found


def _whole(job: Job) -> str:
    return job.id.partition("+")[0]


def running(
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
    whose = watched(users, min(LOOKUP, ctx.limit / 4))
    jobs = ctx.slurm.jobs()
    mine = [
        job
        for job in jobs
        if fits(name, match, job.name) and leads(job) and (whose is None or job.user in whose)
    ]
    if min_gpus or min_nodes:
        mine = large(mine, min_gpus, min_nodes, jobs, ctx.slurm)
    found = [job for job in mine if runs(job)]
    if not found and (why := strange(mine)):
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
    for run in ctx.slurm.past((), (name,), RECENT).runs:
        mine = name in (run.name, run.id, run.job_id) and (whose is None or run.user in whose)
        if mine and phase(run.state) is Phase.RUNNING and run.job_id not in known:
            raise CannotTell(
                f"job {run.id} runs and is not in the list of jobs: the list is not whole"
            )


def refuse_cut(ctx: Context, before: Collection[str]) -> None:
    """Raises CannotTell where a job of these ids, which ran at the last look, is not in the list
    of jobs, and Slurm, asked once more, says that it runs."""
    missing = set(before) - {job.job_id for job in ctx.slurm.jobs()}
    for run in ctx.slurm.past(missing, (), RECENT).runs if missing else ():
        if run.job_id in missing and phase(run.state) is Phase.RUNNING:
            raise CannotTell(
                f"job {visible(run.id)} runs and is not in the list of jobs: the list is not whole"
            )


def me() -> str:
    """Who runs this: the name, or the number of a user that has none."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _members(group: str, limit: float) -> set[str]:
    """Those the group lists and those whose primary group it is (getent group omits them)."""
    found = _getent(["group", group], limit)
    if not found:
        raise CannotTell(
            f"users: there is no group {visible(group)!r} on this host; correct `users`"
        )
    gid, listed = found[0][2], found[0][3]
    primary = {row[0] for row in _getent(["passwd"], limit) if row[3:4] == [gid]}
    return primary.union(filter(None, listed.split(",")))


def _getent(what: list[str], limit: float) -> list[list[str]]:
    done = proc.run(["getent", *what], limit=limit)
    if done.code not in (0, 2):  # 2: one or more supplied key could not be found
        raise CannotTell(f"users: `getent {what[0]}` failed with exit code {done.code}")
    lines = done.out.decode("utf-8", "backslashreplace").splitlines()
    return [fields for fields in (line.split(":") for line in lines) if len(fields) >= 4]
