"""The `diag` check: requests diagnostics in waves, follows them, and judges their outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.checks.diag import archive, dispatch, probation, run_reports, runs
from sentinel.checks.diag.archived_runs import make_archived_run, read_archived_verdict
from sentinel.checks.diag.dispatch import SbatchOptions
from sentinel.checks.diag.known_runs import (
    DAY_S,
    explain_refusal,
    find_action_record,
    find_newest_outputs,
    find_suspect_nodes,
    get_submitters,
    is_cleared,
    is_never_requested,
    is_still_shown,
    list_unrequested_runs,
    read_cleared_times,
    read_queue,
    recall_runs,
    recall_verdicts,
    record_gpu_events,
)
from sentinel.checks.diag.probation import RETURN_INTEREST_S, NodeProbation, ProbationStep
from sentinel.checks.diag.runs import DiagRun, LastDiagVerdict
from sentinel.checks.users import own_user_name
from sentinel.core import hostlist
from sentinel.core.action_limits import Limits as Caps
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Node
from sentinel.core.declared import Panel
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.gpu_ledger import GpuEvent
from sentinel.core.model import ActionRequest, Coverage, Finding, Report, covered
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.stored_memory import decode_memory
from sentinel.core.values import Duration, Share, duration_text
from sentinel.nodes import node_waves
from sentinel.plugin import Check

MAX_FOREIGN_RUN_S = 6 * 3600
"""How many seconds a run that somebody else started may take until its output is complete."""


TEST_START_LIMIT_S = 300
"""Seconds within which the test of a reserved node has to begin. The reservation lasts as long
again after the longest possible test."""


class DiagCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    sbatch: SbatchOptions = SbatchOptions()
    share: Share = Share(10)
    fresh: Duration = Duration(12 * 3600)
    starts_within: Duration = Duration(2 * 3600)
    deepen: bool = True
    archive: FilePath = FilePath("")
    on_fail: Literal["tell", "drain"] = "tell"
    limits: Caps | None = None

    def __post_init__(self) -> None:
        if self.nodes not in node_waves.NODE_CHOICES:
            try:
                hostlist.expand_hostlist(self.nodes)
            except Invalid as error:
                raise Invalid(f"{error}; or idle, suspect, all, returned", "nodes") from None
        if self.archive and not self.archive.startswith("/"):
            raise Invalid(f"{self.archive!r} is no absolute path; begin it with /", "archive")
        if bool(self.command) != (self.test == "command"):
            raise Invalid(
                "belongs to `test: command`: the words that it runs, as a list", "command"
            )
        if (
            self.keep is not None
            and not self._max_test_s + 2 * TEST_START_LIMIT_S <= self.keep <= DAY_S
        ):
            least = duration_text(self._max_test_s + 2 * TEST_START_LIMIT_S)
            raise Invalid(f"is at least {least}, so that the test fits, and at most 1d", "keep")
        if self.share <= 0:
            raise Invalid("must be above 0%; one node at least is tested", "share")

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if self.on_fail == "tell":
            yield "limits", "they limit `on_fail: drain`, which is not set"
        back = self.nodes == "returned"
        if back:
            yield "fresh", "every node that returns is tested"
        else:
            yield "keep", "only `nodes: returned` are kept"
        if self.test != "dcgmi":
            yield "level", "only `test: dcgmi` has levels"
        if self.level == 4 or back or self.test != "dcgmi":
            why = "`level: 4` is the deepest" if self.level == 4 else "all are tested alike"
            yield "deepen", why

    def grants(self) -> Mapping[str, Caps | None]:
        """Dispatching needs no further permission, because the check exists for it. Draining needs
        a setting."""
        drains = {"drain": self.limits} if self.on_fail == "drain" else {}
        kept = {} if self.keep is None else {"probation": None, "release": None}
        return {"diag": None, **kept, **drains}

    def jobs_of(self) -> frozenset[str] | None:
        """The user who runs sentinel: the jobs of the check are that user's."""
        return frozenset({own_user_name()})

    @property
    def _max_test_s(self) -> int:
        """Seconds that a test of nodes that came back may take."""
        return self.sbatch.get_time_limit_s(self.level if self.test == "dcgmi" else 1)

    @property
    def archive_directory(self) -> str:
        """The directory of the outputs."""
        return str(self.archive) or archive.get_default_directory()

    def trusted_paths(self) -> list[str]:
        """The archive, whose outputs can drain nodes."""
        return [self.archive_directory]

    def run(self, ctx: Context) -> Report:
        """One finding per tested node. A command that checks once reads only the archive. Raises
        CannotTell."""
        archive.require_closed_archive(self.archive_directory)
        if ctx.one_shot:
            return self._report_archive(ctx)
        nodes = {n.name: n for n in ctx.slurm.nodes()}
        last, queue = recall_verdicts(ctx), read_queue(ctx)
        mine = get_submitters()
        active = [runs.update_from_queue(run, queue, ctx.now, mine) for run in recall_runs(ctx)]
        active += self._find_foreign_runs(ctx, active)
        ended, events, waiting = self._follow_runs(ctx, active, seen=queue is not None)
        last |= {one.node: one for one in ended}
        failed = [one for one in ended if one.outcome == "fail" and self.on_fail == "drain"]
        trouble = record_gpu_events(ctx, events)
        out, back = self._find_returned_nodes(ctx, nodes)
        steps = self._plan_probation_steps(ctx, nodes, last, waiting)
        last |= {s.kept.node: self._make_untested_verdict(ctx, s) for s in steps if s.lost}
        busy = [*(run.node for run in waiting), *(s.kept.node for s in steps)]
        wave = self._choose_next_nodes(ctx, nodes, last, busy, back) if ctx.due or back else []
        kept, begun = [s.kept for s in steps if not s.over], list[ActionRequest]()
        if self.keep is None or self.nodes != "returned":
            started = [self._make_diag_run(ctx, node, last) for node in wave]
        else:
            new = [
                probation.make_probation(n.name, self.keep, ",".join(mine), ctx.now) for n in wave
            ]
            begun, kept = [probation.request_probation(one) for one in new], [*kept, *new]
            tests = {s.kept.node: s.kept.name for s in steps if s.test}
            started = [self._make_diag_run(ctx, nodes[n], last, kept=at) for n, at in tests.items()]
            kept = probation.assign_test_runs(kept, started)
        found = self._make_node_findings(ctx, last, [*waiting, *started], kept)
        shown = {name: one for name, one in last.items() if is_still_shown(one, ctx)}
        subjects, lost = {*_collect_subjects(found), *shown}, waiting if queue is None else ()
        return Report(
            findings=(*found, *trouble),
            coverage=self._make_coverage(nodes.values(), subjects, lost),
            requests=(
                *map(run_reports.request_drain, failed),
                *(request for step in steps for request in step.requests),
                *begun,
                *map(self._make_run_request, [*started, *list_unrequested_runs(ctx, waiting)]),
            ),
            memory={
                "runs": to_builtins([*waiting, *started]),
                "last": to_builtins(shown),
                "looked": ctx.now.wall,
                "out": out,
                "back": {n: at for n, at in back.items() if n not in {w.name for w in wave}},
                "kept": to_builtins(kept),
            },
        )

    def _make_coverage(
        self, nodes: Iterable[Node], found: set[str], lost: Sequence[DiagRun]
    ) -> Coverage:
        """How many of these nodes have a result. `lost` are runs whose state is not known, because
        the queue cannot be read."""
        unseen = {run.node for run in lost}
        return node_waves.make_wave_coverage(
            list(nodes), self.nodes, self.sbatch.partition, found, unseen
        )

    def _find_foreign_runs(self, ctx: Context, mine: Sequence[DiagRun]) -> list[DiagRun]:
        """Runs of people (`sentinel diag run`) and of epilogs that have finished since the last
        look."""
        looked = ctx.memory.get("looked")
        if not isinstance(looked, int):
            return []
        known, newest = {run.out for run in mine}, find_newest_outputs(ctx)
        new = (
            f
            for f in archive.list_outputs(self.archive_directory)
            if f.at * SECOND >= looked - MAX_FOREIGN_RUN_S * SECOND
        )
        found = (
            make_archived_run(self.archive_directory, f)
            for f in new
            if f.at > newest.get(f.node, 0)
        )
        return [run for run in found if run.out not in known]

    def _follow_runs(
        self, ctx: Context, active: Sequence[DiagRun], *, seen: bool
    ) -> tuple[list[LastDiagVerdict], list[GpuEvent], list[DiagRun]]:
        """The verdicts of runs that have ended, their events for the ledger, and the runs that go
        on. No run is given up while the queue is not `seen`."""
        done = archive.find_finished_runs([run.out for run in active])
        ended, events, waiting = list[LastDiagVerdict](), list[GpuEvent](), list[DiagRun]()
        for run in active:
            if run.out in done:
                found, gpus = (
                    (archive.read_test_verdict(run.out), None)
                    if run.test
                    else archive.read_diag_verdict(run.out, run.level, run.gpus)
                )
                ended.append(run_reports.make_last_verdict(run, found, gpus, ctx.now))
                events += run_reports.make_gpu_events(run, found, gpus, ctx.now)
            elif why := explain_refusal(ctx, run) or (
                runs.explain_lost_run(run, ctx.slurm.job_end, ctx.now)
                if seen and not is_never_requested(ctx, run)
                else ""
            ):
                ended.append(run_reports.make_lost_verdict(run, why, ctx.now))
            else:
                waiting.append(run)
        return ended, events, waiting

    def _find_returned_nodes(
        self, ctx: Context, nodes: Mapping[str, Node]
    ) -> tuple[dict[str, int | None], dict[str, int]]:
        """The nodes that are out of service, and when each node that is not tested yet came back
        (µs UTC)."""
        if self.nodes != "returned":
            return {}, {}
        before = decode_memory(ctx.memory.get("out"), dict[str, int | None]) or {}
        new, out = probation.find_returned(before, [*nodes.values()])
        waiting = decode_memory(ctx.memory.get("back"), dict[str, int]) or {}
        young = {
            name: at
            for name, at in waiting.items()
            if name not in out and ctx.now.wall - at < RETURN_INTEREST_S * SECOND
        }
        return out, young | dict.fromkeys(new, ctx.now.wall)

    def _plan_probation_steps(
        self,
        ctx: Context,
        nodes: Mapping[str, Node],
        last: Mapping[str, LastDiagVerdict],
        waiting: Sequence[DiagRun],
    ) -> list[ProbationStep]:
        """The next step for every reserved node. Raises CannotTell."""
        kept = decode_memory(ctx.memory.get("kept"), list[NodeProbation]) or []
        found = {r.name: r for r in ctx.slurm.reservations()} if kept else {}
        tested, busy = dict[str, LastDiagVerdict](), {run.name for run in waiting}
        for one in kept:
            said = last.get(one.node)
            if one.run and one.run not in busy and said and said.at >= one.asked:
                tested[one.name] = said
        return [
            probation.plan_step(
                one,
                nodes.get(one.node),
                found.get(one.name),
                find_action_record(ctx, "probation", one.node, one.name),
                tested.get(one.name),
                ctx.now,
            )
            for one in kept
        ]

    def _choose_next_nodes(
        self,
        ctx: Context,
        nodes: Mapping[str, Node],
        last: Mapping[str, LastDiagVerdict],
        busy: Collection[str],
        back: Collection[str],
    ) -> list[Node]:
        skipped = {*busy}
        if self.nodes != "returned":
            skipped |= {*runs.find_fresh_nodes(last, ctx.now, self.fresh)}
        partition, all_ = self.sbatch.partition, [*nodes.values()]
        found = node_waves.list_candidates(
            all_, self.nodes, partition, find_suspect_nodes(ctx), back
        )
        ready = [n for n in found if n.name not in skipped]
        at_work = [nodes[name] for name in busy if name in nodes]
        return node_waves.choose_wave(ready, at_work, all_, self.share)

    def _make_diag_run(
        self, ctx: Context, node: Node, last: Mapping[str, LastDiagVerdict], kept: str = ""
    ) -> DiagRun:
        back, level = self.nodes == "returned", int(self.level)
        if self.deepen and not back and self.test == "dcgmi":
            passed = {n: one.level for n, one in last.items() if one.outcome == "pass"}
            level = node_waves.choose_level(node.name, level, find_suspect_nodes(ctx), passed)
        test = "" if self.test == "dcgmi" else self.test
        run = dispatch.make_run(
            node, level if not test else 1, self.archive_directory, self.sbatch, ctx.now, test
        )
        return replace(run, command=tuple(self.command), back=back, kept=kept)

    def _make_run_request(self, run: DiagRun) -> ActionRequest:
        within = float(TEST_START_LIMIT_S) if run.kept else self.starts_within
        return dispatch.request_run(run, self.sbatch, within)

    def _make_untested_verdict(self, ctx: Context, step: ProbationStep) -> LastDiagVerdict:
        node = Node(name=step.kept.node, state="")
        return run_reports.make_lost_verdict(self._make_diag_run(ctx, node, {}), step.lost, ctx.now)

    def _make_node_findings(
        self,
        ctx: Context,
        last: Mapping[str, LastDiagVerdict],
        active: Sequence[DiagRun],
        kept: Sequence[NodeProbation],
    ) -> list[Finding]:
        cleared = read_cleared_times(ctx)
        told = [
            run_reports.make_verdict_finding(one, ctx.now)
            for one in last.values()
            if is_still_shown(one, ctx) and not is_cleared(one, cleared)
        ]
        going = [run_reports.make_run_finding(run, ctx.now) for run in active]
        what = runs.format_test_name(self.level, "" if self.test == "dcgmi" else self.test)
        going += [
            probation.make_probation_finding(one, what, ctx.now) for one in kept if not one.run
        ]
        known = {finding.subject for finding in told}
        return [*told, *(f for f in going if f.subject not in known)]

    def _report_archive(self, ctx: Context) -> Report:
        """A report about the newest output of each node in question."""
        named = (
            set()
            if self.nodes in node_waves.NODE_CHOICES
            else set(hostlist.expand_hostlist(self.nodes))
        )
        newest = {
            f.node: f
            for f in archive.list_outputs(self.archive_directory)
            if not named or f.node in named
        }
        found = [
            run_reports.make_verdict_finding(
                read_archived_verdict(self.archive_directory, f), ctx.now
            )
            for f in newest.values()
        ]
        if not found:
            raise CannotTell(
                f"no output of dcgmi diag in {self.archive_directory}; see: sentinel diag run"
            )
        seen = _collect_subjects(found)
        return Report(findings=tuple(found), coverage=covered("nodes", named or seen, seen))


def _collect_subjects(found: Sequence[Finding]) -> set[str]:
    return {finding.subject for finding in found}
