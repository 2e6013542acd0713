"""Finds processes of ended jobs on a node. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.checks.drained.node_evidence import NodeEvidence, ProofItem, ProofRules, RunningJobs
from sentinel.checks.drained.reasons import find_unkillable_job
from sentinel.core.text import visible
from sentinel.nodes.probe import NodeProbe, NodeProcess, StepTraces, Unread

NOBODY_UID = 65534
"""The overflow uid: a service without rights, never somebody's login (nobody)."""

MAX_SHOWN_PROCESSES = 5

MAX_PARENT_HOPS = 100
"""Parents that are followed, at most."""

UNKNOWN_JOB_NAME = "?"
"""The name of the job if the kernel counts the process to a step and nobody knows which."""


def prove_no_job_processes(sight: NodeEvidence, probe: NodeProbe, rules: ProofRules) -> ProofItem:
    """Whether the node has no process of any job. A process belongs to a job by slurmstepd, by its
    cgroup, or by the SLURM_JOB_ID that it inherited."""
    told = probe.steps
    if told is None or isinstance(told, Unread):
        return ProofItem(name="steps", good=None, text=explain_unread(told))
    found = sorted((owner.job, pid) for pid, owner in find_owners(sight).items())
    if found:
        known = any(job.isdigit() for job, _ in found)
        return ProofItem(
            name="steps", good=False if known else None, text=_describe_alive(probe, found)
        )
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


class ProcessOwner(Struct, frozen=True):
    """The job that a process belongs to.

    `job`: the id of the job, or its SLUID if the id is not known. `counted`: this is known from the
    kernel, or from a slurmstepd above the process. Otherwise it is known from an inherited id.
    """

    job: str  # Id of the job.
    counted: bool
    names: frozenset[str]  # Names under which the kernel counts it.


class LeftOverProcesses(Struct, frozen=True):
    """Left-over processes that may be ended.

    `jobs`: all names of their jobs. `alone`: the users, by uid, of processes whose job is known
    only from an inherited id.
    """

    jobs: tuple[str, ...] = ()
    alone: Mapping[int, str] = {}
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
    owned, named = find_owners(sight), find_unkillable_job(sight.node.reason)
    if not isinstance(probe.processes, tuple):
        return LeftOverProcesses()
    jobs, alone, pids = set[str](), dict[int, str](), list[int]()
    for process in probe.processes:
        owner = owned.get(process.pid)
        if owner is None or process.pid in tried or process.state == "D":
            continue
        if not is_user_process(process, rules) or not _is_left_over(
            owner, process, here or RunningJobs(), named
        ):
            continue
        jobs |= owner.names
        pids.append(process.pid)
        if not owner.counted:
            alone[process.uid] = process.user
    return LeftOverProcesses(tuple(sorted(jobs)), alone, tuple(sorted(pids)))


def find_owners(sight: NodeEvidence) -> dict[int, ProcessOwner]:
    """The owner of each process that has one. It is known from the kernel, else from the slurmstepd
    above the process, else from the id that it inherited. clean_up.sh judges in the same way on the
    node."""
    told, probe = sight.node_probe.steps if sight.node_probe else None, sight.node_probe
    if probe is None or not isinstance(told, StepTraces):
        return {}
    by: dict[str, dict[int, str]] = {"cgroup": {}, "daemon": {}, "environment": {}}
    for step in told.processes:
        jobs = by[step.witness]
        same = jobs.get(step.pid, step.job) == step.job
        jobs[step.pid] = step.job if same else UNKNOWN_JOB_NAME
    known = {p.pid: p for p in probe.processes} if isinstance(probe.processes, tuple) else {}
    pids = known.keys() | by["cgroup"].keys() | by["daemon"].keys() | by["environment"].keys()
    found = {pid: _find_owner(pid, known, by, sight.sluids) for pid in pids}
    return {pid: owner for pid, owner in found.items() if owner}


def _find_owner(
    pid: int,
    known: Mapping[int, NodeProcess],
    by: Mapping[str, Mapping[int, str]],
    sluids: Mapping[str, str],
) -> ProcessOwner | None:
    if name := by["cgroup"].get(pid, ""):
        job = sluids.get(name, name)
        return ProcessOwner(job, True, frozenset({job, name}))
    at, hops = pid, 0
    while at > 1 and hops < MAX_PARENT_HOPS:
        if job := by["daemon"].get(at, ""):
            return ProcessOwner(job, True, frozenset({job}))
        at, hops = known[at].parent if at in known else 0, hops + 1
    job = by["environment"].get(pid, "")
    return ProcessOwner(job, False, frozenset({job})) if job else None


def _is_left_over(owner: ProcessOwner, process: NodeProcess, here: RunningJobs, named: str) -> bool:
    """Whether the process is left over. An inherited id proves it only if that job runs nowhere,
    and the user of the process, whose name is known, has no job on this node."""
    if not owner.job.isdigit() or owner.job in here.jobs or (named and owner.job != named):
        return False
    if owner.counted:
        return True
    known = bool(process.user) and not process.user.isdigit()
    return known and process.user not in here.users and owner.job not in here.anywhere


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
