"""Makes events from what Slurm says against whole nodes, after Kokolis et al. 2024. Pure.

https://arxiv.org/abs/2410.21680, section IV-A: nodes that were taken out, users' exclusion lists,
and jobs on one or several nodes that ended with NODE_FAIL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from sentinel.core.actions import ActionRecord
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job, JobEnd, Node
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.gpu_ledger import NODE_PREFIX, GpuEvent
from sentinel.core.hostlist import expand_printed
from sentinel.core.lemon_policy import DAY_S
from sentinel.core.text import shortened, visible
from sentinel.slurm.drain_reasons import classify_reason
from sentinel.slurm.job_states import is_node_failure

ASKED = 20
"""Ended jobs that one run asks about; the next run asks about the others."""

FEW, SHARE = 3, 0.1
"""An exclusion list with no more than this number of nodes, or this share of all nodes, may mean
bad nodes."""

_LOST = frozenset({"NOT_RESPONDING"})


class Running(Struct, frozen=True, kw_only=True):
    """A job that ran at the last look."""

    job_id: str  # Id of the job.
    nodes: str  # Host list of its nodes.
    count: int  # How many nodes.


Drain = tuple[int, str, str]
"""When a node was taken out (s UTC), why, and by whom."""


def find_drains(nodes: Iterable[Node], before: Mapping[str, Drain]) -> dict[str, Drain]:
    """The drained nodes, by name, without those of planned work. One that was drained at the last look
    (`before`) keeps its first reason: Slurm gives each new text about it a time of its own."""
    return {
        node.name: before.get(node.name) or (node.reason_time, node.reason, node.reason_user or "?")
        for node in nodes
        if "DRAIN" in node.flags and node.reason and node.reason_time is not None
        if classify_reason(node.reason) != "maintenance"
    }


def drains(found: Mapping[str, Drain]) -> Iterator[GpuEvent]:
    """An event for each drained node and the reason for which it was taken out."""
    for name, (at, reason, by) in found.items():
        yield _event(
            name,
            "drained",
            f"{at} {reason}",
            Instant(wall=at * SECOND),
            f"{reason} (by {by})",
        )


def undrains(records: Iterable[ActionRecord]) -> Iterator[GpuEvent]:
    """An event for each node that was returned to service."""
    for record in records:
        if record.action == "undrain" and record.outcome.has_effect:
            yield _event(record.target, "undrained", record.id, record.at, f"by {record.by}")


def exclusions(jobs: Iterable[Job], nodes: int, now: Instant) -> Iterator[GpuEvent]:
    """An event for each node that a user excludes, once a day. A list with more than FEW nodes and
    more than SHARE of all `nodes` is left out. It means a rack or a kind of node, and not bad
    nodes."""
    day = now.wall // (DAY_S * SECOND)
    asked = dict.fromkeys((job.user, job.exclude) for job in jobs if job.exclude)
    for user, excluded in asked:
        names = _names(excluded)
        if len(names) > max(FEW, nodes * SHARE):
            continue
        for name in names:
            yield _event(name, "excluded", f"{user} {day}", now, f"a job of {user} excludes it")


def running(jobs: Iterable[Job], nodes: Iterable[Node]) -> list[Running]:
    """Jobs on nodes that Slurm has just lost: only such jobs can end with NODE_FAIL. Who sets a node DOWN for
    planned work ends them too, and that proves nothing against the node."""
    lost = {
        n.name
        for n in nodes
        if (n.state == "DOWN" or n.flags & _LOST) and classify_reason(n.reason) != "maintenance"
    }
    return [
        Running(job_id=job.job_id, nodes=job.nodes, count=job.node_count)
        for job in jobs
        if lost and job.state in ("RUNNING", "COMPLETING") and lost & set(_names(job.nodes))
    ]


def failures(
    before: Sequence[Running],
    jobs: Iterable[Job],
    end_of: Callable[[str], JobEnd | None],
    now: Instant,
) -> Iterator[GpuEvent]:
    """Events for earlier jobs that ended with NODE_FAIL, against the node that failed, if it is
    known."""
    there = {job.job_id for job in jobs}
    for one in [b for b in before if b.job_id not in there][:ASKED]:
        end = _end(end_of, one.job_id)
        if end is None or not is_node_failure(end):
            continue
        names = _names(end.failed_node) or (_names(one.nodes) if one.count == 1 else ())
        what = "node fail alone" if one.count == 1 else "node fail"
        for name in names:
            yield _event(name, what, one.job_id, now, f"job {one.job_id} on {one.count} nodes")


def _end(end_of: Callable[[str], JobEnd | None], job_id: str) -> JobEnd | None:
    try:
        return end_of(job_id)
    except CannotTell:
        return None


def _names(hostlist: str) -> tuple[str, ...]:
    try:
        return expand_printed(hostlist) if hostlist.strip() else ()
    except Invalid:
        return ()


def _event(node: str, what: str, key: str, at: Instant, text: str) -> GpuEvent:
    return GpuEvent(
        id=f"{node} {what} {key}",
        subject=f"{NODE_PREFIX}{node}",
        what=what,
        at=at,
        node=node,
        text=shortened(visible(text), 300),
    )


def waiting(before: Sequence[Running], jobs: Iterable[Job]) -> list[Running]:
    """The earlier jobs that the next run asks about: those that are still in Slurm, and ended ones
    for which this run had no room."""
    there = {job.job_id for job in jobs}
    ended = [one for one in before if one.job_id not in there]
    return [*(one for one in before if one.job_id in there), *ended[ASKED:]]
