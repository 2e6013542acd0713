"""Whose job each process of a node is: by the kernel, else by slurmstepd. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from sentinel.nodes.probe import NodeProbe, NodeProcess, StepTraces

MAX_PARENT_HOPS = 100
"""Parents that are followed, at most."""

UNKNOWN_JOB_NAME = "?"
"""The name of the job if the kernel counts the process to a step and nobody knows which."""


class ProcessOwner(Struct, frozen=True):
    """The job that a process belongs to, by the kernel or by a slurmstepd above the process.

    `job`: the id of the job, or its SLUID if the id is not known.
    """

    job: str  # Id of the job.
    names: frozenset[str]  # Names under which the kernel counts it.


def find_owners(probe: NodeProbe, sluids: Mapping[str, str]) -> dict[int, ProcessOwner]:
    """The owner of each process that has one. It is known from the kernel, else from the slurmstepd
    above the process: what a process inherited proves nothing. clean_up.sh judges in the same way on
    the node. `sluids` has job ids by SLUID."""
    if not isinstance(probe.steps, StepTraces):
        return {}
    by: dict[str, dict[int, str]] = {"cgroup": {}, "daemon": {}}
    for step in probe.steps.processes:
        jobs = by.get(step.witness, {})
        same = jobs.get(step.pid, step.job) == step.job
        jobs[step.pid] = step.job if same else UNKNOWN_JOB_NAME
    known = {p.pid: p for p in probe.processes} if isinstance(probe.processes, tuple) else {}
    pids = known.keys() | by["cgroup"].keys() | by["daemon"].keys()
    found = {pid: _find_owner(pid, known, by, sluids) for pid in pids}
    return {pid: owner for pid, owner in found.items() if owner}


def _find_owner(
    pid: int,
    known: Mapping[int, NodeProcess],
    by: Mapping[str, Mapping[int, str]],
    sluids: Mapping[str, str],
) -> ProcessOwner | None:
    if name := by["cgroup"].get(pid, ""):
        job = sluids.get(name, name)
        return ProcessOwner(job, frozenset({job, name}))
    at, hops = pid, 0
    while at > 1 and hops < MAX_PARENT_HOPS:
        if job := by["daemon"].get(at, ""):
            return ProcessOwner(job, frozenset({job}))
        at, hops = known[at].parent if at in known else 0, hops + 1
    return None
