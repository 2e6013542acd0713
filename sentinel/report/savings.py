"""What would have saved most in a period, computed from the ledger. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from sentinel.core.errors import Invalid
from sentinel.core.hostlist import expand_printed
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.report.gpu_time import join_spans, subtract_spans
from sentinel.report.interruptions import PLANNED_ENDS, compute_mtbf
from sentinel.report.run_account import RunAccount

SavingKind = Literal["checkpoint_interval", "leave_out_node", "next_job"]

MAX_SAVINGS = 3
MIN_SHARE_PERCENT = 1
"""What would save less than this share of the GPU-hours held is not worth a line."""

MIN_SAVES = 5
"""With fewer pauses between checkpoints nothing is said of their interval."""

MIN_INTERVAL_US = 1200 * 10**6
"""The ledger has at most one checkpoint of each 10 minutes, so shorter intervals are not known."""

MIN_NODE_CASES = 2
MAX_NAMED_NODES = 2
"""An interruption that names more nodes singles none out."""

NODE_CAUSES = frozenset({"gpu", "network", "node"})
"""Causes that lie in a node. Others follow the training to any node."""

_US = 10**6


class Saving(Struct, frozen=True, kw_only=True):
    """Something that would have saved GPU-hours, with the numbers that it follows from."""

    kind: SavingKind
    text: str  # In words.
    saved: int  # GPU-time that it would have saved at most; of an interval about (µs times GPUs).
    evidence: Mapping[str, str | int | float]


def find_savings(
    account: RunAccount, rows: Sequence[LedgerRow], since: int, until: int
) -> tuple[Saving, ...]:
    """At most MAX_SAVINGS, the largest first. `rows` are those of the run."""
    rows = [row for row in rows if row.kind != "steps"]
    found = [
        *_find_checkpoint_interval(account, rows, since, until),
        *_find_node_to_leave_out(account),
        *_find_gaps_without_job(rows, since, until),
    ]
    worth = [one for one in found if one.saved * 100 >= account.held * MIN_SHARE_PERCENT > 0]
    return tuple(sorted(worth, key=lambda one: -one.saved)[:MAX_SAVINGS])


def compute_best_interval(cost_s: float, between_s: float) -> float:
    """Seconds of work between two checkpoints that lose least in total: Daly 2006, equation 37,
    which is Young's first order where a checkpoint costs little."""
    if cost_s >= 2 * between_s:
        return between_s
    part = cost_s / (2 * between_s)
    return math.sqrt(2 * cost_s * between_s) * (1 + math.sqrt(part) / 3 + part / 9) - cost_s


def _find_checkpoint_interval(
    account: RunAccount, rows: Sequence[LedgerRow], since: int, until: int
) -> Iterator[Saving]:
    cases, calendar = len(account.interruptions), account.calendar
    between = compute_mtbf(cases, calendar.held)
    pauses = _list_save_pauses(rows, since, until)
    spent = account.parts["checkpoint"]
    if not (between.low_s and between.mean_s and between.high_s and spent):
        return
    if account.overlapping or len(pauses) < MIN_SAVES:
        return
    today, gpus = sorted(pauses)[len(pauses) // 2], account.held / calendar.held
    if today < MIN_INTERVAL_US:
        return
    cost = spent / gpus * today / calendar.held / _US
    best, low, high = (
        compute_best_interval(cost, s) for s in (between.mean_s, between.low_s, between.high_s)
    )
    if low <= today / _US <= high:
        return
    # An interruption cannot lose more steps by the interval than one interval holds.
    redone = min(account.parts["redone"], cases * today * gpus)
    ratio = today / (best * _US)
    words = [_format_time(s) for s in (low, high)]
    yield Saving(
        kind="checkpoint_interval",
        text=f"a checkpoint every {words[0]} to {words[1]} instead of "
        f"{_format_time(today / _US)} (one costs {duration_text(round(cost, 1))}, an interruption "
        f"comes every {_format_time(between.mean_s)})",
        saved=int(spent + redone - spent * ratio - redone / ratio),
        evidence={
            "low_s": round(low),
            "high_s": round(high),
            "today_s": round(today / _US),
            "checkpoint_s": round(cost, 1),
            "between_s": round(between.mean_s),
            "cases": cases,
        },
    )


def _list_save_pauses(rows: Sequence[LedgerRow], since: int, until: int) -> list[int]:
    """The time between checkpoints that followed each other in one job (µs)."""
    saves = sorted(r.ended for r in rows if r.kind == "saved" and since <= r.ended < until)
    return [
        after - before
        for held in rows
        if held.kind == "held"
        for before, after in pairwise(
            saves[bisect_left(saves, held.began) : bisect_right(saves, held.ended)]
        )
    ]


def _find_node_to_leave_out(account: RunAccount) -> Iterator[Saving]:
    """The node of the interruptions that cost most, where one stands out."""
    costs, causes = Counter[str](), dict[str, Counter[str]]()
    for one, cost in zip(account.interruptions, account.costs, strict=True):
        if one.cause not in NODE_CAUSES:
            continue
        for node in _list_named_nodes(one.nodes):
            costs[node] += cost
            causes.setdefault(node, Counter())[one.cause] += 1
    ranked = costs.most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return
    node, cost = ranked[0]
    count = causes[node].total()
    if count < MIN_NODE_CASES:
        return
    words = ", ".join(f"{cause} {n}" for cause, n in causes[node].most_common())
    yield Saving(
        kind="leave_out_node",
        text=f"without node {shortened(visible(node), 60)}: it stands in {count} of "
        f"{len(account.interruptions)} interruptions ({words})",
        saved=cost,
        evidence={"node": node, "cases": count, "of": len(account.interruptions)},
    )


@lru_cache(maxsize=1024)
def _list_named_nodes(hosts: str) -> tuple[str, ...]:
    """The nodes that an interruption singles out. The ledger cuts long host lists."""
    try:
        nodes = expand_printed(hosts) if hosts else ()
    except Invalid:
        return ()
    return nodes if len(nodes) <= MAX_NAMED_NODES else ()


def _find_gaps_without_job(rows: Sequence[LedgerRow], since: int, until: int) -> Iterator[Saving]:
    """The time after an end in which no other job ran or waited, until the next one came."""
    jobs = sorted((r for r in rows if r.kind == "held"), key=lambda r: r.began)
    begins = [r.began for r in jobs]
    kinds = ("held", "queued", "maintenance")
    others = join_spans((r.began, r.ended) for r in rows if r.kind in kinds)
    ends, hours, gpu_time = 0, 0, 0
    for job in jobs:
        place = bisect_left(begins, job.ended)
        if place == len(jobs) or job.cause in PLANNED_ENDS:
            continue
        following = jobs[place]
        gap = (max(job.ended, since), min(following.began, until))
        length = sum(b - a for a, b in subtract_spans([gap], others))
        ends, hours, gpu_time = ends + bool(length), hours + length, gpu_time + length * job.gpus
    if not hours:
        return
    text = _format_time(hours / _US)
    yield Saving(
        kind="next_job",
        text=f"a next job in the queue (sbatch --dependency=singleton): {text} passed without any "
        f"job after {ends} end{'s' * (ends != 1)}",
        saved=gpu_time,
        evidence={"hours": round(hours / _US / 3600, 6), "ends": ends},
    )


def _format_time(seconds: float) -> str:
    """The time to the minute, where it is longer than one."""
    return duration_text(round(seconds / 60) * 60 if seconds >= 60 else round(seconds))
