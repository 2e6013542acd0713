"""The `drained` check: asks every fitting node once, proves, and asks for what its settings allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from sentinel.checks.drained import proof, verdict
from sentinel.checks.drained.evidence import gather_evidence, run_proof_commands
from sentinel.checks.drained.node_evidence import (
    NodeEvidence,
    ProofItem,
    ProofRules,
)
from sentinel.checks.drained.reasons import has_prefix
from sentinel.checks.drained.returned import judge_returned_node
from sentinel.checks.passing import PassingNode, follow_passages
from sentinel.core.action_limits import Limits
from sentinel.core.clock import get_elapsed_s
from sentinel.core.declared import Metric, Panel
from sentinel.core.errors import Invalid
from sentinel.core.model import ActionRequest, Finding, Report, Status, covered
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.stored_memory import decode_memory
from sentinel.core.values import Duration
from sentinel.plugin import Check
from sentinel.slurm.drain_reasons import KILL, OPERATOR_PREFIXES
from sentinel.slurm.node_notes import describe_new_note, read_notes

if TYPE_CHECKING:
    from sentinel.core.actions import ActionRecord
    from sentinel.core.cluster import Node

MIN_PREFIX_CHARS = 4


class DrainedMemory(Struct, frozen=True, kw_only=True):
    """The memory of the check between its runs."""

    # For each node, the time of the reason for which its return was requested.
    asked: dict[str, int | None] = {}
    told: tuple[str, ...] = ()  # Nodes that were reported.
    moment: tuple[str, ...] = ()  # Nodes that could not be judged, but soon can be.
    passing: dict[str, PassingNode] = {}  # Nodes in the state COMPLETING.
    # Comment and Extra of each drained node, as they were before, else when it was first seen drained.
    # Of the others those that are not empty, if they are all `noted`.
    notes: dict[str, dict[str, str]] = {}
    noted: bool = False


class DrainedCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Drained nodes: proven clean and given back, or why not; nodes that hang in completing.

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
            if prefix.startswith(OPERATOR_PREFIXES):
                raise Invalid(
                    f"{prefix!r} is the reason of an operator of Kubernetes, which takes it back itself",
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
        """The actions that need no `actions:` section, and their limits."""
        switches = {"undrain": self.undrain, "clean_up": self.clean_up, "reboot": self.reboot}
        return {name: self.limits for name, on in switches.items() if on}

    def controller_log(self) -> str:
        """`slurmctld_log`, if it is configured."""
        return str(self.slurmctld_log or "")

    def jobs_of(self) -> frozenset[str] | None:
        """Nobody's jobs, or everybody's with `clean_up` or `reboot`: they show which jobs on a node are
        over, and which are suspended."""
        return None if self.clean_up or self.reboot else frozenset()

    def run(self, ctx: Context) -> Report:
        """One finding per drained node with such a reason. No node is fine. Raises CannotTell if
        Slurm does not answer."""
        known = ctx.slurm.nodes()
        rules = self._make_proof_rules(frozenset(node.name.lower() for node in known))
        past = decode_memory(ctx.memory, DrainedMemory) or DrainedMemory()
        past = replace(
            past,
            passing=_find_completing_nodes(past, known, ctx),
        )
        past = _with_notes(past, known)
        stuck = self._find_stuck_nodes(past, ctx)
        sights = gather_evidence(
            [node for node in known if self._is_concerned(node) or node.name in stuck],
            ctx,
            queue=self.clean_up or self.reboot,
            completing=stuck,
            slurmctld_log=self.slurmctld_log,
            slurmd_log=self.slurmd_log,
        )
        sights = [
            replace(s, note=describe_new_note(past.notes.get(s.node.name, {}), s.node))
            for s in sights
        ]
        items = {s.node.name: self._prove_node(s, rules) for s in sights}
        sights, items = self._add_command_proofs(sights, items, rules, ctx)
        findings = tuple(self._judge_drained_node(s, items[s.node.name], past) for s in sights)
        back = [n for n in known if n.name in past.told and n.name not in items]
        returned = tuple(judge_returned_node(n, _read_records(n, ctx)) for n in back)
        return Report(
            findings=(*findings, *returned),
            coverage=replace(
                covered(
                    "nodes",
                    (n.name for n in known),
                    (n.name for n in known if n.state != "UNKNOWN"),
                ),
                calm="" if findings else _describe_calm(known),
            ),
            requests=tuple(
                r for s in sights for r in self._make_node_requests(s, items[s.node.name], rules)
            ),
            memory=to_builtins(self._make_memory(past, sights, items, (*findings, *returned))),
        )

    def _find_stuck_nodes(self, past: DrainedMemory, ctx: Context) -> dict[str, float]:
        """The nodes that take longer than `completing` to end a job, with the seconds. From Slurm
        25.11.7 on, a task that does not die drains no node."""
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
            notes=past.notes,
            noted=past.noted,
        )

    def _is_concerned(self, node: Node) -> bool:
        """Whether the node is drained for one of `reasons`. The flag DRAIN must be set, because
        Slurm 23.11 to 25.11 keeps old reasons on idle nodes."""
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
        """Run the configured proofs on nodes that are clean so far. Returns all nodes' evidence
        with the answers, and the items with those of the proofs."""
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
        """At most one request per node. After a clean-up, the node is examined again in the next
        run."""
        if proof.is_proven(items):
            return [verdict.request_undrain(sight, items)] if self.undrain else []
        wishes = [
            verdict.request_clean_up(sight, items, rules)
            if self.clean_up and "DRAIN" in sight.node.flags
            else None,
            verdict.request_reboot(sight, items, rules, self.reboot_after) if self.reboot else None,
        ]
        return [wish for wish in wishes if wish][:1]


MAX_NOTED_CHARS = 200_000
"""How many characters of the Comments and Extras of nodes in service are remembered. If there are more,
none of them are, and only what comes after a drain was seen is a note."""


def _with_notes(past: DrainedMemory, known: Sequence[Node]) -> DrainedMemory:
    """The memory, with what stands beside the reasons of all nodes."""
    drained, others = dict[str, dict[str, str]](), dict[str, dict[str, str]]()
    for node in known:
        now = read_notes(node)
        if "DRAIN" in node.flags:
            before = dict.fromkeys(now, "") if past.noted else now
            drained[node.name] = past.notes.get(node.name, before)
        elif any(now.values()):
            others[node.name] = now
    noted = sum(len(text) for one in others.values() for text in one.values()) <= MAX_NOTED_CHARS
    return replace(past, notes={**drained, **(others if noted else {})}, noted=noted)


def _read_records(node: Node, ctx: Context) -> Sequence[ActionRecord]:
    return ctx.logbook.records(node.name, limit=1) if ctx.logbook else ()


def _find_completing_nodes(
    past: DrainedMemory, known: Sequence[Node], ctx: Context
) -> dict[str, PassingNode]:
    now = follow_passages(past.passing, known, ctx.now)
    return {name: state for name, state in now.items() if state.kind == "completing"}


def _describe_calm(known: Sequence[Node]) -> str:
    """That nothing has to be told: no node is drained, or none for a reason of this check."""
    drained = sum("DRAIN" in node.flags for node in known)
    others = f"{drained} {'nodes are' if drained > 1 else 'node is'} drained for other reasons"
    return f"{others} than those of this check (`reasons`)" if drained else "no node is drained"
