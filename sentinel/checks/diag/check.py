"""The `diag` check: asks for diagnostics in waves, follows them, and reads what they prove."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.checks.diag import archive, choose, dispatch, probation, run_reports, runs
from sentinel.checks.diag.dispatch import SbatchOptions
from sentinel.checks.diag.probation import RETURN_INTEREST_S, NodeProbation, ProbationStep
from sentinel.checks.diag.run_reports import make_archived_run, read_archived_verdict
from sentinel.checks.diag.runs import DiagRun, LastDiagVerdict
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
from sentinel.core.settings import FilePath
from sentinel.core.stored_memory import decode_memory
from sentinel.core.values import Duration, Share, duration_text
from sentinel.plugin import Check

MAX_FOREIGN_RUN_S = 6 * 3600
"""Seconds that a run of somebody else may have taken before its output is complete."""

MAX_NODE_RECORDS = 20
"""Records of a node that are looked through."""

DAY_S = 86_400
VERDICT_SHOWN_S = 14 * DAY_S
"""Seconds for which a verdict is shown; that a node could not be tested when it came back, a day."""

TEST_START_LIMIT_S = 300
"""Seconds within which the test of a node that is kept has to begin; as long again it is kept when
the test ran as long as it may."""


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
        if self.nodes not in choose.NODE_CHOICES:
            try:
                hostlist.expand_hostlist(self.nodes)
            except Invalid as error:
                raise Invalid(f"{error}; or idle, suspect, all, returned", "nodes") from None
        if self.archive and not self.archive.startswith("/"):
            raise Invalid(f"{self.archive!r} is no absolute path; begin it with /", "archive")
        if bool(self.command) != (self.test == "command"):
            raise Invalid("is the list of words that `test: command` runs", "command")
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
    def _max_test_s(self) -> int:
        """Seconds that a test of nodes that came back may take."""
        return self.sbatch.get_time_limit_s(self.level if self.test == "dcgmi" else 1)

    @property
    def archive_directory(self) -> str:
        """Where the outputs lie."""
        return str(self.archive) or archive.get_default_directory()

    def run(self, ctx: Context) -> Report:
        """One finding per node tested. One-shot: by the archive alone. Raises CannotTell."""
        if ctx.one_shot:
            return self._report_archive(ctx)
        nodes = {n.name: n for n in ctx.slurm.nodes()}
        last, queue = _recall_verdicts(ctx), _read_queue(ctx)
        active = [runs.update_from_queue(run, queue, ctx.now) for run in _recall_runs(ctx)]
        active += self._find_foreign_runs(ctx, active)
        ended, events, waiting = self._follow_runs(ctx, active, seen=queue is not None)
        last |= {one.node: one for one in ended}
        failed = [one for one in ended if one.outcome == "fail"]
        drains = (
            [run_reports.request_drain(one) for one in failed] if self.on_fail == "drain" else []
        )
        trouble = _record_gpu_events(ctx, events)
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
                probation.make_probation(n.name, self.keep, _get_reservation_users(), ctx.now)
                for n in wave
            ]
            begun, kept = [probation.request_probation(one) for one in new], [*kept, *new]
            tests = {s.kept.node: s.kept.name for s in steps if s.test}
            started = [self._make_diag_run(ctx, nodes[n], last, kept=at) for n, at in tests.items()]
            kept = probation.assign_test_runs(kept, started)
        asked = [
            self._make_run_request(run) for run in (*started, *_list_unrequested_runs(ctx, waiting))
        ]
        found = self._make_node_findings(ctx, last, [*waiting, *started], kept)
        return Report(
            findings=(*found, *trouble),
            coverage=choose.make_wave_coverage(
                list(nodes.values()),
                self.nodes,
                self.sbatch.partition,
                {
                    *_collect_subjects(found),
                    *(n for n, one in last.items() if _is_still_shown(one, ctx)),
                },
                {run.node for run in waiting} if queue is None else (),
            ),
            requests=(*drains, *(r for s in steps for r in s.requests), *begun, *asked),
            memory={
                "runs": to_builtins([*waiting, *started]),
                "last": to_builtins({k: v for k, v in last.items() if _is_still_shown(v, ctx)}),
                "looked": ctx.now.wall,
                "out": out,
                "back": {n: at for n, at in back.items() if n not in {w.name for w in wave}},
                "kept": to_builtins(kept),
            },
        )

    def _find_foreign_runs(self, ctx: Context, mine: Sequence[DiagRun]) -> list[DiagRun]:
        """Runs of people (`sentinel diag run`) and of epilogs that came since the last look."""
        looked = ctx.memory.get("looked")
        if not isinstance(looked, int):
            return []
        known, newest = {run.out for run in mine}, _find_newest_outputs(ctx)
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
        """What has ended, what of it the ledger is told, and what is waited for still.

        No run is given up while the queue is not `seen`.
        """
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
            elif why := _explain_refusal(ctx, run) or (
                runs.explain_lost_run(run, ctx.slurm.job_end, ctx.now)
                if seen and not _is_never_requested(ctx, run)
                else ""
            ):
                ended.append(run_reports.make_lost_verdict(run, why, ctx.now))
            else:
                waiting.append(run)
        return ended, events, waiting

    def _find_returned_nodes(
        self, ctx: Context, nodes: Mapping[str, Node]
    ) -> tuple[dict[str, int | None], dict[str, int]]:
        """Who is out of service, and since when (µs UTC) who is back that was not tested yet."""
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
        """What comes next of every node that is kept. Raises CannotTell."""
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
                _find_action_record(ctx, "probation", one.node, one.name),
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
        found = choose.list_candidates(all_, self.nodes, partition, _find_suspect_nodes(ctx), back)
        ready = [n for n in found if n.name not in skipped]
        at_work = [nodes[name] for name in busy if name in nodes]
        return choose.choose_wave(ready, at_work, all_, self.share)

    def _make_diag_run(
        self, ctx: Context, node: Node, last: Mapping[str, LastDiagVerdict], kept: str = ""
    ) -> DiagRun:
        back, level = self.nodes == "returned", int(self.level)
        if self.deepen and not back and self.test == "dcgmi":
            passed = {n: one.level for n, one in last.items() if one.outcome == "pass"}
            level = choose.choose_level(node.name, level, _find_suspect_nodes(ctx), passed)
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
        cleared = _read_cleared_times(ctx)
        told = [
            run_reports.make_verdict_finding(one, ctx.now)
            for one in last.values()
            if _is_still_shown(one, ctx) and not _is_cleared(one, cleared)
        ]
        going = [run_reports.make_run_finding(run, ctx.now) for run in active]
        what = runs.format_test_name(self.level, "" if self.test == "dcgmi" else self.test)
        going += [
            probation.make_probation_finding(one, what, ctx.now) for one in kept if not one.run
        ]
        known = {finding.subject for finding in told}
        return [*told, *(f for f in going if f.subject not in known)]

    def _report_archive(self, ctx: Context) -> Report:
        """The newest output of each node that is asked for."""
        named = (
            set()
            if self.nodes in choose.NODE_CHOICES
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


def _read_queue(ctx: Context) -> Sequence[Job] | None:
    """The queue; None where it cannot be read: runs are then left as they are."""
    try:
        return ctx.slurm.jobs()
    except CannotTell:
        return None


def _find_action_record(ctx: Context, action: str, node: str, name: str) -> ActionRecord | None:
    """The newest record of such a wish; None: none was written."""
    if ctx.logbook is None:
        return None
    found = ctx.logbook.records(node, MAX_NODE_RECORDS)
    return next((r for r in found if r.action == action and r.params.get("name") == name), None)


def _explain_refusal(ctx: Context, run: DiagRun) -> str:
    """Why the guard or Slurm did not take it, by the log of actions."""
    record = None if run.job else _find_action_record(ctx, "diag", run.node, run.name)
    if record is None or record.outcome.has_effect:
        return ""
    said = record.why if record.rule else record.detail
    return f"not dispatched ({record.rule or record.outcome.value}): {said}"


def _is_never_requested(ctx: Context, run: DiagRun) -> bool:
    """Whether sentinel ended before it could ask for the test of a node that it keeps."""
    young = ctx.now.wall - run.asked < RETURN_INTEREST_S * SECOND
    return bool(run.kept and not run.job and young) and not _find_action_record(
        ctx, "diag", run.node, run.name
    )


def _list_unrequested_runs(ctx: Context, waiting: Sequence[DiagRun]) -> list[DiagRun]:
    old = [run for run in waiting if ctx.now.wall - run.asked > runs.QUEUE_GRACE_S * SECOND]
    return [run for run in old if _is_never_requested(ctx, run)]


def _get_reservation_users() -> str:
    """Who may use the reservation: whoever submits the tests, also through sudo."""
    from getpass import getuser

    return ",".join(sorted({"root", getuser()}))


def _record_gpu_events(ctx: Context, events: Sequence[GpuEvent]) -> list[Finding]:
    if ctx.gpus is None or not events:
        return []
    try:
        ctx.gpus.add_events(events)
    except StoreError as error:
        return [Finding(subject="ledger", status=Status.UNKNOWN, summary=str(error))]
    return []


def _find_suspect_nodes(ctx: Context) -> frozenset[str]:
    """Nodes that hold a GPU, or are one, of which the ledger thinks ill."""
    if ctx.gpus is None:
        return frozenset()
    try:
        standings = ctx.gpus.read_standings(ctx.now)
        bad = [ctx.gpus.read_entry(s) for s, held in standings.items() if held.judged != "good"]
    except StoreError as error:
        raise CannotTell(str(error)) from error
    return frozenset(entry.node for entry in bad if entry is not None)


def _read_cleared_times(ctx: Context) -> Mapping[str, int]:
    try:
        entries = ctx.gpus.read_entries() if ctx.gpus is not None else ()
    except StoreError:
        return {}
    return {entry.subject: entry.cleared for entry in entries if entry.cleared}


def _is_cleared(one: LastDiagVerdict, cleared: Mapping[str, int]) -> bool:
    """Somebody has cleared every GPU that it blames."""
    blamed = one.outcome == "fail" and bool(one.gpus)
    return blamed and all(cleared.get(uuid, 0) > one.at for uuid in one.gpus)


def _is_still_shown(one: LastDiagVerdict, ctx: Context) -> bool:
    untested = one.back and one.outcome == "inconclusive"
    return ctx.now.wall - one.at < (DAY_S if untested else VERDICT_SHOWN_S) * SECOND


def _recall_verdicts(ctx: Context) -> dict[str, LastDiagVerdict]:
    return dict(decode_memory(ctx.memory.get("last"), dict[str, LastDiagVerdict]) or {})


def _find_newest_outputs(ctx: Context) -> dict[str, int]:
    """When the output that was read last of each node was begun (epoch seconds)."""
    found = {
        n: archive.parse_output_name(os.path.basename(one.file))
        for n, one in _recall_verdicts(ctx).items()
    }
    return {node: file.at for node, file in found.items() if file}


def _recall_runs(ctx: Context) -> list[DiagRun]:
    return list(decode_memory(ctx.memory.get("runs"), list[DiagRun]) or [])
