"""The `gpu` check: probes each node once, judges its GPUs one by one, and keeps the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.checks.gpu import cards, lemon, local, open_xids, recorder, signals, words
from sentinel.checks.gpu.judge import CRIT, WARN, Limits
from sentinel.checks.gpu.recorder import Busy
from sentinel.checks.gpu.round import (
    Book,
    Round,
    findings,
    keep_book,
    lemon_findings,
    lemons,
    remembered,
)
from sentinel.checks.gpu.sight import Sight, logged, named, plain, sight_of
from sentinel.checks.gpu.unseen import told, unseen
from sentinel.checks.nodes_asked import (
    ALL,
    ChosenNodes,
    choose_nodes,
    judge_choice,
    probe_nodes,
    silent_finding,
)
from sentinel.core.action_limits import Limits as Caps
from sentinel.core.declared import Metric, Panel
from sentinel.core.errors import CannotTell, Invalid, StoreError
from sentinel.core.gpu_ledger import GpuEvent
from sentinel.core.model import Finding, Report, Status
from sentinel.core.node_answers import Garbage, describe_unreached
from sentinel.core.settings import FilePath
from sentinel.core.shown import Column
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import visible
from sentinel.core.values import Duration
from sentinel.nodes.probe import Cursor, NodeProbe, ProbeRequest, Unread
from sentinel.plugin import Check
from sentinel.slurm import gres

if TYPE_CHECKING:
    from sentinel.core.cluster import Node
    from sentinel.core.node_answers import Unreached
    from sentinel.core.ports import Context

RECENT = 200
"""How many of the newest records of actions are searched for nodes that were returned to
service."""

KEPT = ("temperature_c", "power_w", "utilization_percent", "ecc_uncorrected_life")
"""Values whose history is stored."""


class GpuCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """GPUs that are missing, failing, hot, or known lemons.

    nodes: A host list, or `all` that do not sleep (those with GPUs in Slurm, where any has some);
        unset, this machine.
    vendor: Whose GPUs; `amd` is experimental.
    expect: How many GPUs a node has to have; unset, Slurm's Gres says it.
    warn: The limits of a warning.
    crit: The limits of what is critical.
    remember: An Xid stays bad until it is repaired, so long at the most.
    dmon: Files of the recorder (nvidia-smi dmon).
    busy: What a GPU at work does, by these files.
    signals: Keep in the ledger what Slurm says against nodes.
    drain: Drain nodes that hold a lemon, within `limits`.
    limits: Caps of draining; unset, those of the action.
    """

    EVERY: ClassVar[float] = 300
    TIMEOUT: ClassVar[float] = 120
    KEEPS_GPUS: ClassVar[bool] = True
    METRICS = (
        Metric(
            "temperature_c",
            "gpu_temperature_celsius",
            "Its temperature.",
            "celsius",
            "gpu",
            ("node",),
        ),
        Metric(
            "utilization_percent",
            "gpu_utilization_ratio",
            "How busy, 0 to 1.",
            "percent",
            "gpu",
            ("node",),
        ),
        Metric(
            "memory_used_bytes",
            "gpu_memory_used_bytes",
            "Its memory in use.",
            "bytes",
            "gpu",
            ("node",),
        ),
        Metric(
            "ecc_uncorrected",
            "gpu_ecc_uncorrected_errors",
            "Since the driver was loaded.",
            "",
            "gpu",
            ("node",),
        ),
    )
    PANEL: ClassVar[Panel] = "gpus"
    COLUMNS = (
        Column("node", "node"),
        Column("slot", "slot", "slot"),
        Column("model", "model", "word", optional=True),
        Column("heat", "temperature_c", "celsius"),
        Column("busy", "utilization_percent", "share"),
        Column("memory", "memory_used_bytes", "size"),
        Column("watts", "power_w", "count", optional=True),
        Column("ECC errors", "ecc_uncorrected_life", "count", optional=True),
        Column("status", "status", "status"),
        Column("gpu", "subject", optional=True),
    )
    SOURCES = (
        "nvidia-smi (or amd-smi) of this machine or of each node, and its kernel's messages.",
        "Slurm's Gres for how many there should be; with `signals` accounting for failed jobs.",
    )
    RUNBOOK = "docs/gpu.md"

    nodes: str = ""
    vendor: Literal["nvidia", "amd"] = "nvidia"
    expect: int | None = None
    warn: Limits = WARN
    crit: Limits = CRIT
    remember: Duration = Duration(86_400)
    dmon: list[FilePath] = []
    busy: Busy = Busy()
    signals: bool = True
    drain: bool = False
    limits: Caps | None = None

    def __post_init__(self) -> None:
        judge_choice(self.nodes, "")
        if self.expect is not None and not 1 <= self.expect <= 64:
            raise Invalid("a node has 1 to 64 GPUs", "expect")
        for name in Limits.__struct_fields__:
            early, late = getattr(self.warn, name), getattr(self.crit, name)
            if early is not None and late is not None and early > late:
                text = f"warns at {early:g} but is critical at {late:g} already"
                raise Invalid(text, "warn", name)
        for number, path in enumerate(self.dmon):
            if not path.startswith("/"):
                raise Invalid(f"{path!r} is no absolute path; begin it with /", "dmon", number)

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if not self.drain:
            yield "limits", "no node is drained without `drain: true`"
        if not self.dmon:
            yield "busy", "it judges the files of `dmon`; name them"
        if not self.nodes:
            yield "signals", "Slurm is asked about `nodes`, not about this machine"

    def grants(self) -> Mapping[str, Caps | None]:
        """The action `drain` for nodes with lemons, if the settings allow it."""
        return {"drain": self.limits} if self.drain else {}

    def jobs_of(self) -> frozenset[str] | None:
        """Everybody's jobs, because exclusion lists and failed jobs are signals. None if signals
        are off."""
        return None if self.signals and self.nodes else frozenset()

    def run(self, ctx: Context) -> Report:
        """A finding for each GPU that was seen or is missing, and for each node that gave no
        answer. Raises CannotTell."""
        slurm = self._slurm(ctx)
        asked = self._asked(ctx)
        sights, silences = self._look(asked.names, ctx, slurm)
        this = Round(
            expect=self.expect,
            warn=self.warn,
            crit=self.crit,
            now=ctx.now,
            sights=sights,
            slurm=slurm,
            memory=ctx.memory,
            one_shot=ctx.one_shot,
        )
        events, memory = self._signals(ctx, slurm)
        before = open_xids.remembered(ctx.memory)
        book = keep_book(ctx.gpus, this, events, before)
        opened = open_xids.updated(
            open_xids.kept(before, book.forgotten),
            this.sights,
            book.cleared,
            ctx.now,
            self.remember,
        )
        found = [*findings(this, book, opened), *lemon_findings(this, book)]
        found += words.findings(sights)
        if ctx.one_shot and not self.nodes:
            name = local.name()
            found += cards.findings(name, local.log(ctx.limit / 4, None))
        found += self._others(silences, book, ctx)
        bad = plain(ctx.memory, "told")
        found += unseen(bad, found, sights, {*sights, *silences, *slurm})
        memory |= {"told": told(found, bad), **asked.memory}
        return Report(
            findings=tuple(found),
            coverage=asked.nodes_coverage(n for n, s in sights.items() if this.saw(s)),
            requests=tuple(lemon.requests(lemons(this, book), slurm)) if self.drain else (),
            samples=tuple(s for f in found for s in f.samples(KEPT)),
            memory=remembered(this, opened, ctx.gpus is not None, memory),
        )

    def _asked(self, ctx: Context) -> ChosenNodes:
        here = (local.name(),)
        if not self.nodes:
            return ChosenNodes(meant=here, names=here)
        return choose_nodes(self.nodes, "", None, ctx, of=_with_gpus)

    def _look(
        self, names: Sequence[str], ctx: Context, slurm: Mapping[str, Node]
    ) -> tuple[dict[str, Sight], Mapping[str, Unreached]]:
        """What each node reports, and the nodes that gave no answer."""
        name, cursors = names[0] if names else "", _cursors(ctx.memory)
        if self.vendor == "amd":
            return self._amd(names, ctx)
        if not self.nodes:
            here = local.here(ctx.limit, cursors.get(name))
            return _sights({name: here}, ctx, self.remember), {}
        told = probe_nodes(ctx, names, ProbeRequest(parts=("gpus", "kernel"), cursors=cursors))
        known = {node.lower() for node in (*names, *slurm)}
        answers = {node: _own(node, answer, known) for node, answer in told.items()}
        silent = {n: a for n, a in answers.items() if not isinstance(a, NodeProbe)}
        return _sights(answers, ctx, self.remember), silent

    def _amd(
        self, names: Sequence[str], ctx: Context
    ) -> tuple[dict[str, Sight], Mapping[str, Unreached]]:
        """What each node with AMD GPUs reports, and the nodes that gave no answer. amd-smi does not
        report what is in the kernel's log, so both are read."""
        from sentinel.checks.gpu import amd_sight

        cursors = _cursors(ctx.memory)
        logs: Mapping[str, NodeProbe | Unreached]
        if self.nodes:
            sights, silent = amd_sight.sights(names, ctx)
            logs = probe_nodes(ctx, list(sights), ProbeRequest(parts=("kernel",), cursors=cursors))
        else:
            name = names[0]
            sights, silent = {name: amd_sight.here(name, ctx.limit)}, {}
            logs = {name: local.log(ctx.limit / 4, cursors.get(name))}
        for name, log in logs.items():
            if isinstance(log, NodeProbe):
                first = name not in cursors
                sights[name] = logged(sights[name], log, ctx.now, self.remember, first)
            else:
                blind = f"the kernel's log was not read: {describe_unreached(log)}"
                sights[name] = replace(sights[name], log_blind=blind)
        return sights, silent

    def _slurm(self, ctx: Context) -> Mapping[str, Node]:
        """Slurm's nodes by name. Empty for this machine alone, or if Slurm does not answer and is
        not needed to say which nodes are meant. Raises CannotTell if it is."""
        try:
            nodes = ctx.slurm.nodes() if self.nodes else ()
            return {n.name: n for n in (_with_gpus(nodes) if self.nodes == ALL else nodes)}
        except CannotTell:
            if self.nodes == ALL:
                raise
            return {}

    def _signals(
        self, ctx: Context, slurm: Mapping[str, Node]
    ) -> tuple[list[GpuEvent], dict[str, Any]]:
        """Slurm's events against nodes, and the jobs to ask about in the next run."""
        if not (self.signals and slurm and ctx.gpus is not None):
            return [], {"drained": ctx.memory.get("drained", {})}
        records = ctx.logbook.records(limit=RECENT) if ctx.logbook is not None else ()
        earlier = ctx.memory.get("drained")
        known = decode_memory(earlier, dict[str, signals.Drain]) or {}
        drained = signals.find_drains(slurm.values(), known)
        memory = {"drained": to_builtins(drained)}
        events = [*signals.drains(drained), *signals.undrains(records)]
        try:
            jobs = ctx.slurm.jobs()
        except CannotTell:
            return events, {**memory, "running": ctx.memory.get("running", [])}
        before = decode_memory(ctx.memory.get("running"), list[signals.Running]) or []
        events += [
            *signals.exclusions(jobs, len(slurm), ctx.now),
            *signals.failures(before, jobs, ctx.slurm.job_end, ctx.now),
        ]
        now = signals.running(jobs, slurm.values())
        waiting = signals.waiting(before, jobs)
        return events, {
            **memory,
            "running": to_builtins([*{one.job_id: one for one in [*now, *waiting]}.values()]),
        }

    def _others(
        self, silences: Mapping[str, Unreached], book: Book, ctx: Context
    ) -> Iterator[Finding]:
        for name, answer in silences.items():
            unseen = f"its GPUs are not seen: {describe_unreached(answer)}"
            yield replace(silent_finding(name, answer), summary=unseen)
        if book.trouble:
            yield Finding(subject="ledger", status=Status.UNKNOWN, summary=book.trouble)
        yield from recorder.look([str(p) for p in self.dmon], self.busy, ctx.limit / 4)


def _with_gpus(nodes: Sequence[Node]) -> Sequence[Node]:
    """Nodes with GPUs in Slurm; all nodes if none has any, since then nobody has configured
    Gres."""
    return [n for n in nodes if gres.count_gres_gpus(n.gres) != 0] or nodes


def _sights(
    answers: Mapping[str, NodeProbe | Unreached], ctx: Context, remember: float
) -> dict[str, Sight]:
    seen = plain(ctx.memory, "cursors")
    sights = {
        name: sight_of(name, answer, ctx.now, remember, first=name not in seen)
        for name, answer in answers.items()
        if isinstance(answer, NodeProbe)
    }
    return {n: named(s, _slots(n, ctx)) if s.nameless else s for n, s in sights.items()}


def _slots(node: str, ctx: Context) -> dict[str, str]:
    """The UUID of the GPU in each slot of the node, as the ledger last saw them."""
    try:
        entries = ctx.gpus.read_entries(node) if ctx.gpus is not None else ()
    except StoreError:
        return {}
    by_age = sorted(entries, key=lambda e: e.seen.wall)
    return {e.slot: e.subject for e in by_age if e.slot and not e.is_node}


def _own(node: str, answer: NodeProbe | Unreached, known: Set[str]) -> NodeProbe | Unreached:
    """The answer, or Garbage if another known node answered: a name that leads to another node
    would move that node's GPUs in the ledger."""
    if not isinstance(answer, NodeProbe) or isinstance(answer.identity, Unread):
        return answer
    full = answer.identity.hostname.lower()
    names = {full, full.partition(".")[0]}
    if node.lower() in names or not names & known:
        return answer
    return Garbage(f"{visible(answer.identity.hostname)} answered in its place")


def _cursors(memory: Mapping[str, Any]) -> dict[str, Cursor]:
    found = {n: decode_memory(raw, Cursor) for n, raw in plain(memory, "cursors").items()}
    return {node: cursor for node, cursor in found.items() if cursor}
