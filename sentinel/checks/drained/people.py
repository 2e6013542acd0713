"""Whose processes are left on a node without jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.checks.drained.reasons import job_of
from sentinel.checks.drained.sight import Here, Item, Rules, Sight
from sentinel.core.text import visible
from sentinel.nodes.probe import NodeProbe, Process, Steps, Unread

NOBODY = 65534
"""The overflow uid: a service without rights, never somebody's login (nobody)."""

SHOWN = 5

DEEPEST = 100
"""Parents that are followed, at most."""

UNKNOWN = "?"
"""In place of a job's name: the kernel counts the process to a step, and nobody knows which."""


def steps(sight: Sight, probe: NodeProbe, rules: Rules) -> Item:
    """No process of any job: by slurmstepd, by cgroup, by the SLURM_JOB_ID it inherited."""
    told = probe.steps
    if told is None or isinstance(told, Unread):
        return Item(name="steps", good=None, text=unread(told))
    found = sorted((owner.job, pid) for pid, owner in owners(sight).items())
    if found:
        known = any(job.isdigit() for job, _ in found)
        return Item(name="steps", good=False if known else None, text=_alive(probe, found))
    if told.blind and not _blind_but_sure(told, probe, rules):
        return Item(name="steps", good=None, text=visible(f"not all seen: {told.blind[0]}"))
    return Item(name="steps", good=True, text="no process of a job")


def users(sight: Sight, probe: NodeProbe, rules: Rules) -> Item:
    """No job is there, so nobody but the system has business there."""
    told = probe.processes
    if told is None or isinstance(told, Unread):
        return Item(name="users", good=None, text=unread(told))
    found = [p for p in told if is_users(p, rules) and p.user not in rules.ignore_users]
    if not found:
        return Item(name="users", good=True, text=f"none of users among {len(told)} processes")
    return Item(name="users", good=False, text=f"left there: {_named(found)}")


def is_users(process: Process, rules: Rules) -> bool:
    """Alive, and neither root's nor a system user's (login.defs(5), UID_MIN)."""
    ordinary = process.uid >= rules.first_uid and process.uid != NOBODY
    return ordinary and process.state not in ("Z", "X")


class Owner(Struct, frozen=True):
    """Whose a process is: the job by its id (or the SLUID that nobody can map), what proves it
    (`counted`: the kernel or a slurmstepd above it), and the names under which the kernel counts
    it there."""

    job: str
    counted: bool
    names: frozenset[str]


class Left(Struct, frozen=True):
    """Left-over processes that may be ended: `jobs` by all their names, `alone` the users for whom
    an inherited id is enough, by uid, and the processes."""

    jobs: tuple[str, ...] = ()
    alone: Mapping[int, str] = {}
    pids: tuple[int, ...] = ()


def left(sight: Sight, rules: Rules, tried: frozenset[int] = frozenset()) -> Left:
    """What may be ended: of users, alive, of jobs that Slurm no longer has there, and not `tried`
    before in vain.

    Where Slurm told whose task would not die, only that job's; without the jobs (`here` None) only
    on an idle node.
    """
    probe, here = sight.probe, sight.here
    if probe is None or (here is None and sight.node.state != "IDLE"):
        return Left()
    owned, named = owners(sight), job_of(sight.node.reason)
    if not isinstance(probe.processes, tuple):
        return Left()
    jobs, alone, pids = set[str](), dict[int, str](), list[int]()
    for process in probe.processes:
        owner = owned.get(process.pid)
        if owner is None or process.pid in tried or process.state == "D":
            continue
        if not is_users(process, rules) or not _over(owner, process, here or Here(), named):
            continue
        jobs |= owner.names
        pids.append(process.pid)
        if not owner.counted:
            alone[process.uid] = process.user
    return Left(tuple(sorted(jobs)), alone, tuple(sorted(pids)))


def owners(sight: Sight) -> dict[int, Owner]:
    """Whose each process is: by the kernel, else by the slurmstepd above it, else by the id that it
    inherited; as clean_up.sh judges on the node."""
    told, probe = sight.probe.steps if sight.probe else None, sight.probe
    if probe is None or not isinstance(told, Steps):
        return {}
    by: dict[str, dict[int, str]] = {"cgroup": {}, "daemon": {}, "environment": {}}
    for step in told.processes:
        jobs = by[step.witness]
        same = jobs.get(step.pid, step.job) == step.job
        jobs[step.pid] = step.job if same else UNKNOWN
    known = {p.pid: p for p in probe.processes} if isinstance(probe.processes, tuple) else {}
    pids = known.keys() | by["cgroup"].keys() | by["daemon"].keys() | by["environment"].keys()
    found = {pid: _owner(pid, known, by, sight.sluids) for pid in pids}
    return {pid: owner for pid, owner in found.items() if owner}


def _owner(
    pid: int,
    known: Mapping[int, Process],
    by: Mapping[str, Mapping[int, str]],
    sluids: Mapping[str, str],
) -> Owner | None:
    if name := by["cgroup"].get(pid, ""):
        job = sluids.get(name, name)
        return Owner(job, True, frozenset({job, name}))
    at, hops = pid, 0
    while at > 1 and hops < DEEPEST:
        if job := by["daemon"].get(at, ""):
            return Owner(job, True, frozenset({job}))
        at, hops = known[at].parent if at in known else 0, hops + 1
    job = by["environment"].get(pid, "")
    return Owner(job, False, frozenset({job})) if job else None


def _over(owner: Owner, process: Process, here: Here, named: str) -> bool:
    """Whether it is left over. An id that was inherited proves it only where nothing else can be:
    that job runs nowhere, and its user, whose name is known, has none there."""
    if not owner.job.isdigit() or owner.job in here.jobs or (named and owner.job != named):
        return False
    if owner.counted:
        return True
    known = bool(process.user) and not process.user.isdigit()
    return known and process.user not in here.users and owner.job not in here.anywhere


def unread(told: Unread | None) -> str:
    """Why a part is not known, in words."""
    if told is None:
        return "not asked for"
    since = f" (process {told.pid} on the node)" if told.pid else ""
    return visible(f"not read, {told.kind}: {told.why or 'no reason given'}{since}")


def _blind_but_sure(told: Steps, probe: NodeProbe, rules: Rules) -> bool:
    """Who may not read environments, but sees that no user has any process, knows enough."""
    only = all(b.startswith("environments") for b in told.blind)
    seen = probe.processes
    return only and isinstance(seen, tuple) and not any(is_users(p, rules) for p in seen)


def _alive(probe: NodeProbe, found: Sequence[tuple[str, int]]) -> str:
    names = {p.pid: p for p in probe.processes} if isinstance(probe.processes, tuple) else {}
    shown = [f"job {job}: {_one(names.get(pid), pid)}" for job, pid in found[:SHOWN]]
    return visible(f"alive: {', '.join(shown)}{_more(found)}")


def _named(found: Sequence[Process]) -> str:
    shown = ", ".join(_one(p, p.pid) for p in found[:SHOWN])
    return visible(f"{shown}{_more(found)}")


def _one(process: Process | None, pid: int) -> str:
    if process is None:
        return f"process {pid}"
    name = process.command.split(" ")[0].rpartition("/")[2].rstrip(":")[:40]
    return f"{name}({pid}) of {process.user or process.uid}"


def _more(found: Sequence[object]) -> str:
    return f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
