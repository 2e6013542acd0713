"""The `diag` check: asks for diagnostics in waves, follows them, and reads what they prove."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.checks.diag import archive, choose, dispatch, probation, runs, telling
from sentinel.checks.diag.dispatch import Sbatch
from sentinel.checks.diag.probation import LATE, Kept, Step
from sentinel.checks.diag.runs import Last, Run
from sentinel.checks.diag.telling import last_in, run_in
from sentinel.core import hostlist
from sentinel.core.action_limits import Limits as Caps
from sentinel.core.actions import ActionRecord
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Job, Node
from sentinel.core.declared import Panel
from sentinel.core.errors import CannotTell, Invalid, StoreError
from sentinel.core.gpu_ledger import GpuEvent
from sentinel.core.model import ActionRequest, Finding, Report, Status, covered
from sentinel.core.ports import Context
from sentinel.core.recall import recalled
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration, Share, duration_text
from sentinel.plugin import Check

BACK = 6 * 3600
"""Seconds that a run of somebody else may have taken before its output is complete."""

RECENT = 20
"""Records of a node that are looked through."""

DAY = 86_400
KEPT = 14 * DAY
"""Seconds for which a verdict is shown; that a node could not be tested when it came back, a day."""

EARLY = 300
"""Seconds within which the test of a node that is kept has to begin; as long again it is kept when
the test ran as long as it may."""


class Diag(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """dcgmi diag over nodes, in waves.

    nodes: A host list, `idle`, `suspect` (with GPUs that failed before), `all`, or `returned`: those
        that have just come back to service.
    keep: So long at most a node that came back is kept from jobs, in a reservation, until it is tested.
    test: What is run: dcgmi diag, or a test of `sentinel nodes test`.
    command: What `test: command` runs on the node; it has to end with 0.
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
    keep: Duration | None = None
    test: Literal["dcgmi", "cuda", "gpu-memory", "command"] = "dcgmi"
    command: list[str] = []
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
                raise Invalid(f"{error}; or idle, suspect, all, returned", "nodes") from None
        if self.archive and not self.archive.startswith("/"):
            raise Invalid(f"{self.archive!r} is no absolute path; begin it with /", "archive")
        if bool(self.command) != (self.test == "command"):
            raise Invalid("is the list of words that `test: command` runs", "command")
        if self.keep is not None and not self._longest + 2 * EARLY <= self.keep <= DAY:
            least = duration_text(self._longest + 2 * EARLY)
            raise Invalid(f"is at least {least}, so that the test fits, and at most 1d", "keep")
        if self.share <= 0:
            raise Invalid("must be above 0%; one node at least is tested", "share")

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if self.on_fail == "tell":
            yield "limits", "they are those of `on_fail: drain`"
        back = self.nodes == "returned"
        if back:
            yield "fresh", "every node that returns is tested"
        else:
            yield "keep", "only `nodes: returned` are kept"
        if self.test != "dcgmi":
            yield "level", "it is dcgmi's"
        if self.level == 4 or back or self.test != "dcgmi":
            why = "`level: 4` is the deepest" if self.level == 4 else "all are tested alike"
            yield "deepen", why

    def grants(self) -> Mapping[str, Caps | None]:
        """Whoever configures it wants it dispatched; drains only where the settings say so."""
        drains = {"drain": self.limits} if self.on_fail == "drain" else {}
        kept = {} if self.keep is None else {"probation": None, "release": None}
        return {"diag": None, **kept, **drains}

    def jobs_of(self) -> frozenset[str] | None:
        """Its jobs are those of whoever runs sentinel."""
        from getpass import getuser

        return frozenset({getuser()})

    @property
    def _longest(self) -> int:
        """Seconds that a test of nodes that came back may take."""
        return self.sbatch.seconds(self.level if self.test == "dcgmi" else 1)

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
        out, back = self._returned(ctx, nodes)
        steps = self._steps(ctx, nodes, last, waiting)
        last |= {s.kept.node: self._untested(ctx, s) for s in steps if s.lost}
        busy = [*(run.node for run in waiting), *(s.kept.node for s in steps)]
        wave = self._wave(ctx, nodes, last, busy, back) if ctx.due or back else []
        kept, begun = [s.kept for s in steps if not s.over], list[ActionRequest]()
        if self.keep is None or self.nodes != "returned":
            started = [self._run_of(ctx, node, last) for node in wave]
        else:
            new = [probation.kept_from(n.name, self.keep, _users(), ctx.now) for n in wave]
            begun, kept = [probation.begin(one) for one in new], [*kept, *new]
            tests = {s.kept.node: s.kept.name for s in steps if s.test}
            started = [self._run_of(ctx, nodes[n], last, kept=at) for n, at in tests.items()]
            kept = probation.tested(kept, started)
        asked = [self._request(run) for run in (*started, *_unasked(ctx, waiting))]
        found = self._findings(ctx, last, [*waiting, *started], kept)
        return Report(
            findings=(*found, *trouble),
            coverage=choose.coverage(
                list(nodes.values()),
                self.nodes,
                self.sbatch.partition,
                {*_told(found), *(n for n, one in last.items() if _kept(one, ctx))},
                {run.node for run in waiting} if queue is None else (),
            ),
            requests=(*drains, *(r for s in steps for r in s.requests), *begun, *asked),
            memory={
                "runs": to_builtins([*waiting, *started]),
                "last": to_builtins({k: v for k, v in last.items() if _kept(v, ctx)}),
                "looked": ctx.now.wall,
                "out": out,
                "back": {n: at for n, at in back.items() if n not in {w.name for w in wave}},
                "kept": to_builtins(kept),
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
                found, gpus = (
                    (archive.tested(run.out), None)
                    if run.test
                    else archive.verdict(run.out, run.level, run.gpus)
                )
                ended.append(telling.last_of(run, found, gpus, ctx.now))
                events += telling.events(run, found, gpus, ctx.now)
            elif why := _refused(ctx, run) or (
                runs.lost(run, ctx.slurm.job_end, ctx.now)
                if seen and not _forgotten(ctx, run)
                else ""
            ):
                ended.append(telling.gone(run, why, ctx.now))
            else:
                waiting.append(run)
        return ended, events, waiting

    def _returned(
        self, ctx: Context, nodes: Mapping[str, Node]
    ) -> tuple[dict[str, int | None], dict[str, int]]:
        """Who is out of service, and since when (µs UTC) who is back that was not tested yet."""
        if self.nodes != "returned":
            return {}, {}
        before = recalled(ctx.memory.get("out"), dict[str, int | None]) or {}
        new, out = probation.returned(before, [*nodes.values()])
        waiting = recalled(ctx.memory.get("back"), dict[str, int]) or {}
        young = {
            name: at
            for name, at in waiting.items()
            if name not in out and ctx.now.wall - at < LATE * SECOND
        }
        return out, young | dict.fromkeys(new, ctx.now.wall)

    def _steps(
        self,
        ctx: Context,
        nodes: Mapping[str, Node],
        last: Mapping[str, Last],
        waiting: Sequence[Run],
    ) -> list[Step]:
        """What comes next of every node that is kept. Raises CannotTell."""
        kept = recalled(ctx.memory.get("kept"), list[Kept]) or []
        found = {r.name: r for r in ctx.slurm.reservations()} if kept else {}
        tested, busy = dict[str, Last](), {run.name for run in waiting}
        for one in kept:
            said = last.get(one.node)
            if one.run and one.run not in busy and said and said.at >= one.asked:
                tested[one.name] = said
        return [
            probation.step(
                one,
                nodes.get(one.node),
                found.get(one.name),
                _record(ctx, "probation", one.node, one.name),
                tested.get(one.name),
                ctx.now,
            )
            for one in kept
        ]

    def _wave(
        self,
        ctx: Context,
        nodes: Mapping[str, Node],
        last: Mapping[str, Last],
        busy: Collection[str],
        back: Collection[str],
    ) -> list[Node]:
        skipped = {*busy}
        if self.nodes != "returned":
            skipped |= {*runs.fresh(last, ctx.now, self.fresh)}
        partition, all_ = self.sbatch.partition, [*nodes.values()]
        found = choose.candidates(all_, self.nodes, partition, _suspects(ctx), back)
        ready = [n for n in found if n.name not in skipped]
        at_work = [nodes[name] for name in busy if name in nodes]
        return choose.wave(ready, at_work, all_, self.share)

    def _run_of(self, ctx: Context, node: Node, last: Mapping[str, Last], kept: str = "") -> Run:
        back, level = self.nodes == "returned", int(self.level)
        if self.deepen and not back and self.test == "dcgmi":
            passed = {n: one.level for n, one in last.items() if one.outcome == "pass"}
            level = choose.level_of(node.name, level, _suspects(ctx), passed)
        test = "" if self.test == "dcgmi" else self.test
        run = dispatch.run_of(
            node, level if not test else 1, self.place, self.sbatch, ctx.now, test
        )
        return replace(run, command=tuple(self.command), back=back, kept=kept)

    def _request(self, run: Run) -> ActionRequest:
        within = float(EARLY) if run.kept else self.starts_within
        return dispatch.request(run, self.sbatch, within)

    def _untested(self, ctx: Context, step: Step) -> Last:
        node = Node(name=step.kept.node, state="")
        return telling.gone(self._run_of(ctx, node, {}), step.lost, ctx.now)

    def _findings(
        self,
        ctx: Context,
        last: Mapping[str, Last],
        active: Sequence[Run],
        kept: Sequence[Kept],
    ) -> list[Finding]:
        cleared = _cleared(ctx)
        told = [
            telling.finding(one, ctx.now)
            for one in last.values()
            if _kept(one, ctx) and not _forgiven(one, cleared)
        ]
        going = [telling.under_way(run, ctx.now) for run in active]
        what = runs.named(self.level, "" if self.test == "dcgmi" else self.test)
        going += [probation.under_way(one, what, ctx.now) for one in kept if not one.run]
        known = {finding.subject for finding in told}
        return [*told, *(f for f in going if f.subject not in known)]

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


def _record(ctx: Context, action: str, node: str, name: str) -> ActionRecord | None:
    """The newest record of such a wish; None: none was written."""
    if ctx.logbook is None:
        return None
    found = ctx.logbook.records(node, RECENT)
    return next((r for r in found if r.action == action and r.params.get("name") == name), None)


def _refused(ctx: Context, run: Run) -> str:
    """Why the guard or Slurm did not take it, by the log of actions."""
    record = None if run.job else _record(ctx, "diag", run.node, run.name)
    if record is None or record.outcome.effective:
        return ""
    said = record.why if record.rule else record.detail
    return f"not dispatched ({record.rule or record.outcome.value}): {said}"


def _forgotten(ctx: Context, run: Run) -> bool:
    """Whether sentinel ended before it could ask for the test of a node that it keeps."""
    young = ctx.now.wall - run.asked < LATE * SECOND
    return bool(run.kept and not run.job and young) and not _record(ctx, "diag", run.node, run.name)


def _unasked(ctx: Context, waiting: Sequence[Run]) -> list[Run]:
    old = [run for run in waiting if ctx.now.wall - run.asked > runs.GRACE * SECOND]
    return [run for run in old if _forgotten(ctx, run)]


def _users() -> str:
    """Who may use the reservation: whoever submits the tests, also through sudo."""
    from getpass import getuser

    return ",".join(sorted({"root", getuser()}))


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
    untested = one.back and one.outcome == "inconclusive"
    return ctx.now.wall - one.at < (DAY if untested else KEPT) * SECOND


def _last(ctx: Context) -> dict[str, Last]:
    return dict(recalled(ctx.memory.get("last"), dict[str, Last]) or {})


def _newest(ctx: Context) -> dict[str, int]:
    """When the output that was read last of each node was begun (epoch seconds)."""
    found = {n: archive.file_of(os.path.basename(one.file)) for n, one in _last(ctx).items()}
    return {node: file.at for node, file in found.items() if file}


def _runs(ctx: Context) -> list[Run]:
    return list(recalled(ctx.memory.get("runs"), list[Run]) or [])
