"""The `nodes` kind: how many nodes can work, which cannot, why, and which come and go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Annotated, ClassVar

from msgspec import Meta, Struct, to_builtins
from msgspec.structs import replace

from sentinel.checks import hanging, passing
from sentinel.checks.closed_partitions import ClosedPartitions, find_closed_partitions
from sentinel.checks.node_remedies import guide_count, guide_node, list_node_commands
from sentinel.checks.passing import NodePassage, PassingNode
from sentinel.checks.racks import find_racks_out, label_rack, make_rack_finding, shorten_names
from sentinel.core import hostlist
from sentinel.core.clock import SECOND, get_elapsed_s
from sentinel.core.cluster import Node, Timeouts
from sentinel.core.declared import Metric, Panel
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.guidance import Guidance, look
from sentinel.core.model import Finding, Report, Sample, Status, covered
from sentinel.core.node_answers import Unreached, describe_unreached
from sentinel.core.ports import Context
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration, Rate, Share, duration_text, since_text
from sentinel.nodes.history import is_out
from sentinel.nodes.probe import NodeProbe
from sentinel.plugin import Check
from sentinel.slurm.node_states import can_work, format_state, unknown_flags

ALL = "all nodes"

PROBE = 0.7
"""Share of a run's limit for asking nodes that do not end a job."""


class NodesPast(Struct, frozen=True, kw_only=True):
    """The memory of the check from run to run."""

    out: tuple[str, ...] | None = None  # Nodes that are out of service. None before the first run.
    left: dict[str, tuple[int, ...]] = {}  # When each node left service, µs UTC.
    passing: dict[str, PassingNode] = {}  # Nodes in a temporary state, by name.
    boots: dict[str, tuple[int, ...]] = {}  # Durations of the last boots in seconds, by partition.


class NodesCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes that can work against those needed; which cannot, why, since when, and how often.

    partition: The partition whose nodes are meant; unset, all.
    nodes: A host list of the nodes that are meant; unset, all.
    need: Critical below so many that can work.
    spare: Warn below `need` plus this share of it, rounded up.
    each: Whether every node that is out has an alert of its own; unset, where nothing is needed.
    ignore: How reasons of planned work begin: such nodes count as out and are not told.
    flapping: A node that left service so often is told, even while it is there.
    completing: How long a node may take to end a job.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 30
    METRICS = (
        Metric("available", "nodes_available", "Nodes that can work."),
        Metric("nodes", "nodes_meant", "Nodes that are meant."),
        Metric("need", "nodes_needed", "Nodes that are needed."),
    )
    PANEL: ClassVar[Panel] = "nodes"
    SOURCES = (
        "sinfo of slurmctld for states and reasons.",
        "A node that does not end a job, for the processes that keep it.",
    )
    RUNBOOK = "docs/nodes.md"

    partition: str | None = None
    nodes: str | None = None
    need: Annotated[int, Meta(ge=1)] | None = None
    spare: Share = Share(0)
    each: bool | None = None
    ignore: list[str] = []
    flapping: Rate = Rate("3 in 1d")
    completing: Duration = Duration(600)

    def __post_init__(self) -> None:
        if self.nodes is not None:
            try:
                hostlist.expand_hostlist(self.nodes)
            except Invalid as error:
                raise Invalid(str(error), "nodes") from None
        if self.spare and self.need is None:
            raise Invalid("is a share of `need`; say how many nodes are needed", "spare")

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that change nothing as it is configured, and why."""
        if self.each is False:
            yield "ignore", "with `each: false` no node has an alert of its own"

    def run(self, ctx: Context) -> Report:
        """One finding about all nodes, and one per node if that is configured. Raises CannotTell
        while Slurm does not know its nodes."""
        nodes, before = (
            _known_nodes(self._chosen_nodes(ctx)),
            decode_memory(ctx.memory, NodesPast) or NodesPast(),
        )
        looked = None if before.out is None else before.passing
        now = passing.follow_passages(looked, nodes, ctx.now)
        boots = passing.learn_boots(before.boots, looked, nodes, ctx.now)
        passages = self._find_passages(nodes, now, boots, ctx)
        out = frozenset(n.name for n in nodes if is_out(n) or _is_late(n, passages))
        past = _note_leavers(before, nodes, out, ctx.now.wall, self.flapping.window)
        past = replace(past, passing=now, boots=boots)
        lost = out.union(name for name, passage in passages.items() if passage.verdict == "stuck")
        able = [node for node in nodes if is_available(node) and node.name not in lost]
        subject = visible(self.partition or ALL)
        each = self.need is None if self.each is None else self.each
        shown = [n for n in nodes if each or self._leaves_often(n, past) or _is_stuck(n, passages)]
        failed = {n.name for n in shown if self._node_status(n, passages.get(n.name)).bad}
        racks = find_racks_out(shown, out & failed, ctx)
        hangs = _find_hangs([n.name for n in shown if _is_stuck(n, passages)], ctx)
        closed = find_closed_partitions(nodes, self.partition, ctx)
        fit = [node for node in able if not closed.is_shut(node)]
        together = self._judge_together(subject, nodes, able, closed, ctx)
        return Report(
            findings=(
                together,
                *(make_rack_finding(rack, names) for rack, names in racks.items() if each),
                *(
                    label_rack(self._judge_node(n, past, passages.get(n.name), hangs, ctx), racks)
                    for n in shown
                ),
            ),
            coverage=covered(
                "nodes",
                (n.name for n in nodes),
                (n.name for n in nodes if n.state != "UNKNOWN"),
                "" if nodes else "the partition has no nodes",
            ),
            samples=(Sample(subject, "available", len(fit)), Sample(subject, "nodes", len(nodes))),
            memory=to_builtins(past),
        )

    def _find_passages(
        self,
        nodes: Sequence[Node],
        now: Mapping[str, PassingNode],
        boots: Mapping[str, Sequence[int]],
        ctx: Context,
    ) -> dict[str, NodePassage]:
        """The passage of each node that changes its state. Slurm is asked for its limits only if
        needed."""
        asked = [n for n in nodes if n.name in now and now[n.name].kind != "completing"]
        timeouts, why = passing.ask_timeouts(ctx) if asked else (Timeouts(), "")
        found = {}
        for node in nodes:
            if state := now.get(node.name):
                seconds = get_elapsed_s(state.since, ctx.now)
                if state.kind == "completing":
                    found[node.name] = passing.judge_ending(seconds, self.completing)
                else:
                    found[node.name] = passing.judge_move(
                        node, state.kind, seconds, boots, timeouts, why
                    )
        return found

    def _chosen_nodes(self, ctx: Context) -> Sequence[Node]:
        """The watched nodes. Empty if the partition exists and has none."""
        nodes = self._listed_nodes(ctx)
        if self.partition is not None:
            known = sorted({p for node in nodes for p in node.partitions})
            if self.partition not in known and self._is_empty(ctx):
                return ()
            if self.partition not in known:
                there = ", ".join(known)
                raise CannotTell(visible(f"no partition {self.partition}; there are: {there}"))
            nodes = [node for node in nodes if self.partition in node.partitions]
        if not nodes:
            raise CannotTell("Slurm shows no node here")
        if self.nodes is None:
            return nodes
        names = set(hostlist.expand_hostlist(self.nodes))
        if missing := names - {node.name for node in nodes}:
            raise CannotTell(f"Slurm knows no {hostlist.fold_for_people(missing)} here")
        return [node for node in nodes if node.name in names]

    def _listed_nodes(self, ctx: Context) -> Sequence[Node]:
        try:
            return ctx.slurm.nodes()
        except CannotTell:  # if all nodes of a cluster come and go, sinfo may print none
            if self._is_empty(ctx):
                return ()
            raise

    def _is_empty(self, ctx: Context) -> bool:
        """Whether Slurm says that the partition exists and has no node."""
        try:
            return ctx.slurm.partitions().get(self.partition or "") == 0
        except CannotTell:
            return False

    def _judge_together(
        self,
        subject: str,
        nodes: Sequence[Node],
        well: Sequence[Node],
        closed: ClosedPartitions,
        ctx: Context,
    ) -> Finding:
        able = {n.name for n in well}
        fit = [node for node in well if not closed.is_shut(node)]
        odd = [n for n in nodes if n.name not in able and can_work(n) is None and not is_out(n)]
        status, why = judge_count(len(fit), self.need, self.spare)
        if odd and judge_count(len(fit) + len(odd), self.need, self.spare)[0] is not status:
            status, why = Status.UNKNOWN, f"{why}; {_describe_strange(odd)}"
        if status is Status.OK:
            status = closed.status
        why += closed.text
        groups = group_by_reason([n for n in nodes if n.name not in able], ctx.now.wall // SECOND)
        out = f"; out of service: {groups[0]}" if groups else ""
        more = f" and {len(groups) - 1} more reasons" if len(groups) > 1 else ""
        return Finding(
            subject=subject,
            status=status,
            summary=f"{len(fit)} of {len(nodes)} nodes can work{why}{out}{more}",
            values={"available": len(fit), "nodes": len(nodes), "need": self.need},
            details="\n".join(groups),
            commands=(look("sentinel nodes list"), look("sinfo -R")) if status.bad else (),
            guidance=guide_count(subject, len(fit), len(nodes)) if status.bad else Guidance(),
        )

    def _leaves_often(self, node: Node, past: NodesPast) -> bool:
        return len(past.left.get(node.name, ())) >= self.flapping.times

    def _judge_node(
        self,
        node: Node,
        past: NodesPast,
        passage: NodePassage | None,
        hangs: Mapping[str, str],
        ctx: Context,
    ) -> Finding:
        times, often = len(past.left.get(node.name, ())), self._leaves_often(node, past)
        comes = f"; left service {times} times within {duration_text(self.flapping.window)}"
        status = Status.WARNING if often else self._node_status(node, passage)
        hang = f": {hangs[node.name]}" if node.name in hangs else ""
        text = _why_out(node, passage, ctx.now.wall // SECOND) + hang + (comes if often else "")
        return Finding(
            subject=node.name,
            status=status,
            summary=visible(text),
            values={"state": format_state(node), "reason": visible(node.reason), "left": times},
            commands=list_node_commands(node) if status.bad else (),
            guidance=guide_node(node, visible(text)) if status.bad else Guidance(),
            labels={"node": node.name},
        )

    def _node_status(self, node: Node, passage: NodePassage | None) -> Status:
        planned = "MAINTENANCE" in node.flags or node.reason.startswith(
            tuple(self.ignore) or ("\0",)
        )
        if self.each is False or planned:
            return Status.OK
        if is_out(node) or (passage and passage.verdict in ("slow", "late", "stuck")):
            return Status.WARNING
        # UNKNOWN: slurmctld has not heard from the node since its start. Or it prints another word
        # in place of the state.
        untold = passage.verdict == "unknown" if passage else node.state == "UNKNOWN"
        untold = untold or bool(unknown_flags(node))
        return Status.UNKNOWN if untold else Status.OK


def is_available(node: Node) -> bool:
    """Whether Slurm gives the node to jobs, now or after those on it have ended."""
    return not is_out(node) and can_work(node) is True


def judge_count(fit: int, need: int | None, spare: Share) -> tuple[Status, str]:
    """The status, and the text about the required number. No node at all is always critical."""
    if need is None:
        return (Status.OK if fit else Status.CRITICAL), ""
    more = ceil(need * spare / 100)
    words = f" and {more} to spare" if more else ""
    if fit < need:
        return Status.CRITICAL, f", {need} are needed"
    if fit < need + more:
        return Status.WARNING, f", {need} are needed{words}"
    return Status.OK, f" ({need} needed{words})"


def _describe_strange(odd: Sequence[Node]) -> str:
    words = shortened(", ".join(sorted({f for node in odd for f in unknown_flags(node)})), 80)
    return visible(f"{len(odd)} more are {words}, a word that sentinel does not know")


def group_by_reason(out: Sequence[Node], now: int) -> list[str]:
    """Nodes that cannot work by reason, the largest group first."""
    groups: dict[str, list[Node]] = defaultdict(list)
    for node in out:
        groups[node.reason or format_state(node)].append(node)
    largest = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        f"{shorten_names([node.name for node in nodes])}: {_describe_group(reason, nodes, now)}"
        for reason, nodes in largest
    ]


def _describe_group(reason: str, nodes: Sequence[Node], now: int) -> str:
    states = "/".join(sorted({format_state(node) for node in nodes})[:3])
    times = [node.reason_time for node in nodes if node.reason_time is not None]
    age = f" {since_text(min(times), now)}" if times else ""
    return visible(f"{shortened(reason, 80)} ({states}){age}")


def _why_out(node: Node, passage: NodePassage | None, now: int) -> str:
    if is_out(node):
        more = f"; {passage.text}" if passage and passage.verdict == "stuck" else ""
        return f"out of service: {_describe_group(node.reason or 'no reason given', [node], now)}{more}"
    if passage is None:
        return f"is {format_state(node)}"
    word = "out of service: " if passage.verdict == "late" else ""
    return f"{word}{passage.text} ({format_state(node)})"


def _is_late(node: Node, passages: Mapping[str, NodePassage]) -> bool:
    return node.name in passages and passages[node.name].verdict == "late"


def _is_stuck(node: Node, passages: Mapping[str, NodePassage]) -> bool:
    return node.name in passages and passages[node.name].verdict == "stuck"


def _find_hangs(names: Sequence[str], ctx: Context) -> dict[str, str]:
    """The reason why each of these nodes does not end a job, by its own answer."""
    if ctx.remote is None:
        return dict.fromkeys(
            names, "which task hangs is not known without a way to nodes (`remote`)"
        )
    if not names:
        return {}
    answers = ctx.remote.probe(names, hanging.PROBE_WANTS, limit=ctx.limit * PROBE)
    told = [answer for answer in answers.values() if isinstance(answer, NodeProbe)]
    sluids = hanging.find_sluids(ctx, told)
    return {name: _describe_hang(answers.get(name), sluids) for name in names}


def _describe_hang(answer: NodeProbe | Unreached | None, sluids: Mapping[str, str]) -> str:
    if answer is None:
        return "which task hangs is not known: it was not asked"
    if isinstance(answer, NodeProbe):
        return hanging.describe_hanging(answer, sluids)
    return f"which task hangs is not known: {describe_unreached(answer)}"


def _known_nodes(nodes: Sequence[Node]) -> Sequence[Node]:
    """The given nodes. Raises CannotTell if slurmctld does not know most of them yet, for example
    in the seconds after its start."""
    unknown = sum(node.state == "UNKNOWN" for node in nodes)
    if nodes and 2 * unknown > len(nodes):
        raise CannotTell(f"slurmctld does not know {unknown} of {len(nodes)} nodes yet")
    return nodes


def _note_leavers(
    past: NodesPast, nodes: Sequence[Node], out: frozenset[str], wall: int, window: float
) -> NodesPast:
    """Record the nodes that have left service since the last run. Entries older than the window are
    removed."""
    begin = wall - int(window * SECOND)
    left: dict[str, tuple[int, ...]] = {}
    for node in nodes:
        times = [t for t in past.left.get(node.name, ()) if t > begin]
        if past.out is not None and node.name in out and node.name not in past.out:
            times.append(wall)
        if times:
            left[node.name] = tuple(times)
    return NodesPast(out=tuple(sorted(out)), left=left)
