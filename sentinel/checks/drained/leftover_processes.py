"""Finds processes of ended jobs on a node. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sentinel.checks.drained.node_evidence import NodeEvidence, ProofItem, ProofRules
from sentinel.checks.drained.reasons import find_unkillable_job
from sentinel.checks.process_owners import find_owners
from sentinel.core.text import visible
from sentinel.nodes.probe import NodeProbe, NodeProcess, StepTraces, Unread

NOBODY_UID = 65534
"""The overflow uid: a service without rights, never somebody's login (nobody)."""

MAX_SHOWN_PROCESSES = 5


def prove_no_job_processes(sight: NodeEvidence, probe: NodeProbe, rules: ProofRules) -> ProofItem:
    """Whether the node has no process of any job. A process belongs to a job by slurmstepd or by its
    cgroup. A SLURM_JOB_ID that it inherited is no more than a doubt: anybody may export any."""
    told = probe.steps
    if told is None or isinstance(told, Unread):
        return ProofItem(name="steps", good=None, text=explain_unread(told))
    found = sorted((owner.job, pid) for pid, owner in find_owners(probe, sight.sluids).items())
    if found:
        known = any(job.isdigit() for job, _ in found)
        return ProofItem(
            name="steps", good=False if known else None, text=_describe_alive(probe, found)
        )
    claims = sorted((p.job, p.pid) for p in told.processes if p.witness == "environment")
    if claims:
        return ProofItem(name="steps", good=None, text=_describe_claims(probe, claims))
    if told.blind and not _has_no_user_process(told, probe, rules):
        return ProofItem(name="steps", good=None, text=visible(f"not all seen: {told.blind[0]}"))
    return ProofItem(name="steps", good=True, text="no process of a job")


def prove_no_user_processes(sight: NodeEvidence, probe: NodeProbe, rules: ProofRules) -> ProofItem:
    """Whether the node has no process of a user. No job is there, so only the system may have
    processes there."""
    told = probe.processes
    if told is None or isinstance(told, Unread):
        return ProofItem(name="users", good=None, text=explain_unread(told))
    found = [p for p in told if is_user_process(p, rules) and p.user not in rules.ignore_users]
    if not found:
        return ProofItem(name="users", good=True, text=f"none of users among {len(told)} processes")
    return ProofItem(
        name="users", good=False, text=f"processes of users are left: {_describe_processes(found)}"
    )


def is_user_process(process: NodeProcess, rules: ProofRules) -> bool:
    """Whether the process is alive, and its user is neither root nor a system user (login.defs(5),
    UID_MIN)."""
    ordinary = process.uid >= rules.first_uid and process.uid != NOBODY_UID
    return ordinary and process.state not in ("Z", "X")


class LeftOverProcesses(Struct, frozen=True):
    """Left-over processes that may be ended. `jobs`: all names of their jobs."""

    jobs: tuple[str, ...] = ()
    uids: tuple[int, ...] = ()  # Numbers of their users.
    pids: tuple[int, ...] = ()  # Numbers of the processes.


def find_left_over(
    sight: NodeEvidence, rules: ProofRules, tried: frozenset[int] = frozenset()
) -> LeftOverProcesses:
    """The processes that may be ended. They belong to users, are alive and not in state D, and
    their jobs are no longer on the node by Slurm. A process that was `tried` before without success
    is left out.

    If Slurm named the job whose task would not end, only the processes of that job count. If the
    jobs are not known (`here` is None), processes are returned only for an idle node.
    """
    probe, here = sight.node_probe, sight.here
    if probe is None or (here is None and sight.node.state != "IDLE"):
        return LeftOverProcesses()
    owned, named = find_owners(probe, sight.sluids), find_unkillable_job(sight.node.reason)
    if not isinstance(probe.processes, tuple):
        return LeftOverProcesses()
    jobs, uids, pids = set[str](), set[int](), list[int]()
    for process in probe.processes:
        owner = owned.get(process.pid)
        if owner is None or process.pid in tried or process.state == "D":
            continue
        runs = not owner.job.isdigit() or owner.job in (here or frozenset())
        if runs or (named and owner.job != named) or not is_user_process(process, rules):
            continue
        jobs |= owner.names
        uids.add(process.uid)
        pids.append(process.pid)
    return LeftOverProcesses(tuple(sorted(jobs)), tuple(sorted(uids)), tuple(sorted(pids)))


def explain_unread(told: Unread | None) -> str:
    """Why a part is not known, in words."""
    if told is None:
        return "not asked for"
    since = f" (process {told.pid} on the node)" if told.pid else ""
    return visible(f"not read, {told.kind_words}: {told.why or 'no reason given'}{since}")


def _has_no_user_process(told: StepTraces, probe: NodeProbe, rules: ProofRules) -> bool:
    """Whether no user has any process, and only environments could not be read. Then no environment
    can name a job."""
    only = all(b.startswith("environments") for b in told.blind)
    seen = probe.processes
    return only and isinstance(seen, tuple) and not any(is_user_process(p, rules) for p in seen)


def _describe_alive(probe: NodeProbe, found: Sequence[tuple[str, int]]) -> str:
    names = {p.pid: p for p in probe.processes} if isinstance(probe.processes, tuple) else {}
    shown = [
        f"job {job}: {_describe_process(names.get(pid), pid)}"
        for job, pid in found[:MAX_SHOWN_PROCESSES]
    ]
    return visible(f"processes left by {', '.join(shown)}{_describe_more(found)}")


def _describe_claims(probe: NodeProbe, found: Sequence[tuple[str, int]]) -> str:
    text = _describe_alive(probe, found).removeprefix("processes left by ")
    return f"no process is known to be of a job, but some carry its id, as anybody may: {text}"


def _describe_processes(found: Sequence[NodeProcess]) -> str:
    shown = ", ".join(_describe_process(p, p.pid) for p in found[:MAX_SHOWN_PROCESSES])
    return visible(f"{shown}{_describe_more(found)}")


def _describe_process(process: NodeProcess | None, pid: int) -> str:
    if process is None:
        return f"process {pid}"
    name = process.command.split(" ")[0].rpartition("/")[2].rstrip(":")[:40]
    return f"{name} (pid {pid}) of {process.user or process.uid}"


def _describe_more(found: Sequence[object]) -> str:
    return (
        f" and {len(found) - MAX_SHOWN_PROCESSES} more" if len(found) > MAX_SHOWN_PROCESSES else ""
    )
