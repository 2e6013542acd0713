"""The `drained` check: asks every fitting node once, proves, and asks for what its settings allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks import hanging
from sentinel.checks.drained import proof, verdict
from sentinel.checks.drained.node_evidence import (
    NodeEvidence,
    ProofItem,
    ProofRules,
    ReasonHistory,
    RunningJobs,
    filter_log_lines,
    filter_node_lines,
    format_last_lines,
    parse_reason_histories,
)
from sentinel.checks.drained.proof import can_ask_node
from sentinel.checks.drained.reasons import has_prefix
from sentinel.checks.passing import PassingNode, follow_passages
from sentinel.core import hostlist
from sentinel.core.action_limits import Limits
from sentinel.core.clock import SECOND, get_elapsed_s
from sentinel.core.cluster import has_processes, process_job_ids
from sentinel.core.declared import Metric, Panel
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import ActionRequest, Finding, Report, Status, covered
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.stored_memory import decode_memory
from sentinel.core.values import Duration
from sentinel.nodes.probe import NodeProbe, ProbeRequest
from sentinel.plugin import Check
from sentinel.slurm.drain_reasons import KILL

if TYPE_CHECKING:
    from sentinel.core.cluster import Job, Node
    from sentinel.core.node_answers import Answer, Unreached

MIN_PREFIX_CHARS = 4


class DrainedMemory(Struct, frozen=True, kw_only=True):
    """What is remembered: who was asked back, by the time of the reason; whom people heard of; whom
    the last look could not judge for its moment only; since when nodes are completing."""

    asked: dict[str, int | None] = {}
    told: tuple[str, ...] = ()
    moment: tuple[str, ...] = ()
    passing: dict[str, PassingNode] = {}


class DrainedCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes that Slurm drained: proven clean and given back, or why not; and nodes that do not end a
    job for longer than `completing`.

    reasons: How the reasons begin that are meant; four letters each at least.
    undrain: Whether nodes that are proven clean are given back.
    clean_up: Whether what the failed job left running is ended first.
    reboot: Whether nodes whose tasks stay in state D are rebooted.
    reboot_after: So long tasks may be in state D before that.
    completing: A node that takes longer to end a job is told too, drained or not.
    limits: Caps of these actions; unset, those of each action.
    ignore_users: Who may have processes there: administrators and monitoring.
    first_uid: Users begin with this number; below are the system's (login.defs(5), UID_MIN).
    expect_gpus: How many GPUs have to be there; unset, Slurm's Gres says it.
    xids: Whether the driver must have reported no error since an hour before the drain.
    proofs: Commands on the node, by name, that must end with 0.
    slurmctld_log: A log on this host with reasons that sentinel did not see; it has to be readable.
    slurmd_log: A log on the nodes that is shown beside the proof where it can be read.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 150
    METRICS = (
        Metric("clean", "drained_clean", "1 where the node is proven clean.", "", "", ("node",)),
    )
    PANEL: ClassVar[Panel] = "nodes"
    SOURCES = (
        "sinfo of slurmctld for drained nodes and their reasons.",
        "Each of these nodes for its processes, GPUs, kernel messages and mounts, and `proofs`.",
    )
    RUNBOOK = "docs/drained.md"

    reasons: list[str] = field(default_factory=lambda: [KILL])
    undrain: bool = False
    clean_up: bool = False
    reboot: bool = False
    reboot_after: Duration = Duration(3600)
    completing: Duration = Duration(600)
    limits: Limits | None = None
    ignore_users: list[str] = []
    first_uid: int = 1000
    expect_gpus: int | None = None
    xids: bool = True
    proofs: dict[str, list[str]] = {}
    slurmctld_log: FilePath | None = None
    slurmd_log: str | None = None

    def __post_init__(self) -> None:
        for number, prefix in enumerate(self.reasons):
            if len(prefix.strip()) < MIN_PREFIX_CHARS:
                raise Invalid(
                    f"{prefix!r} would fit nodes drained for any reason; give at least "
                    f"{MIN_PREFIX_CHARS} letters of how the reason begins",
                    "reasons",
                    number,
                )
        if not self.reasons:
            raise Invalid("names no reason; leave it out for 'Kill task failed'", "reasons")
        for name, argv in self.proofs.items():
            if not argv or not argv[0].startswith("/"):
                raise Invalid("is a list of words; the first is an absolute path", "proofs", name)
        if self.slurmd_log is not None and not self.slurmd_log.startswith("/"):
            raise Invalid("is no absolute path", "slurmd_log")

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if not self.reboot:
            yield "reboot_after", "no node is rebooted without `reboot: true`"
        if not self.grants():
            yield "limits", "nothing is done without `undrain`, `clean_up` or `reboot`"

    def grants(self) -> Mapping[str, Limits | None]:
        """What is done without `actions:`, and within which limits."""
        switches = {"undrain": self.undrain, "clean_up": self.clean_up, "reboot": self.reboot}
        return {name: self.limits for name, on in switches.items() if on}

    def controller_log(self) -> str:
        """`slurmctld_log`, where it is named."""
        return str(self.slurmctld_log or "")

    def jobs_of(self) -> frozenset[str] | None:
        """Everybody's jobs are needed to know which of a shared node's are over."""
        return None if self.clean_up else frozenset()

    def run(self, ctx: Context) -> Report:
        """One finding per drained node with such a reason; none is fine. CannotTell without
        Slurm."""
        known = ctx.slurm.nodes()
        rules = self._make_proof_rules(frozenset(node.name.lower() for node in known))
        past = decode_memory(ctx.memory, DrainedMemory) or DrainedMemory()
        past = replace(past, passing=_find_completing_nodes(past, known, ctx))
        stuck = self._find_stuck_nodes(past, ctx)
        sights = gather_evidence(
            [node for node in known if self._is_concerned(node) or node.name in stuck],
            ctx,
            queue=self.clean_up,
            completing=stuck,
            slurmctld_log=self.slurmctld_log,
            slurmd_log=self.slurmd_log,
        )
        items = {s.node.name: self._prove_node(s, rules) for s in sights}
        sights, items = self._add_command_proofs(sights, items, rules, ctx)
        findings = tuple(self._judge_drained_node(s, items[s.node.name], past) for s in sights)
        return Report(
            findings=findings,
            coverage=covered(
                "nodes", (n.name for n in known), (n.name for n in known if n.state != "UNKNOWN")
            ),
            requests=tuple(
                r for s in sights for r in self._make_node_requests(s, items[s.node.name], rules)
            ),
            memory=to_builtins(self._make_memory(past, sights, items, findings)),
        )

    def _find_stuck_nodes(self, past: DrainedMemory, ctx: Context) -> dict[str, float]:
        """Seconds by node: from Slurm 25.11.7 on a task that does not die drains no node."""
        seconds = {
            name: get_elapsed_s(state.since, ctx.now) for name, state in past.passing.items()
        }
        return {name: age for name, age in seconds.items() if age > self.completing}

    def _make_memory(
        self,
        past: DrainedMemory,
        sights: Sequence[NodeEvidence],
        items: Mapping[str, Sequence[ProofItem]],
        findings: Sequence[Finding],
    ) -> DrainedMemory:
        asked = [s.node for s in sights if self.undrain and proof.is_proven(items[s.node.name])]
        return DrainedMemory(
            asked={node.name: node.reason_time for node in asked},
            told=tuple(f.subject for f in findings if f.status is not Status.OK and not f.patience),
            moment=tuple(name for name, those in items.items() if proof.is_momentary(those)),
            passing=past.passing,
        )

    def _is_concerned(self, node: Node) -> bool:
        """Only while DRAIN is set: 23.11 to 25.11 leave old reasons on idle nodes."""
        return "DRAIN" in node.flags and has_prefix(node.reason, self.reasons)

    def _make_proof_rules(self, names: frozenset[str]) -> ProofRules:
        return ProofRules(
            names=names,
            reasons=tuple(self.reasons),
            ignore_users=frozenset(self.ignore_users),
            first_uid=self.first_uid,
            gpus=self.expect_gpus,
            xids=self.xids,
            proofs=tuple(self.proofs),
        )

    def _prove_node(self, sight: NodeEvidence, rules: ProofRules) -> list[ProofItem]:
        return [*proof.prove_by_slurm(sight, rules), *proof.prove_by_node(sight, rules)]

    def _add_command_proofs(
        self,
        sights: Sequence[NodeEvidence],
        items: dict[str, list[ProofItem]],
        rules: ProofRules,
        ctx: Context,
    ) -> tuple[list[NodeEvidence], dict[str, list[ProofItem]]]:
        """The configured proofs run on nodes that are clean so far."""
        clean = [s.node.name for s in sights if proof.is_proven(items[s.node.name])]
        ran = run_proof_commands(clean, self.proofs, ctx)
        fuller = [replace(s, ran=ran.get(s.node.name, {})) for s in sights]
        return fuller, {
            s.node.name: [*items[s.node.name], *proof.prove_by_commands(s, rules)] for s in fuller
        }

    def _judge_drained_node(
        self, sight: NodeEvidence, items: Sequence[ProofItem], past: DrainedMemory
    ) -> Finding:
        name, time = sight.node.name, sight.node.reason_time
        again = name in past.asked and past.asked[name] == time
        return verdict.make_drain_finding(
            sight,
            items,
            asked=self.undrain,
            before=again or verdict.find_failed_undrain(sight) is not None,
            told=name in past.told,
            first=name not in past.moment,
        )

    def _make_node_requests(
        self, sight: NodeEvidence, items: Sequence[ProofItem], rules: ProofRules
    ) -> list[ActionRequest]:
        """One wish at most: what is cleaned up is proven again in the next run."""
        if proof.is_proven(items):
            return [verdict.request_undrain(sight, items)] if self.undrain else []
        wishes = [
            verdict.request_clean_up(sight, items, rules)
            if self.clean_up and "DRAIN" in sight.node.flags
            else None,
            verdict.request_reboot(sight, items, rules, self.reboot_after) if self.reboot else None,
        ]
        return [wish for wish in wishes if wish][:1]


def _find_completing_nodes(
    past: DrainedMemory, known: Sequence[Node], ctx: Context
) -> dict[str, PassingNode]:
    now = follow_passages(past.passing, known, ctx.now)
    return {name: state for name, state in now.items() if state.kind == "completing"}


# Gathers what is to be known about drained nodes: one round trip, the ledger, and logs.


PROBE_REQUEST = ProbeRequest(
    parts=("processes", "blocked", "steps", "gpu_processes", "gpus", "kernel", "mounts", "waits")
)
LOG_TAIL_BYTES = 4 * 2**20
"""Bytes of the end of slurmctld's log that are read; of slurmd's a tenth."""

PROBE, LOGS, PROOFS = 0.5, 0.1, 0.3
"""Shares of a run's limit."""


def gather_evidence(
    nodes: Sequence[Node],
    ctx: Context,
    *,
    queue: bool,
    completing: Mapping[str, float] = MappingProxyType({}),
    slurmctld_log: str | None = None,
    slurmd_log: str | None = None,
) -> list[NodeEvidence]:
    """All that can be seen of these nodes; raises CannotTell only for what Slurm must tell.

    `queue`: with the jobs that Slurm has on each of them. `completing`: seconds, of those who do not
    end a job.
    """
    if not nodes:
        return []
    running = _find_running_jobs(nodes, ctx) if queue else None
    expediting = _find_expediting_jobs(ctx)
    log, trouble = _read_controller_log(slurmctld_log, ctx.limit * LOGS)
    past = parse_reason_histories(log, [node.name for node in nodes], trouble)
    lines = filter_log_lines(log)
    sights = [
        replace(
            _make_evidence(node, ctx, running, past[node.name], lines),
            expediting=tuple(sorted(expediting.get(node.name, ()))),
            completing=completing.get(node.name),
        )
        for node in nodes
    ]
    names = [s.node.name for s in sights if can_ask_node(s)]
    answers = ctx.remote.probe(names, PROBE_REQUEST, limit=ctx.limit * PROBE) if ctx.remote else {}
    told = _read_daemon_logs(names, slurmd_log, ctx)
    sights = [
        _add_node_answer(s, answers.get(s.node.name), told.get(s.node.name, "")) for s in sights
    ]
    sluids = hanging.find_sluids(ctx, [s.node_probe for s in sights])
    return [replace(s, sluids=sluids) for s in sights]


def run_proof_commands(
    nodes: Sequence[str], proofs: Mapping[str, Sequence[str]], ctx: Context
) -> dict[str, dict[str, Answer]]:
    """Run these commands on these nodes; by node and name of the proof."""
    ran: dict[str, dict[str, Answer]] = {node: {} for node in nodes}
    if ctx.remote is None or not nodes:
        return ran
    for name, argv in proofs.items():
        limit = ctx.limit * PROOFS / len(proofs)
        for node, answer in ctx.remote.run(nodes, argv, limit=limit).items():
            ran[node][name] = answer
    return ran


def _make_evidence(
    node: Node,
    ctx: Context,
    running: Mapping[str, RunningJobs] | None,
    history: ReasonHistory,
    lines: Sequence[str],
) -> NodeEvidence:
    book = ctx.logbook
    text = format_last_lines(filter_node_lines(lines, node.name))
    return NodeEvidence(
        node=node,
        now=ctx.now.wall // SECOND,
        readings=None if book is None else book.readings(node.name),
        records=() if book is None else book.records(node.name),
        here=None if running is None else running[node.name],
        history=history,
        logs={"slurmctld": text} if text else {},
    )


def _add_node_answer(
    sight: NodeEvidence, answer: NodeProbe | Unreached | None, log: str
) -> NodeEvidence:
    text = format_last_lines(filter_log_lines(log))
    more = {"slurmd": text} if text else {}
    return replace(sight, answer=answer, logs={**sight.logs, **more})


def _find_running_jobs(nodes: Sequence[Node], ctx: Context) -> dict[str, RunningJobs]:
    """What Slurm has on each node; a job that is completing is over."""
    jobs: dict[str, set[str]] = {node.name: set() for node in nodes}
    users: dict[str, set[str]] = {node.name: set() for node in nodes}
    anywhere = set[str]()
    for job in filter(has_processes, ctx.slurm.jobs()):
        anywhere |= process_job_ids(job)
        for node in jobs.keys() & set(_expand_job_nodes(job.nodes)):
            jobs[node] |= process_job_ids(job)
            users[node].add(job.user)
    everywhere = frozenset(anywhere)
    return {
        name: RunningJobs(
            jobs=frozenset(jobs[name]), users=frozenset(users[name]), anywhere=everywhere
        )
        for name in jobs
    }


def _find_expediting_jobs(ctx: Context) -> dict[str, frozenset[str]]:
    """The jobs in EXPEDITING on each node, of those whose jobs are watched anyway."""
    try:
        return _group_by_node(job for job in ctx.slurm.jobs() if job.state == "EXPEDITING")
    except CannotTell:
        return {}


def _group_by_node(jobs: Iterable[Job]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for job in jobs:
        for node in _expand_job_nodes(job.nodes) if job.nodes else ():
            found.setdefault(node, set()).add(job.job_id)
    return {node: frozenset(ids) for node, ids in found.items()}


def _expand_job_nodes(nodes: str) -> Sequence[str]:
    try:
        return hostlist.expand_printed(nodes)
    except Invalid as error:
        raise CannotTell(f"the nodes of a job are not understood: {error}") from error


def _read_controller_log(path: str | None, limit: float) -> tuple[str, str]:
    """The end of the log on this host, and why it could not be read."""
    if path is None:
        return "", ""
    try:
        done = proc.run(["tail", "-c", str(LOG_TAIL_BYTES), "--", path], limit=limit)
    except CannotTell as error:
        return "", str(error)
    out, err = (raw.decode("utf-8", "backslashreplace") for raw in (done.out, done.err.strip()))
    return (out, "") if done.code == 0 else ("", err or f"tail: exit code {done.code}")


def _read_daemon_logs(names: Sequence[str], path: str | None, ctx: Context) -> dict[str, str]:
    if path is None or ctx.remote is None or not names:
        return {}
    from sentinel.core.node_answers import Answered

    argv = ["tail", "-c", str(LOG_TAIL_BYTES // 10), "--", path]
    answers = ctx.remote.run(names, argv, limit=ctx.limit * LOGS)
    return {
        node: answer.out.decode("utf-8", "backslashreplace")
        for node, answer in answers.items()
        if isinstance(answer, Answered)
    }
