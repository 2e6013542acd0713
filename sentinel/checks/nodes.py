"""The `nodes` kind: how many nodes can work, which cannot, why, and which come and go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Annotated, ClassVar

from msgspec import Meta, Struct, ValidationError, convert, to_builtins

from sentinel.core import nodeset
from sentinel.core.clock import SECOND
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.ledger import is_out
from sentinel.core.model import Finding, Report, Sample, Status, covered
from sentinel.core.nodestate import UNFIT, UP, state_of
from sentinel.core.ports import Context
from sentinel.core.slurm import Node
from sentinel.core.text import shortened, visible
from sentinel.core.values import Rate, Share, duration_text

ASLEEP = frozenset({"POWERED_DOWN", "POWER_DOWN", "POWERING_UP", "POWER_UP"})
"""Flags of power saving: Slurm wakes such a node for the job that needs it (slurm.conf(5))."""
ALL = "all nodes"
SHOWN = 6


class Past(Struct, frozen=True, kw_only=True):
    """What is remembered: who is out (None: nobody has looked yet), and when (µs UTC) each left."""

    out: tuple[str, ...] | None = None
    left: dict[str, tuple[int, ...]] = {}


class Nodes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes that can work against those needed; which cannot, why, since when, and how often.

    Critical below `need`, warning below `need` and `spare` of it. `each`: an alert per node that
    is out (by default where nothing is needed), but for reasons that begin with one of `ignore`.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 30

    partition: str | None = None
    nodes: str | None = None
    need: Annotated[int, Meta(ge=1)] | None = None
    spare: Share = Share(0)
    each: bool | None = None
    ignore: list[str] = []
    flapping: Rate = Rate("3 in 1d")

    def __post_init__(self) -> None:
        if self.nodes is not None:
            try:
                nodeset.expand(self.nodes)
            except Invalid as error:
                raise Invalid(str(error), "nodes") from None
        if self.spare and self.need is None:
            raise Invalid("is a share of `need`; say how many nodes are needed", "spare")

    def run(self, ctx: Context) -> Report:
        """One finding about all together, and where asked for one per node. CannotTell while
        Slurm does not know its nodes."""
        nodes = _known(self._chosen(ctx.slurm.nodes()))
        past = _noticed(_recalled(ctx), nodes, ctx.now.wall, self.flapping.window)
        fit = [node for node in nodes if available(node)]
        subject = visible(self.partition or ALL)
        each = self.need is None if self.each is None else self.each
        return Report(
            findings=(
                self._together(subject, nodes, fit, ctx),
                *(self._one(n, past, ctx) for n in nodes if each or self._often(n, past)),
            ),
            coverage=covered(
                "nodes", (n.name for n in nodes), (n.name for n in nodes if n.state != "UNKNOWN")
            ),
            samples=(Sample(subject, "available", len(fit)), Sample(subject, "nodes", len(nodes))),
            memory=to_builtins(past),
        )

    def _chosen(self, nodes: Sequence[Node]) -> Sequence[Node]:
        if self.partition is not None:
            known = sorted({p for node in nodes for p in node.partitions})
            if self.partition not in known:
                there = ", ".join(known)
                raise CannotTell(visible(f"no partition {self.partition}; there are: {there}"))
            nodes = [node for node in nodes if self.partition in node.partitions]
        if self.nodes is None:
            return nodes
        names = set(nodeset.expand(self.nodes))
        if missing := names - {node.name for node in nodes}:
            raise CannotTell(f"Slurm knows no {nodeset.fold(missing)} here")
        return [node for node in nodes if node.name in names]

    def _together(
        self, subject: str, nodes: Sequence[Node], fit: Sequence[Node], ctx: Context
    ) -> Finding:
        status, why = judged(len(fit), self.need, self.spare)
        groups = grouped([n for n in nodes if not available(n)], ctx.now.wall // SECOND)
        out = f"; out: {groups[0]}" if groups else ""
        more = f" and {len(groups) - 1} more reasons" if len(groups) > 1 else ""
        return Finding(
            subject=subject,
            status=status,
            summary=f"{len(fit)} of {len(nodes)} nodes can work{why}{out}{more}",
            values={"available": len(fit), "nodes": len(nodes), "need": self.need},
            details="\n".join(groups),
            commands=("sentinel nodes list", "sinfo -R") if status.bad else (),
        )

    def _often(self, node: Node, past: Past) -> bool:
        return len(past.left.get(node.name, ())) >= self.flapping.times

    def _one(self, node: Node, past: Past, ctx: Context) -> Finding:
        times, often = len(past.left.get(node.name, ())), self._often(node, past)
        planned = "MAINTENANCE" in node.flags or node.reason.startswith(
            tuple(self.ignore) or ("\0",)
        )
        bad = often or (is_out(node) and not planned and self.each is not False)
        comes = f"; left service {times} times within {duration_text(self.flapping.window)}"
        return Finding(
            subject=node.name,
            status=Status.WARNING if bad else Status.OK,
            summary=visible(_why(node, ctx.now.wall // SECOND)) + (comes if often else ""),
            values={"state": state_of(node), "reason": visible(node.reason), "left": times},
            commands=(f"sentinel nodes list --history {visible(node.name)}",) if bad else (),
            labels={"node": node.name},
        )


def available(node: Node) -> bool:
    """Whether Slurm gives the node to jobs, now or when those on it have ended."""
    return node.state in UP and not is_out(node) and not node.flags & (UNFIT - ASLEEP)


def judged(fit: int, need: int | None, spare: Share) -> tuple[Status, str]:
    """The status, and the words about what is needed. Nothing at all is always critical."""
    if need is None:
        return (Status.OK if fit else Status.CRITICAL), ""
    wanted = need + ceil(need * spare / 100)
    if fit < need:
        return Status.CRITICAL, f", {need} are needed"
    if fit < wanted:
        return Status.WARNING, f", {need} are needed and {wanted - need} to spare"
    return Status.OK, f" ({wanted} needed)"


def grouped(out: Sequence[Node], now: int) -> list[str]:
    """Nodes that cannot work by reason, the largest group first."""
    groups: dict[str, list[Node]] = defaultdict(list)
    for node in out:
        groups[node.reason or state_of(node)].append(node)
    largest = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [f"{_names(nodes)}: {_group(reason, nodes, now)}" for reason, nodes in largest]


def _group(reason: str, nodes: Sequence[Node], now: int) -> str:
    states = "/".join(sorted({state_of(node) for node in nodes})[:3])
    times = [node.reason_time for node in nodes if node.reason_time is not None]
    age = f" for {duration_text(max(0, now - min(times)))}" if times else ""
    return visible(f"{shortened(reason, 80)} ({states}){age}")


def _why(node: Node, now: int) -> str:
    if not is_out(node):
        return f"is {state_of(node)}"
    return f"is out: {_group(node.reason or 'no reason given', [node], now)}"


def _names(nodes: Sequence[Node]) -> str:
    try:
        return shortened(nodeset.fold([node.name for node in nodes]), 200)
    except Invalid:
        return f"{len(nodes)} nodes"


def _known(nodes: Sequence[Node]) -> Sequence[Node]:
    """For seconds after a start of slurmctld it knows nothing of its nodes."""
    if not nodes:
        raise CannotTell("Slurm shows no node here")
    unknown = sum(node.state == "UNKNOWN" for node in nodes)
    if 2 * unknown > len(nodes):
        raise CannotTell(f"slurmctld does not know {unknown} of {len(nodes)} nodes yet")
    return nodes


def _noticed(past: Past, nodes: Sequence[Node], wall: int, window: float) -> Past:
    """Who left since the last look; what is older than the window is forgotten."""
    begin = wall - int(window * SECOND)
    left: dict[str, tuple[int, ...]] = {}
    out = tuple(node.name for node in nodes if is_out(node))
    for node in nodes:
        times = [t for t in past.left.get(node.name, ()) if t > begin]
        if past.out is not None and node.name in out and node.name not in past.out:
            times.append(wall)
        if times:
            left[node.name] = tuple(times)
    return Past(out=out, left=left)


def _recalled(ctx: Context) -> Past:
    remembered: Mapping[str, object] = ctx.memory
    try:
        return convert(dict(remembered), Past)
    except ValidationError:  # another version's
        return Past()
