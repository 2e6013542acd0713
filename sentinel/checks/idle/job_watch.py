"""Follows from look to look since when a job has not used its GPUs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.checks.idle.node_use import NodeUse
from sentinel.core.clock import Instant, get_elapsed_s

MAX_IDLE_PERCENT = 2.0
"""A GPU at this utilization or below counts as unused: a program that only opens a context was seen at
2 % for a moment."""

MAX_GAP_SHARE = 0.25
"""Looks that are farther apart than this share of the window say nothing of the time between them."""


class NodeCounter(Struct, frozen=True, kw_only=True):
    """The traffic of a node at the last look."""

    boot: str
    moved_bytes: int


class JobWatch(Struct, frozen=True, kw_only=True):
    """The memory of one job that runs.

    used: When each GPU was last seen at work or first seen, by UUID. A GPU that is not seen at one
        look begins anew.
    quiet: Since when the nodes have moved little data.
    is_batch: Whether its batch script was ever seen to run.
    """

    started: int  # When the job started, epoch seconds.
    looked: Instant  # The last look.
    quiet: Instant
    used: Mapping[str, Instant] = {}
    counters: Mapping[str, NodeCounter] = {}  # By node.
    is_batch: bool = False
    is_late: bool = False  # The looks before this one were too far apart.


class JobUse(Struct, frozen=True, kw_only=True):
    """What is known of a job after a look."""

    held: int  # How many GPUs the job holds.
    unused: int  # How many of them were not used for the whole window, at least.
    seconds: float  # For how long these were not used.
    unknown: str = ""  # Why nothing can be said of its GPUs.
    empty_nodes: tuple[str, ...] = ()  # Nodes without any process of the job.
    gpu_processes: int = 0  # Processes that have memory on its GPUs.
    busy_now: int = 0  # How many GPUs were at work at this look.


def follow_job(
    before: JobWatch | None,
    started: int,
    looks: Sequence[NodeUse],
    now: Instant,
    *,
    window: float,
    traffic: float,
) -> JobWatch:
    """What is remembered about a job after this look at its nodes."""
    late = before is not None and get_elapsed_s(before.looked, now) > window * MAX_GAP_SHARE
    known = before if before is not None and before.started == started and not late else None
    used = {
        uuid: now if known is None or peak > MAX_IDLE_PERCENT else known.used.get(uuid, now)
        for look in looks
        for uuid, peak in look.peaks.items()
    }
    is_quiet = known is not None and _moved_little(known, looks, now, traffic)
    return JobWatch(
        started=started,
        looked=now,
        quiet=known.quiet if known and is_quiet else now,
        used=used,
        counters={
            look.node: NodeCounter(boot=look.boot, moved_bytes=look.moved_bytes)
            for look in looks
            if look.moved_bytes is not None
        },
        is_batch=any(look.has_batch_step for look in looks)
        or (before is not None and before.started == started and before.is_batch),
        is_late=late,
    )


def _moved_little(before: JobWatch, looks: Sequence[NodeUse], now: Instant, traffic: float) -> bool:
    """Whether each node has moved less than `traffic` bytes a second since the last look. A node whose
    traffic is not known may have moved more."""
    seconds = max(get_elapsed_s(before.looked, now), 1.0)
    for look in looks:
        last = before.counters.get(look.node)
        if last is None or look.moved_bytes is None or last.boot != look.boot:
            return False
        moved = look.moved_bytes - last.moved_bytes
        if not 0 <= moved < traffic * seconds:
            return False
    return True


def judge_use(watch: JobWatch, looks: Sequence[NodeUse], held: int, window: float) -> JobUse:
    """How many GPUs the job has not used over the window.

    The nodes are the job's alone, so every GPU that was at work was one of the job's. Of those that it
    holds at least so many were idle as are left when all used ones are taken off.
    """
    now = watch.looked
    idle = {u: s for u, at in watch.used.items() if (s := get_elapsed_s(at, now)) >= window}
    why = next((f"{look.node}: {look.unknown}" for look in looks if look.unknown), "")
    if not why and len(watch.used) < held:
        why = f"its nodes show {len(watch.used)} GPUs, and it holds {held}"
    is_still = len(idle) < len(watch.used) or get_elapsed_s(watch.quiet, now) >= window
    unused = held - (len(watch.used) - len(idle)) if is_still and not why else 0
    return JobUse(
        held=held,
        unused=max(0, unused),
        seconds=min(idle.values(), default=0.0),
        unknown=why,
        empty_nodes=tuple(
            look.node for look in looks if not look.unknown and not look.has_processes
        ),
        gpu_processes=sum(look.gpu_processes for look in looks),
        busy_now=sum(peak > MAX_IDLE_PERCENT for look in looks for peak in look.peaks.values()),
    )
