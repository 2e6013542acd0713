"""The `diag` check: asks for diagnostics in waves, follows them, and reads what they prove."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from msgspec import to_builtins

from sentinel.actions.limits import Limits as Caps
from sentinel.checks.diag import archive, choose, dispatch, runs, telling
from sentinel.checks.diag.dispatch import Sbatch
from sentinel.checks.diag.runs import Last, Run
from sentinel.checks.diag.telling import last_in, run_in
from sentinel.core import hostlist
from sentinel.core.clock import SECOND
from sentinel.core.declared import Panel
from sentinel.core.errors import CannotTell, Invalid, StoreError
from sentinel.core.model import Finding, Report, Status, covered
from sentinel.core.ports import Context
from sentinel.core.recall import recalled
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration, Share
from sentinel.gpu.ledger import GpuEvent
from sentinel.plugin import Check
from sentinel.slurm.model import Job, Node

BACK = 6 * 3600
"""Seconds that a run of somebody else may have taken before its output is complete."""

RECENT = 20
"""Records of a node that are looked through."""

KEPT = 14 * 86_400
"""Seconds for which a verdict is shown."""


class Diag(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """dcgmi diag over nodes, in waves.

    nodes: A host list, `idle`, `suspect` (with GPUs that failed before) or `all`.
    level: The level of dcgmi diag, from 1 (minutes) to 4 (hours).
    sbatch: Options of the jobs that run it.
    share: So much of a partition is tested at once, one node at least.
    fresh: A node is left alone for so long after a test.
    starts_within: A job that has not started by then is cancelled.
    deepen: Level 4 for suspects that passed.
    archive: A directory that nodes and this host share, for every output; unset, one below your home.
    on_fail: Only tell of a node that fails, or drain it too, within `limits`.
    limits: Caps of draining; unset, those of the action.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 60
    FOLLOW: ClassVar[float] = 60
    KEEPS_GPUS: ClassVar[bool] = True
    PANEL: ClassVar[Panel] = "gpus"
    SOURCES = (
        "squeue and sinfo of slurmctld for nodes that can be tested; a batch job on each runs dcgmi "
        "diag, whose output is read from the archive.",
    )
    RUNBOOK = "docs/diag.md"

    nodes: str = "idle"
    level: Literal[1, 2, 3, 4] = 2
    sbatch: Sbatch = Sbatch()
    share: Share = Share(10)
    fresh: Duration = Duration(12 * 3600)
    starts_within: Duration = Duration(2 * 3600)
    deepen: bool = True
    archive: FilePath = FilePath("")
    on_fail: Literal["tell", "drain"] = "tell"
    limits: Caps | None = None

    def __post_init__(self) -> None:
        if self.nodes not in choose.WORDS:
            try:
                hostlist.expand(self.nodes)
            except Invalid as error:
                raise Invalid(f"{error}; or idle, suspect, all", "nodes") from None
        if self.archive and not self.archive.startswith("/"):
            raise Invalid(f"{self.archive!r} is no absolute path; begin it with /", "archive")
        if self.share <= 0:
            raise Invalid("must be above 0%; one node at least is tested", "share")

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if self.on_fail == "tell":
            yield "limits", "they are those of `on_fail: drain`"
        if self.level == 4:
            yield "deepen", "`level: 4` is the deepest"

    def grants(self) -> Mapping[str, Caps | None]:
        """Whoever configures it wants it dispatched; drains only where the settings say so."""
        drains = {"drain": self.limits} if self.on_fail == "drain" else {}
        return {"diag": None, **drains}

    def jobs_of(self) -> frozenset[str] | None:
        """Its jobs are those of whoever runs sentinel."""
        from getpass import getuser

        return frozenset({getuser()})

    @property
    def place(self) -> str:
        """Where the outputs lie."""
        return str(self.archive) or archive.usual_place()

    def run(self, ctx: Context) -> Report:
        """One finding per node tested. One-shot: by the archive alone. Raises CannotTell."""
        if ctx.one_shot:
            return self._by_archive(ctx)
        nodes = {n.name: n for n in ctx.slurm.nodes()}
        last, queue = _last(ctx), _jobs(ctx)
        active = [runs.in_queue(run, queue, ctx.now) for run in _runs(ctx)]
        active += self._by_others(ctx, active)
        ended, events, waiting = self._followed(ctx, active, seen=queue is not None)
        last |= {one.node: one for one in ended}
        failed = [one for one in ended if one.outcome == "fail"]
        drains = [telling.drain(one) for one in failed] if self.on_fail == "drain" else []
        trouble = _recorded(ctx, events)
        started = self._start(ctx, nodes, last, waiting) if ctx.due else []
        asked = [dispatch.request(run, self.sbatch, self.starts_within) for run in started]
        found = self._findings(ctx, last, [*waiting, *started])
        return Report(
            findings=(*found, *trouble),
            coverage=choose.coverage(
                list(nodes.values()),
                self.nodes,
                self.sbatch.partition,
                {*_told(found), *(n for n, one in last.items() if _kept(one, ctx))},
                {run.node for run in waiting} if queue is None else (),
            ),
            requests=(*drains, *asked),
            memory={
                "runs": to_builtins([*waiting, *started]),
                "last": to_builtins({k: v for k, v in last.items() if _kept(v, ctx)}),
                "looked": ctx.now.wall,
            },
        )

    def _by_others(self, ctx: Context, mine: Sequence[Run]) -> list[Run]:
        """Runs of people (`sentinel diag run`) and of epilogs that came since the last look."""
        looked = ctx.memory.get("looked")
        if not isinstance(looked, int):
            return []
        known, newest = {run.out for run in mine}, _newest(ctx)
        new = (f for f in archive.files(self.place) if f.at * SECOND >= looked - BACK * SECOND)
        found = (run_in(self.place, f) for f in new if f.at > newest.get(f.node, 0))
        return [run for run in found if run.out not in known]

    def _followed(
        self, ctx: Context, active: Sequence[Run], *, seen: bool
    ) -> tuple[list[Last], list[GpuEvent], list[Run]]:
        """What has ended, what of it the ledger is told, and what is waited for still.

        No run is given up while the queue is not `seen`.
        """
        done = archive.finished([run.out for run in active])
        ended, events, waiting = list[Last](), list[GpuEvent](), list[Run]()
        for run in active:
            if run.out in done:
                found, gpus = archive.verdict(run.out, run.level, run.gpus)
                ended.append(telling.last_of(run, found, gpus, ctx.now))
                events += telling.events(run, found, gpus, ctx.now)
            elif why := _refused(ctx, run) or (
                runs.lost(run, ctx.slurm.job_end, ctx.now) if seen else ""
            ):
                ended.append(telling.gone(run, why, ctx.now))
            else:
                waiting.append(run)
        return ended, events, waiting

    def _start(
        self,
        ctx: Context,
        nodes: Mapping[str, Node],
        last: Mapping[str, Last],
        active: Sequence[Run],
    ) -> list[Run]:
        suspects = _suspects(ctx)
        busy = {run.node for run in active}
        skipped = busy | set(runs.fresh(last, ctx.now, self.fresh))
        passed = {n: one.level for n, one in last.items() if one.outcome == "pass"}
        partition = self.sbatch.partition
        found = choose.candidates(list(nodes.values()), self.nodes, partition, suspects)
        deeper = set(suspects) if self.deepen else set()
        ready = [n for n in found if n.name not in skipped]
        at_work = [nodes[name] for name in busy if name in nodes]
        wave = choose.wave(ready, at_work, list(nodes.values()), self.share)
        return [
            dispatch.run_of(
                node,
                choose.level_of(node.name, self.level, deeper, passed),
                self.place,
                self.sbatch,
                ctx.now,
            )
            for node in wave
        ]

    def _findings(
        self, ctx: Context, last: Mapping[str, Last], active: Sequence[Run]
    ) -> list[Finding]:
        cleared = _cleared(ctx)
        told = [
            telling.finding(one, ctx.now)
            for one in last.values()
            if _kept(one, ctx) and not _forgiven(one, cleared)
        ]
        known = {finding.subject for finding in told}
        return [*told, *(telling.under_way(r, ctx.now) for r in active if r.node not in known)]

    def _by_archive(self, ctx: Context) -> Report:
        """The newest output of each node that is asked for."""
        named = set() if self.nodes in choose.WORDS else set(hostlist.expand(self.nodes))
        newest = {f.node: f for f in archive.files(self.place) if not named or f.node in named}
        found = [telling.finding(last_in(self.place, f), ctx.now) for f in newest.values()]
        if not found:
            raise CannotTell(f"no output of dcgmi diag in {self.place}; see: sentinel diag run")
        seen = _told(found)
        return Report(findings=tuple(found), coverage=covered("nodes", named or seen, seen))


def _told(found: Sequence[Finding]) -> set[str]:
    return {finding.subject for finding in found}


def _jobs(ctx: Context) -> Sequence[Job] | None:
    """The queue; None where it cannot be read: runs are then left as they are."""
    try:
        return ctx.slurm.jobs()
    except CannotTell:
        return None


def _refused(ctx: Context, run: Run) -> str:
    """Why the guard or Slurm did not take it, by the log of actions."""
    if run.job or ctx.logbook is None:
        return ""
    for record in ctx.logbook.records(run.node, RECENT):
        mine = record.action == "diag" and record.params.get("name") == run.name
        if mine and not record.outcome.effective:
            said = record.why if record.rule else record.detail
            return f"not dispatched ({record.rule or record.outcome.value}): {said}"
    return ""


def _recorded(ctx: Context, events: Sequence[GpuEvent]) -> list[Finding]:
    if ctx.gpus is None or not events:
        return []
    try:
        ctx.gpus.record(events)
    except StoreError as error:
        return [Finding(subject="ledger", status=Status.UNKNOWN, summary=str(error))]
    return []


def _suspects(ctx: Context) -> frozenset[str]:
    """Nodes that hold a GPU, or are one, of which the ledger thinks ill."""
    if ctx.gpus is None:
        return frozenset()
    try:
        standings = ctx.gpus.standings(ctx.now)
        bad = [ctx.gpus.entry(s) for s, held in standings.items() if held.judged != "good"]
    except StoreError as error:
        raise CannotTell(str(error)) from error
    return frozenset(entry.node for entry in bad if entry is not None)


def _cleared(ctx: Context) -> Mapping[str, int]:
    try:
        entries = ctx.gpus.entries() if ctx.gpus is not None else ()
    except StoreError:
        return {}
    return {entry.subject: entry.cleared for entry in entries if entry.cleared}


def _forgiven(one: Last, cleared: Mapping[str, int]) -> bool:
    """Somebody has cleared every GPU that it blames."""
    blamed = one.outcome == "fail" and bool(one.gpus)
    return blamed and all(cleared.get(uuid, 0) > one.at for uuid in one.gpus)


def _kept(one: Last, ctx: Context) -> bool:
    return ctx.now.wall - one.at < KEPT * SECOND


def _last(ctx: Context) -> dict[str, Last]:
    return dict(recalled(ctx.memory.get("last"), dict[str, Last]) or {})


def _newest(ctx: Context) -> dict[str, int]:
    """When the output that was read last of each node was begun (epoch seconds)."""
    found = {n: archive.file_of(os.path.basename(one.file)) for n, one in _last(ctx).items()}
    return {node: file.at for node, file in found.items() if file}


def _runs(ctx: Context) -> list[Run]:
    return list(recalled(ctx.memory.get("runs"), list[Run]) or [])
