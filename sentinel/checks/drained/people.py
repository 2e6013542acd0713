"""Whose processes are left on a node without jobs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.checks.drained.reasons import job_of
from sentinel.checks.drained.sight import Item, Rules, Sight
from sentinel.core.probe import NodeProbe, Process, Steps, Unread
from sentinel.core.text import visible

NOBODY = 65534
"""The overflow uid: a service without rights, never somebody's login (nobody)."""

SHOWN = 5


def steps(sight: Sight, probe: NodeProbe, rules: Rules) -> Item:
    """No process of any job: by slurmstepd, by cgroup, by the SLURM_JOB_ID it inherited."""
    told = probe.steps
    if told is None or isinstance(told, Unread):
        return Item(name="steps", good=None, text=unread(told))
    found = sorted({(p.job, p.pid) for p in told.processes})
    if found:
        return Item(name="steps", good=False, text=_left(sight, probe, found))
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


def jobs_left(sight: Sight) -> tuple[str, ...]:
    """Jobs with processes on the node although Slurm has none of that id there.

    Where Slurm told whose task would not die, only that job; `running` None is not empty.
    """
    told = sight.probe.steps if sight.probe else None
    if told is None or isinstance(told, Unread) or (sight.running is None and _busy(sight)):
        return ()
    alive = {p.job.partition("_")[0] for p in told.processes} - (sight.running or frozenset())
    named = job_of(sight.node.reason)
    return tuple(sorted(alive & {named} if named else alive))


def unread(told: Unread | None) -> str:
    """Why a part is not known, in words."""
    if told is None:
        return "not asked for"
    since = f" (process {told.pid} on the node)" if told.pid else ""
    return visible(f"not read, {told.kind}: {told.why or 'no reason given'}{since}")


def _busy(sight: Sight) -> bool:
    return sight.node.state != "IDLE"


def _blind_but_sure(told: Steps, probe: NodeProbe, rules: Rules) -> bool:
    """Who may not read environments, but sees that no user has any process, knows enough."""
    only = all(b.startswith("environments") for b in told.blind)
    seen = probe.processes
    return only and isinstance(seen, tuple) and not any(is_users(p, rules) for p in seen)


def _left(sight: Sight, probe: NodeProbe, found: Sequence[tuple[str, int]]) -> str:
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
