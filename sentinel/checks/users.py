"""Whose jobs are meant: names, groups with their primary members, or everybody."""

import os
from collections.abc import Collection, Sequence

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Context
from sentinel.core.text import visible
from sentinel.slurm.job_states import Phase, leads, phase, runs, strange
from sentinel.slurm.model import Job

EVERYBODY = "*"
GROUP = "group:"
LOOKUP = 5.0  # seconds for finding out who the members of a group are
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
    return frozenset(names.union(*(_members(g, limit) for g in groups)))


def running(ctx: Context, name: str, users: Sequence[str], *, before: bool = False) -> list[Job]:
    """The jobs of that very name and of those users that run just now. Raises CannotTell.

    `before`: one ran at the last look, so that a list without it is not believed the first time.
    """
    whose = watched(users, min(LOOKUP, ctx.limit / 4))
    mine = [
        job
        for job in ctx.slurm.jobs()
        if job.name == name and leads(job) and (whose is None or job.user in whose)
    ]
    found = [job for job in mine if runs(job)]
    if not found and (why := strange(mine)):
        raise CannotTell(visible(why))
    if not found and (before or ctx.one_shot):
        refuse_lost(ctx, name, whose)
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
