"""The `host` check: one probe of each node, its memory, drives and tasks judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from sentinel.checks.host.clocks import ClockOffset, compare_clocks, judge_clock
from sentinel.checks.host.judge import (
    BAD_LOOKS,
    StalledPast,
    Trouble,
    judge_drives,
    judge_memory,
    judge_smart,
    judge_stalled,
    note_count,
    note_stalled,
)
from sentinel.checks.host.kernel_words import COUNTED, find_said_words
from sentinel.checks.host.leftovers import (
    find_held_memory,
    judge_engine,
    judge_held_memory,
)
from sentinel.checks.host.remedies import guide_host, suggest_host_commands
from sentinel.checks.nodes_asked import (
    ALL,
    find_mended,
    is_ignored_part,
    judge_choice,
    look_at_nodes,
)
from sentinel.checks.trial import WEEK_S, SilentTrial
from sentinel.core.clock import SECOND
from sentinel.core.declared import Metric, Panel
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.guidance import NO_GUIDANCE
from sentinel.core.host_parts import ClockSync, HostEngine, HostHardware, StalledThreads
from sentinel.core.hostlist import expand_printed
from sentinel.core.model import Finding, Report, Status, get_worst_status
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration, Rate, Size
from sentinel.nodes.probe import Cursor, KernelLog, NodeProbe, ProbeRequest, Unread
from sentinel.plugin import Check
from sentinel.slurm.job_states import is_paused

if TYPE_CHECKING:
    from sentinel.core.ports import Context
    from sentinel.nodes.probe import Section

Source = Literal["kernel", "memory", "drives", "smart", "tasks", "clock", "gpus", "dcgm"]
SECTIONS: Mapping[Source, tuple[Section, ...]] = {
    "kernel": ("kernel",),
    "memory": ("hardware",),
    "drives": ("hardware",),
    "smart": ("smart",),
    "tasks": ("stalled",),
    "clock": ("clock",),
    "gpus": ("gpu_memory", "gpu_processes"),
    "dcgm": ("dcgm",),
}
"""The sections of the probe that each source needs."""

OPTIONAL_SECTIONS = dict.fromkeys(("smart", "clock", "gpu_memory", "gpu_processes"), ("missing",))
"""Reasons for which a section may be unread: a node need not have the tool."""


class HostPast(Struct, kw_only=True, omit_defaults=True):
    """What is kept of a node. Times are in epoch seconds.

    `said`: what the kernel said last of each part, and when. `logged`: corrected errors in its log
    since the boot, by part. `counts`: corrected errors over time, by controller or part. `odd`:
    consecutive looks at a state that may pass. `off`: consecutive looks at a bad clock. `held`: of memory that GPUs hold for nobody. `deaf`: of an
    nv-hostengine that does not answer. `stalled`: threads in state D.
    """

    boot: str = ""  # Id of the last boot.
    cursor: Cursor | None = None  # Where reading of the log stopped.
    said: dict[str, tuple[float, Status, str]] = {}
    logged: dict[str, int] = {}
    counts: dict[str, list[tuple[float, int]]] = {}
    odd: dict[str, int] = {}
    off: int = 0
    held: int = 0
    deaf: int = 0
    stalled: dict[str, StalledPast] = {}


class Memory(Struct, kw_only=True, omit_defaults=True):
    """The memory about all nodes. `bad` are the subjects that the last run saw as bad. `trial` is
    that of the whole check."""

    nodes: dict[str, HostPast] = {}  # What is stored about each node, by name.
    bad: list[str] = []
    trial: SilentTrial | None = None


class HostCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Memory errors, failing drives, clocks that are off, tasks that hang, GPUs that nobody frees.

    nodes: A host list like node-[0-3],gpu08, or `all` that do not sleep; unset, this machine.
    skip: Sources that are not read: `kernel`, `memory`, `drives`, `smart`, `tasks`, `clock`, `gpus`,
        `dcgm`.
    ignore: Parts that are not told, as patterns: `md127`, `nvme*`, or with the node, `gpu07/memory`.
    corrected: Corrected errors of one memory controller or of the processors; more are told.
    offset: How far a clock may be from NTP's time, or from the other nodes'; more is told.
    gpu_memory: How much memory a GPU of an idle node may hold without a process.
    stalled: How long a task has to be in state D without having run.
    remember: How long an error that the kernel reported is told, unless the node boots before.
    trial: How long it only counts and wakes nobody, from its first run on.
    """

    EVERY: ClassVar[float] = 300
    TIMEOUT: ClassVar[float] = 60
    METRICS = (
        Metric(
            "corrected",
            "memory_corrected_errors",
            "Corrected errors of memory since the boot.",
            "",
            "",
            ("node",),
        ),
        Metric("stalled", "stalled_tasks", "Tasks in state D that do not run.", "", "", ("node",)),
    )
    PANEL: ClassVar[Panel] = "nodes"
    SOURCES = (
        "the kernel's messages, the counters of memory controllers, the states of arrays and NVMe "
        "drives, clocks, processes, memory of GPUs and DCGM, of this machine or of each node; as root `nvme` or `smartctl` there.",
    )
    RUNBOOK = "docs/host.md"

    nodes: str = ""
    skip: list[Source] = []
    ignore: list[str] = []
    corrected: Rate = Rate("100 in 1d")
    offset: Duration = Duration(1)
    gpu_memory: Size = Size(10**9)
    stalled: Duration = Duration(600)
    remember: Duration = Duration(86400)
    trial: Duration = Duration(WEEK_S)

    def __post_init__(self) -> None:
        judge_choice(self.nodes, "")
        if not self._sections:
            raise Invalid("nothing is left to look at; remove a source from it", "skip")

    @property
    def looks_into_nodes(self) -> bool:
        """Whether other nodes are checked (`nodes`)."""
        return bool(self.nodes)

    @property
    def _sections(self) -> tuple[Section, ...]:
        left = (sections for name, sections in SECTIONS.items() if name not in self.skip)
        return tuple(dict.fromkeys(section for sections in left for section in sections))

    def run(self, ctx: Context) -> Report:
        """A finding for each node, and one for each part that is bad or was bad in the last run.
        Raises CannotTell if there is no way to nodes, or if Slurm must be asked and does not
        answer."""
        memory = decode_memory(ctx.memory, Memory) or Memory()
        trial = memory.trial or SilentTrial(began=None if ctx.one_shot or memory.nodes else ctx.now)
        memory.trial = replace(trial, lasts=float(self.trial))
        cursors = {n: past.cursor for n, past in memory.nodes.items() if past.cursor}
        wants = ProbeRequest(parts=self._sections, cursors=cursors)
        asked, probes, findings = look_at_nodes(self.nodes, ctx, lambda _: wants)
        now = ctx.now.wall / SECOND
        offsets = {} if "clock" in self.skip else compare_clocks(probes)
        held = {n: find_held_memory(p, self.gpu_memory) for n, p in probes.items()}
        idle = _find_idle_nodes(ctx) if any(held.values()) else None
        for name, probe in probes.items():
            past = memory.nodes.setdefault(name, HostPast())
            left = judge_held_memory(held[name], None if idle is None else name in idle)
            findings += self._judge_host(name, probe, past, now, offsets.get(name), left)
        if not self.nodes or self.nodes == ALL:
            stay = {*probes, *(f.subject for f in findings)}
            memory.nodes = {n: p for n, p in memory.nodes.items() if n in stay}
        whole = [n for n, p in probes.items() if not _list_unseen(p, self._sections)]
        well, memory.bad = find_mended(memory.bad, findings, whole)
        findings += well
        return Report(
            findings=tuple(memory.trial.silence_findings(findings, ctx.now)),
            coverage=asked.nodes_coverage(whole),
            memory={**to_builtins(memory), **asked.memory},
        )

    def _judge_host(
        self,
        node: str,
        probe: NodeProbe,
        past: HostPast,
        now: float,
        offset: ClockOffset | None,
        left: Trouble | None,
    ) -> Iterator[Finding]:
        boot = past.boot if isinstance(probe.identity, Unread) else probe.identity.boot
        if boot != past.boot:
            past.boot, past.said, past.logged = boot, {}, {}
            past.odd, past.off, past.held, past.deaf, past.stalled = {}, 0, 0, 0, {}
        stuck, tasks = self._judge_tasks(probe, past, now)
        troubles = [
            *self._judge_kernel(probe, past, now),
            *self._judge_hardware(probe, past, now),
            *(judge_smart(probe.smart) if isinstance(probe.smart, Mapping) else ()),
            *self._judge_clock(probe, past, offset),
            *self._judge_leftovers(probe, past, left, now),
            *tasks,
        ]
        parts: dict[str, list[Trouble]] = {}
        for trouble in troubles:
            if not is_ignored_part(self.ignore, node, trouble[0]):
                parts.setdefault(trouble[0], []).append(trouble)
        for part, found in parts.items():
            yield _make_part_finding(node, part, found)
        yield _make_node_finding(node, probe, self._sections, stuck)

    def _judge_kernel(self, probe: NodeProbe, past: HostPast, now: float) -> Iterator[Trouble]:
        if isinstance(probe.kernel, KernelLog):
            up = 0.0 if isinstance(probe.identity, Unread) else probe.identity.uptime
            counted = isinstance(probe.hardware, HostHardware) and probe.hardware.memory
            for word in find_said_words(probe.kernel.lines):
                at = now - max(0.0, up - word.at) if up else now
                known = past.said.get(word.part)
                if word.status is COUNTED:
                    # The controllers count errors of memory themselves. A first look sees the
                    # whole boot, and counts what is young.
                    young = past.cursor is not None or now - at < self.corrected.window
                    if young and not (counted and word.part == "memory"):
                        past.logged[word.part] = past.logged.get(word.part, 0) + 1
                elif (
                    known is None or known[1].rank <= word.status.rank or self._is_over(known, now)
                ):
                    past.said[word.part] = at, word.status, word.text
            past.cursor = probe.kernel.cursor
        past.said = {n: s for n, s in past.said.items() if not self._is_over(s, now)}
        for part, (_, status, text) in past.said.items():
            yield part, status, text
        for part, count in past.logged.items():
            track = past.counts.setdefault(f"log {part}", [(now, 0)])
            rise = note_count(track, count, self.corrected.window, now)
            if rise > self.corrected.times:
                yield (
                    part,
                    Status.WARNING,
                    f"the kernel logged {rise} corrected errors; limit {self.corrected}",
                )

    def _is_over(self, said: tuple[float, Status, str], now: float) -> bool:
        return now - said[0] >= self.remember

    def _judge_hardware(self, probe: NodeProbe, past: HostPast, now: float) -> Iterator[Trouble]:
        if not isinstance(probe.hardware, HostHardware):
            return
        if "memory" not in self.skip:
            for controller in probe.hardware.memory:
                track = past.counts.setdefault(controller.name, [])
                if trouble := judge_memory(controller, track, self.corrected, now):
                    yield trouble
        if "drives" not in self.skip:
            yield from judge_drives(probe.hardware, past.odd)

    def _judge_clock(
        self, probe: NodeProbe, past: HostPast, offset: ClockOffset | None
    ) -> Iterator[Trouble]:
        sync = probe.clock if isinstance(probe.clock, ClockSync) else None
        found = list(judge_clock(sync, offset, self.offset))
        bad = any(status.bad for status, _ in found)
        past.off = past.off + 1 if bad else 0
        for status, text in found:
            if not status.bad or past.off >= BAD_LOOKS:
                yield "clock", status, text

    def _judge_leftovers(
        self, probe: NodeProbe, past: HostPast, left: Trouble | None, now: float
    ) -> Iterator[Trouble]:
        past.held = past.held + 1 if left else 0
        if left and past.held >= BAD_LOOKS:
            yield left
        if isinstance(probe.dcgm, HostEngine):
            found = list(judge_engine(probe.dcgm, past.counts, now))
            past.deaf = past.deaf + 1 if any(passes for passes, _ in found) else 0
            yield from (one for passes, one in found if not passes or past.deaf >= BAD_LOOKS)

    def _judge_tasks(
        self, probe: NodeProbe, past: HostPast, now: float
    ) -> tuple[int, list[Trouble]]:
        if not isinstance(probe.stalled, StalledThreads):
            return 0, []
        threads = probe.stalled.threads
        past.stalled = note_stalled(threads, past.stalled, now)
        stuck, trouble = judge_stalled(threads, past.stalled, self.stalled, now)
        return stuck, [trouble] if trouble else []


def _find_idle_nodes(ctx: Context) -> frozenset[str] | None:
    """The nodes that no job has, by Slurm; None if Slurm does not tell. Where jobs are watched anyway, a
    suspended one counts."""
    with suppress(CannotTell, Invalid):
        nodes, paused = ctx.slurm.nodes(), filter(is_paused, ctx.slurm.jobs())
        idle = {n.name for n in nodes if n.state == "IDLE" and "COMPLETING" not in n.flags}
        return frozenset(idle.difference(*(expand_printed(job.nodes) for job in paused)))
    return None


def _list_unseen(probe: NodeProbe, sections: Sequence[Section]) -> list[str]:
    """The requested sections that could not be read, or not whole, with the reasons."""
    unread = probe.unread_parts
    there = probe.stalled if isinstance(probe.stalled, StalledThreads) else StalledThreads()
    left = there.total - len(there.threads)
    return [f"tasks in state D not looked at: {left}"] * (left > 0) + [
        f"{name} not read ({part.kind_words}): {part.why}"
        for name, part in unread.items()
        if name in sections and part.kind not in OPTIONAL_SECTIONS.get(name, ())
    ]


def _make_part_finding(node: str, part: str, found: Sequence[Trouble]) -> Finding:
    status = get_worst_status(status for _, status, _ in found)
    texts = [text for _, _, text in sorted(found, key=lambda trouble: -trouble[1].rank)]
    return Finding(
        subject=visible(shortened(f"{node}/{part}", 200)),
        status=status,
        summary=visible(shortened("; ".join(texts), 400)),
        guidance=guide_host(node, part, texts[0], status) if status.bad else NO_GUIDANCE,
        labels={"node": node},
        commands=suggest_host_commands(node, part, texts[0], status),
    )


def _make_node_finding(
    node: str, probe: NodeProbe, sections: Sequence[Section], stuck: int
) -> Finding:
    blind = _list_unseen(probe, sections)
    parts, values = [], {}
    if isinstance(probe.hardware, HostHardware):
        there = probe.hardware
        values["corrected"] = sum(c.corrected for c in there.memory)
        parts.append(
            f"memory controllers: {len(there.memory)} (corrected errors: {values['corrected']}), "
            f"arrays: {len(there.raid)}, NVMe drives: {len(there.nvme)}"
        )
    if isinstance(probe.stalled, StalledThreads):
        values["stalled"] = stuck
        parts.append(f"tasks in state D: {probe.stalled.total}, stuck: {stuck}")
    for what, part in (
        ("no health of drives", probe.smart),
        ("nothing of the clock", probe.clock),
        ("nothing of GPUs", probe.gpu_memory),
    ):
        if isinstance(part, Unread) and part.kind == "missing":
            parts.append(f"{what}: {part.why}")
    return Finding(
        subject=node,
        status=Status.UNKNOWN if blind else Status.OK,
        summary=visible(shortened("; ".join([*blind, *parts]), 400)),
        values=values,
        labels={"node": node},
    )
