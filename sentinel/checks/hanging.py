"""Describes what keeps a node from ending a job: the task, the kernel function in which it waits,
and the file for which it waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from sentinel.checks.process_owners import find_owners
from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.nodes.probe import (
    NodeMount,
    NodeProbe,
    NodeProcess,
    ProbeRequest,
    StepTraces,
    UninterruptibleThread,
    Unread,
)

if TYPE_CHECKING:
    from sentinel.core.ports import Context

PROBE_WANTS = ProbeRequest(parts=("processes", "blocked", "steps", "mounts", "waits"))
MAX_SHOWN_TASKS = 5
_WAIT_MEANINGS = (
    (("request_wait_answer", "fuse_"), "FUSE"),
    (("rpc_", "nfs_", "nfs4_", "__rpc_", "__nfs"), "NFS"),
    (("ptlrpc_", "ll_", "cl_", "osc_", "ldlm_", "mdc_", "lov_"), "Lustre"),
    (("jbd2_", "xfs_", "ext4_", "btrfs_", "blk_", "submit_bio_"), "a disk"),
)
"""What a task waits for, by the beginnings of the kernel function in which it waits."""
_NO_WITNESS: Mapping[str, str] = MappingProxyType({})


def find_sluids(ctx: Context, probes: Sequence[NodeProbe | None]) -> Mapping[str, str]:
    """Job ids by SLUID. Slurm is asked only if the kernel uses a SLUID for a process. If Slurm does
    not know it, the process belongs to no known job."""
    steps = [probe.steps for probe in probes if probe and isinstance(probe.steps, StepTraces)]
    if not any(p.job.startswith("s") for told in steps for p in told.processes):
        return {}
    try:
        return ctx.slurm.sluids()
    except CannotTell:
        return {}


def describe_hanging(probe: NodeProbe, sluids: Mapping[str, str] = _NO_WITNESS) -> str:
    """Tasks in state D, those of jobs first. If there are none, live processes of jobs, or what
    could not be seen."""
    if probe.blocked is None or isinstance(probe.blocked, Unread):
        why = probe.blocked.why if probe.blocked else "not asked for"
        return visible(f"what it waits for is not known: {why}")
    jobs = _jobs_by_pid(probe, sluids)
    stuck = sorted((b for b in probe.blocked if not b.kernel), key=lambda b: b.pid not in jobs)
    if stuck:
        return list_stuck_tasks(probe, stuck, sluids)
    alive = [_describe_alive(p, jobs[p.pid]) for p in _probe_processes(probe) if p.pid in jobs]
    if alive:
        return visible(
            f"no task is in state D; alive: {', '.join(alive[:MAX_SHOWN_TASKS])}{_describe_more(alive)}"
        )
    if isinstance(probe.steps, StepTraces) and not probe.steps.blind:
        return "no task is in state D and no process of a job is left: look at slurmd there"
    return "no task is in state D; whether processes of a job are left was not seen"


def list_stuck_tasks(
    probe: NodeProbe,
    stuck: Iterable[UninterruptibleThread],
    sluids: Mapping[str, str] = _NO_WITNESS,
) -> str:
    """`processes hang in the kernel (state D): job 7: cat (pid 33) of alice in request_wait_answer, opening /data/x (fuse at /data)`."""
    jobs, everybody = _jobs_by_pid(probe, sluids), {p.pid: p for p in _probe_processes(probe)}
    tasks = {b.pid: b for b in stuck}
    shown = [
        _describe_task(b, probe, jobs, everybody) for b in list(tasks.values())[:MAX_SHOWN_TASKS]
    ]
    return visible(
        f"processes hang in the kernel (state D): {', '.join(shown)}{_describe_more(list(tasks))}"
    )


def _describe_task(
    blocked: UninterruptibleThread,
    probe: NodeProbe,
    jobs: dict[int, str],
    everybody: dict[int, NodeProcess],
) -> str:
    job = f"job {jobs[blocked.pid]}: " if blocked.pid in jobs else ""
    process = everybody.get(blocked.pid)
    of = f" of {process.user or process.uid}" if process and job else ""
    return f"{job}{blocked.name} (pid {blocked.pid}){of} {describe_wait(blocked, probe)}"


def describe_wait(blocked: UninterruptibleThread, probe: NodeProbe) -> str:
    """The kernel function in which the task waits, and the file and file system for which it does
    where that was requested, as part of a sentence."""
    starts = ((start, what) for starts, what in _WAIT_MEANINGS for start in starts)
    meaning = next((what for start, what in starts if blocked.wait.startswith(start)), "")
    function = f"in {blocked.wait}" + (f" ({meaning})" if meaning else "")
    if probe.waits is None:
        return function
    found = () if isinstance(probe.waits, Unread) else probe.waits
    wait = next((w for w in found if w.pid == blocked.pid), None)
    if wait is None or not wait.path.startswith("/"):
        return f"{function}; it is not known which file system it waits for"
    place = f"{shortened(wait.path, 120)}{_describe_file_system(wait.path, probe)}"
    return f"in {blocked.wait}, {wait.doing} {place}"


def _describe_file_system(path: str, probe: NodeProbe) -> str:
    mounts = probe.mounts if isinstance(probe.mounts, tuple) else ()
    over = [m for m in mounts if _is_below(path, m)]
    if not over:
        return ""
    mount = max(over, key=lambda m: len(m.point.rstrip("/")))
    return f" ({mount.type} at {mount.point})"


def _is_below(path: str, mount: NodeMount) -> bool:
    point = mount.point.rstrip("/")
    return path == point or path.startswith(f"{point}/")


def _jobs_by_pid(probe: NodeProbe, sluids: Mapping[str, str]) -> dict[int, str]:
    return {pid: owner.job for pid, owner in find_owners(probe, sluids).items()}


def _probe_processes(probe: NodeProbe) -> tuple[NodeProcess, ...]:
    return probe.processes if isinstance(probe.processes, tuple) else ()


def _describe_alive(process: NodeProcess, job: str) -> str:
    name = process.command.split(" ")[0].rpartition("/")[2][:40]
    return f"job {job}: {name} (pid {process.pid}) of {process.user or process.uid}"


def _describe_more(found: list[str] | list[int]) -> str:
    return f" and {len(found) - MAX_SHOWN_TASKS} more" if len(found) > MAX_SHOWN_TASKS else ""
