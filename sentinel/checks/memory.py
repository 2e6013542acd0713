"""The `memory` kind: what of this host's memory can still be had, and where it is heading.

Page cache that can be given back is not use: the level is MemAvailable of proc_meminfo(5).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import psutil
from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.nodes_asked import (
    choose_nodes,
    judge_choice,
    probe_nodes,
    silent_finding,
    unread_finding,
)
from sentinel.checks.users import watched_users
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.declared import Metric
from sentinel.core.errors import CannotTell
from sentinel.core.guidance import Guidance, look
from sentinel.core.model import Coverage, Finding, Report, Status, get_worst_status
from sentinel.core.ports import Context
from sentinel.core.settings import refuse_reversed
from sentinel.core.shown import Column, SubjectCells
from sentinel.core.values import Duration, Share, Size, duration_text, size_text
from sentinel.nodes.probe import NodeProbe, ProbeRequest, Unread
from sentinel.plugin import Check

if TYPE_CHECKING:
    from sentinel.core.node_answers import Unreached

LOOKUP_LIMIT_S = 5.0
"""How many seconds the search for the members of a group may take."""

KEPT_LEVELS = ("used_percent", "available_bytes", "swap_used_percent")
"""Values worth a history."""

_MIN_LEVELS = 5  # number of observations that a trend needs
KillCount = tuple[str, int]


class MemoryLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bad from these shares on, below this much available, when full within this time.

    used: Bad when so much of memory is used.
    available: Bad when less than this can still be had.
    swap_used: Bad when so much of swap is used.
    full_in: Bad when the trend leads to full memory within this time.
    """

    used: Share | None = None
    available: Size | None = None
    swap_used: Share | None = None
    full_in: Duration | None = None


_LOOKS = (look("ps -eo pid,user,rss,args --sort=-rss | head"), look("df -h /dev/shm"))


class MemoryLevel(Struct, frozen=True, kw_only=True):
    """Bytes of memory and swap."""

    total: int  # Memory in bytes.
    available: int  # Memory that is still available, in bytes.
    swap: int  # Swap in bytes.
    swap_free: int  # Free swap in bytes.

    @property
    def used_percent(self) -> float:
        """The share of memory that no process can get any more."""
        return round(100 * (self.total - self.available) / self.total, 2)

    @property
    def swap_used_percent(self) -> float | None:
        """The share of swap that is used. None without swap."""
        return round(100 * (self.swap - self.swap_free) / self.swap, 2) if self.swap else None


class MemoryCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Memory that can still be had: level, swap, trend, and what was killed for want of it.

    nodes: A host list like node-[0-3],gpu08, or `all` that do not sleep, in place of this host.
    job: In place of `nodes`, those on which this job (its name or id) runs.
    users: Whose jobs count: user names, `group:NAME`, or `*` for everybody; unset, who runs sentinel.
    warn: The limits of a warning.
    crit: The limits of what is critical.
    window: How far back the trend looks; it counts from half-full memory on.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 30
    METRICS = (
        Metric(
            "used_percent", "memory_used_ratio", "Memory used, 0 to 1.", "percent", "", ("node",)
        ),
        Metric(
            "available_bytes",
            "memory_available_bytes",
            "Memory that programs can still get.",
            "bytes",
            "",
            ("node",),
        ),
        Metric("size_bytes", "memory_size_bytes", "Memory there is.", "bytes", "", ("node",)),
        Metric(
            "swap_used_percent",
            "memory_swap_used_ratio",
            "Swap used, 0 to 1.",
            "percent",
            "",
            ("node",),
        ),
    )
    COLUMNS = (
        Column("node", "node"),
        Column("used", "used_percent", "bar"),
        Column("available", "available_bytes", "size"),
        Column("of", "size_bytes", "size"),
        Column("swap used", "swap_used_percent", "percent"),
        Column("full in", "full_in_seconds", "time"),
        Column("warning", "warning", "word", optional=True),
        Column("critical", "critical", "word", optional=True),
        Column("last week", "used_percent", "week", optional=True),
        Column("status", "status", "status"),
    )
    SOURCES = (
        "This host's /proc/meminfo (psutil); with `nodes` or `job` that of each node, with its count "
        "of processes killed because memory ran out.",
    )
    RUNBOOK = "docs/memory.md"
    LIMIT_SAMPLES = KEPT_LEVELS

    nodes: str = ""
    job: str = ""
    users: list[str] = []

    warn: MemoryLimits = MemoryLimits(used=Share(90), full_in=Duration(900))
    crit: MemoryLimits = MemoryLimits(used=Share(97))
    window: Duration = Duration(1800)

    def __post_init__(self) -> None:
        judge_choice(self.nodes, self.job)
        refuse_reversed(self.warn, self.crit, ("used", "swap_used"), ("available", "full_in"))

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if not self.job:
            yield "users", "it says whose `job` is meant; name the job"

    def judge_samples(self, numbers: Mapping[str, float]) -> Status:
        """The status by the level alone, without its trend."""
        return judge_memory(level_from_samples(numbers), None, self.warn, self.crit)[0]

    def without_sampled_limits(self) -> MemoryCheck:
        """Of the limits the trend's alone, which samples of one moment do not decide."""
        warn, crit = (
            MemoryLimits(full_in=self.warn.full_in),
            MemoryLimits(full_in=self.crit.full_in),
        )
        return replace(self, warn=warn, crit=crit)

    def jobs_of(self) -> frozenset[str] | None:
        """The users whose jobs squeue is asked for. None means everybody. Raises CannotTell."""
        return watched_users(self.users, LOOKUP_LIMIT_S) if self.job else frozenset()

    @property
    def looks_into_nodes(self) -> bool:
        """Whether other nodes are checked (`nodes` or `job`)."""
        return bool(self.nodes or self.job)

    def run(self, ctx: Context) -> Report:
        """One finding for each node if `nodes` or `job` is set.

        Otherwise one finding about this host, whose subject is `memory`. Without a history,
        `full_in` cannot be judged.
        """
        if self.nodes or self.job:
            return self._report_nodes(ctx)
        finding = self._level_finding(
            "memory", read_memory(), ctx, os.uname().nodename.partition(".")[0]
        )
        here = Coverage(of="hosts", meant=1)
        return Report(
            findings=(finding,),
            samples=finding.samples(KEPT_LEVELS),
            coverage=here,
            shown=self._show_limits((finding,)),
        )

    def _report_nodes(self, ctx: Context) -> Report:
        users = watched_users(self.users, min(LOOKUP_LIMIT_S, ctx.limit / 4)) if self.job else None
        asked = choose_nodes(self.nodes, self.job, users, ctx)
        answers = probe_nodes(ctx, asked.names, ProbeRequest(parts=("memory",)))
        findings = [self._judge_node_memory(name, answers[name], ctx) for name in asked.names]
        return Report(
            findings=tuple(findings),
            coverage=asked.nodes_coverage(
                f.subject for f in findings if f.status is not Status.UNKNOWN
            ),
            samples=tuple(s for f in findings for s in f.samples(KEPT_LEVELS)),
            memory={"kills": _remember_kills(answers, ctx.memory.get("kills", {})), **asked.memory},
            shown=self._show_limits(findings),
        )

    def _show_limits(self, findings: Sequence[Finding]) -> dict[str, SubjectCells]:
        """The limits beside each level."""
        cells = {
            "warning": describe_memory_limits(self.warn),
            "critical": describe_memory_limits(self.crit),
        }
        return {f.subject: SubjectCells(cells=cells) for f in findings if f.values}

    def _judge_node_memory(self, node: str, answer: NodeProbe | Unreached, ctx: Context) -> Finding:
        if not isinstance(answer, NodeProbe):
            return silent_finding(node, answer)
        seen = answer.memory or Unread(kind="absent")
        if isinstance(seen, Unread):
            return unread_finding(node, seen)
        level = MemoryLevel(
            total=seen.total,
            available=seen.available,
            swap=seen.swap_total,
            swap_free=seen.swap_free,
        )
        before = ctx.memory.get("kills", {}).get(node)
        return note_kills(self._level_finding(node, level, ctx, node), _kill_count(answer), before)

    def _level_finding(self, subject: str, level: MemoryLevel, ctx: Context, node: str) -> Finding:
        past = () if ctx.one_shot else ctx.history(subject, "available_bytes", float(self.window))
        left = full_within(level, past, ctx.now, float(self.window))
        status, summary = judge_memory(level, left, self.warn, self.crit)
        return Finding(
            subject=subject,
            status=status,
            summary=summary,
            values={
                "used_percent": level.used_percent,
                "available_bytes": level.available,
                "size_bytes": level.total,
                "swap_used_percent": level.swap_used_percent,
                "full_in_seconds": left,
            },
            commands=tuple(one.on_node(node) if subject == node else one for one in _LOOKS)
            if status.bad
            else (),
            guidance=_guide_memory(node, level.used_percent) if status.bad else Guidance(),
            labels={"node": node},
        )


def read_memory() -> MemoryLevel:
    """This host's memory now, by psutil. Raises CannotTell."""
    try:
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    except (OSError, RuntimeError, ValueError) as error:
        raise CannotTell(f"memory cannot be read: {error}") from error
    return MemoryLevel(
        total=memory.total, available=memory.available, swap=swap.total, swap_free=swap.free
    )


def level_from_samples(numbers: Mapping[str, float]) -> MemoryLevel:
    """The level that stored samples tell, with a size that fits them."""
    free, swap = 100 - numbers["used_percent"], numbers.get("swap_used_percent")
    available = int(numbers.get("available_bytes", 0)) if free > 0 else 0
    total = max(1, round(100 * available / free)) if free > 0 else 1
    size, left = (0, 0) if swap is None else (10_000, 10_000 - round(100 * swap))
    return MemoryLevel(total=total, available=available, swap=size, swap_free=left)


def note_kills(finding: Finding, now: KillCount | None, before: Any) -> Finding:
    """The finding, with a warning if the kernel has killed processes for lack of memory since the
    last run of the check. After a reboot, the count starts again."""
    if now is None or not isinstance(before, list) or before[:1] != [now[0]]:
        return finding
    count = now[1] - int(before[1])
    if count <= 0:
        return finding
    text = f"the kernel killed {count} process{'es' * (count != 1)} because memory ran out"
    return replace(
        finding,
        status=get_worst_status([finding.status, Status.WARNING]),
        summary=f"{text}; now {finding.summary}",
        values={**finding.values, "oom_kills": count},
        commands=(
            look("dmesg -T | grep -iE 'out of memory|killed process' | tail | cat -v").on_node(
                finding.subject
            ),
            *finding.commands,
        ),
        guidance=Guidance(
            impact="What was killed does not come back; the job that it was part of may hang or end.",
            todo="`dmesg` below names them. If it says `Memory cgroup out of memory`, a job reached its"
            " own limit (--mem); otherwise the memory of the whole node was used up. If a process was your"
            " job's, ask for more memory or use less, and submit the job again if it ended. Administrators:"
            " if a process was a service of the node, start it again.",
            ask=f"say which processes the kernel killed on {finding.subject} because memory ran out",
        ),
    )


def _guide_memory(node: str, percent: float) -> Guidance:
    return Guidance(
        impact="When memory runs out, the kernel kills processes, the largest first; their jobs end or"
        " hang.",
        todo="`ps` below shows the processes that use most of it, `df` what files in /dev/shm use. Cancel"
        " a job of yours that is not needed (`scancel JOB`); ask the owners of the rest to do so.",
        ask=f"look who uses the memory of {node}: {percent:.0f}% of it is used",
    )


def full_within(
    level: MemoryLevel, past: Sequence[tuple[Instant, float]], now: Instant, window: float
) -> float | None:
    """Seconds until memory is full. None if less than half is used, because a job that loads its
    data is normal then."""
    if level.used_percent < 50:
        return None
    return project_full([*past, (now, float(level.available))], window)


def project_full(past: Sequence[tuple[Instant, float]], window: float) -> float | None:
    """Seconds until nothing is available, if the trend continues. None if there is no trend.

    The slope is the median over pairs that are half the history apart, so that one jump (a job that
    starts) is no trend. It needs five observations over a third of the window.
    """
    if len(past) < _MIN_LEVELS or get_elapsed_s(past[0][0], past[-1][0]) < window / 3:
        return None
    half = len(past) // 2
    slopes = sorted(_level_slope(a, b) for a, b in zip(past, past[half:], strict=False))
    slope = slopes[len(slopes) // 2]
    return past[-1][1] / -slope if slope < 0 else None


def judge_memory(
    level: MemoryLevel, left: float | None, warn: MemoryLimits, crit: MemoryLimits
) -> tuple[Status, str]:
    """The status by the stricter limit, and the text. It names every limit of that degree that is
    crossed."""
    text = f"{level.used_percent:g}% used, {size_text(level.available)} available"
    if level.swap_used_percent:
        text += f", {level.swap_used_percent:g}% of swap used"
    if left is not None and _is_full_soon(left, warn, crit):
        text += f", full in {duration_text(left)} if it goes on so"
    for status, limits in ((Status.CRITICAL, crit), (Status.WARNING, warn)):
        if crossed := _crossed_limits(level, left, limits):
            return status, f"{text} ({status.value} {' and '.join(crossed)})"
    return Status.OK, text


def _is_full_soon(left: float, *limits: MemoryLimits) -> bool:
    return any(one.full_in is not None and left <= one.full_in for one in limits)


def _crossed_limits(level: MemoryLevel, left: float | None, limits: MemoryLimits) -> list[str]:
    swap = level.swap_used_percent
    crossed = []
    if limits.used is not None and level.used_percent >= limits.used:
        crossed.append(f"from {limits.used}")
    if limits.available is not None and level.available < limits.available:
        crossed.append(f"below {limits.available}")
    if limits.swap_used is not None and swap is not None and swap >= limits.swap_used:
        crossed.append(f"from {limits.swap_used} of swap")
    if limits.full_in is not None and left is not None and left <= limits.full_in:
        crossed.append(f"when full within {limits.full_in}")
    return crossed


def describe_memory_limits(limits: MemoryLimits) -> str:
    """The limits in a few words: `from 90%, full within 15m`."""
    return ", ".join(
        [
            *([f"from {limits.used}"] if limits.used is not None else []),
            *([f"below {limits.available}"] if limits.available is not None else []),
            *([f"swap from {limits.swap_used}"] if limits.swap_used is not None else []),
            *([f"full within {limits.full_in}"] if limits.full_in is not None else []),
        ]
    )


def _level_slope(a: tuple[Instant, float], b: tuple[Instant, float]) -> float:
    return (b[1] - a[1]) / max(get_elapsed_s(a[0], b[0]), 1 / SECOND)


def _remember_kills(answers: Mapping[str, NodeProbe | Unreached], before: Any) -> dict[str, Any]:
    """The memory about every node that is still checked. A node without an answer keeps its former
    values."""
    known = {node: _kill_count(answer) or before.get(node) for node, answer in answers.items()}
    return {node: list(kills) for node, kills in known.items() if kills}


def _kill_count(answer: NodeProbe | Unreached) -> KillCount | None:
    """The node's boot, and how often its kernel has killed processes since then. None if the node
    did not say."""
    if not isinstance(answer, NodeProbe) or isinstance(answer.identity, Unread):
        return None
    seen = answer.memory
    if seen is None or isinstance(seen, Unread) or seen.oom_kills is None:
        return None
    return answer.identity.boot, seen.oom_kills
