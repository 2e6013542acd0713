"""Which nodes a check looks at, and what is said of those that told nothing."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Coverage, Finding, Status, covered
from sentinel.core.text import visible

if TYPE_CHECKING:
    from sentinel.core.cluster import Node
    from sentinel.core.node_answers import Unreached
    from sentinel.core.ports import Context
    from sentinel.nodes.probe import NodeProbe, ProbeRequest, Unread

_LOG = logging.getLogger("sentinel")

ALL = "all"
CHOICE_MEMORY = "asked"
"""What of a check's memory is kept here."""


class ChosenNodes(Struct, frozen=True, kw_only=True):
    """Which nodes are meant, and which of them can be asked (`names`).

    `why`: why the others cannot, or why none is meant. `lost`: whether some of them were in Slurm's
    list at the last look and are not now. `memory`: for the next look, to be kept by the check.
    `of`: what is counted.
    """

    meant: tuple[str, ...]
    names: tuple[str, ...]
    why: str = ""
    lost: bool = False
    memory: Mapping[str, Any] = {}
    of: str = "nodes"

    def nodes_coverage(self, seen: Iterable[str]) -> Coverage:
        """What of it was seen. Only nodes that nobody could ask are excused."""
        there = set(seen)
        excused = self.why if there.issuperset(self.names) and not self.lost else ""
        return covered(self.of, self.meant, there, excused)


def judge_choice(nodes: str, job: str) -> None:
    """Raises Invalid unless at most one is given and `nodes` is a host list or `all`."""
    if nodes and job:
        raise Invalid("look at `nodes` or at those of a `job`; remove one of them", "job")
    if nodes and nodes != ALL:
        from sentinel.core import hostlist

        try:
            hostlist.expand_hostlist(nodes)
        except Invalid as error:
            raise Invalid(str(error), "nodes") from None


def choose_nodes(
    nodes: str,
    job: str,
    users: frozenset[str] | None,
    ctx: Context,
    *,
    of: Callable[[Sequence[Node]], Sequence[Node]] = lambda nodes: nodes,
) -> ChosenNodes:
    """The nodes by name. `all`: those of Slurm (that `of` leaves) that do not sleep, of which those
    that it hears from are asked; `job` (name or id): where it runs, none while it does not. Raises
    CannotTell where Slurm has to be asked and is blind.

    A list that lacks what the last look had may be cut at a whole record, where nobody sees it. It is
    not believed the first time: of jobs Slurm is asked once more, a node counts as not seen.
    """
    from sentinel.core import hostlist

    if job:
        return _nodes_of_job(job, users, ctx)
    if nodes == ALL:
        return _all_nodes(ctx, of)
    names = hostlist.expand_hostlist(nodes)
    return ChosenNodes(meant=names, names=names)


def _nodes_of_job(job: str, users: frozenset[str] | None, ctx: Context) -> ChosenNodes:
    from sentinel.checks.users import refuse_lost
    from sentinel.core import hostlist
    from sentinel.slurm.job_states import Phase, find_unknown_state, state_phase

    mine = [
        j
        for j in ctx.slurm.jobs()
        if job in (j.name, j.id, j.job_id) and (users is None or j.user in users)
    ]
    running = [j for j in mine if state_phase(j.state) in (Phase.RUNNING, Phase.PAUSED)]
    if not running and (why := find_unknown_state(mine)):
        raise CannotTell(visible(why))
    ids, before = [j.job_id for j in running], _last_choice(ctx, "jobs")
    if before is None or not set(ids).issuperset(before.split()):
        refuse_lost(ctx, job, users, ids)
    names = tuple(dict.fromkeys(n for j in running for n in hostlist.expand_printed(j.nodes)))
    return ChosenNodes(
        meant=names,
        names=names,
        why="" if running else f"no job {job} is running",
        memory={CHOICE_MEMORY: {"jobs": " ".join(ids)}},
    )


def _all_nodes(ctx: Context, of: Callable[[Sequence[Node]], Sequence[Node]]) -> ChosenNodes:
    from sentinel.core import hostlist
    from sentinel.slurm.node_states import ASLEEP

    every = ctx.slurm.nodes()
    nodes = of(every)
    awake = [n for n in nodes if n.state != "FUTURE" and not n.flags & ASLEEP]
    names = tuple(n.name for n in awake if is_up(n))
    meant = tuple(n.name for n in awake)
    asleep = f"all {len(nodes)} sleep or are yet to come" if nodes and not awake else ""
    listed = {n.name for n in every}
    before = _last_choice(ctx, "nodes")
    lost = tuple(n for n in hostlist.expand_printed(before) if n not in listed) if before else ()
    return ChosenNodes(
        meant=(*meant, *lost),
        names=names,
        why=asleep or "Slurm does not hear from them" * (len(names) < len(meant)),
        lost=bool(lost),
        memory={CHOICE_MEMORY: {"nodes": hostlist.fold_hostlist(meant) if meant else ""}},
    )


def _last_choice(ctx: Context, what: str) -> str | None:
    """What the last look had; None where there was none."""
    asked = {} if ctx.one_shot else ctx.memory.get(CHOICE_MEMORY)
    found = asked.get(what) if isinstance(asked, Mapping) else None
    return found if isinstance(found, str) else None


def is_up(node: Node) -> bool:
    """Whether Slurm hears from the node: nobody else is worth asking."""
    from sentinel.slurm.node_states import is_heard

    return is_heard(node)


def probe_nodes(
    ctx: Context, names: Sequence[str], wants: ProbeRequest
) -> Mapping[str, NodeProbe | Unreached]:
    """One round trip to each node; raises CannotTell where there is no way to nodes at all."""
    if ctx.remote is None:
        raise CannotTell("there is no way to nodes here; see `remote` in the configuration")
    answers = ctx.remote.probe(names, wants, limit=ctx.limit) if names else {}
    for name, answer in answers.items():
        if squatter := getattr(answer, "squatter", ""):
            _LOG.warning("%s: %s; another directory is used", visible(name), squatter)
    return answers


def silent_finding(node: str, answer: Unreached, subject: str = "") -> Finding:
    """A node that told nothing: nobody knows how it is."""
    from sentinel.core.node_answers import describe_unreached

    return Finding(
        subject=subject or node,
        status=Status.UNKNOWN,
        summary=describe_unreached(answer),
        labels={"node": node},
        commands=(f"sentinel nodes probe {node}",),
    )


def unread_finding(node: str, part: Unread, subject: str = "") -> Finding:
    """A part of the probe that could not be read."""
    from sentinel.core.text import visible

    return Finding(
        subject=subject or node,
        status=Status.UNKNOWN,
        summary=visible(f"not read ({part.kind}): {part.why}"),
        labels={"node": node},
    )


def host_name() -> str:
    """The short name of this machine."""
    return os.uname().nodename.partition(".")[0]


def probe_here(limit: float, wants: ProbeRequest) -> tuple[str, NodeProbe]:
    """This machine by the same script, as a child that can be ended. Raises CannotTell."""
    import secrets

    from sentinel import proc
    from sentinel.nodes import script
    from sentinel.nodes.probe import CutShort, NoProbe, parse

    name, mark = host_name(), secrets.token_hex(16)
    wants = wants.restrict_to_node(name)
    try:
        done = proc.run(script.ARGV, stdin=script.text(wants, mark, limit), limit=limit)
        return name, parse(done.out, mark, wants)
    except (proc.CommandNotFound, proc.TimedOut, proc.TooMuchOutput, NoProbe, CutShort) as error:
        raise CannotTell(f"this machine cannot be probed: {error}") from error


def look_at_nodes(
    nodes: str, ctx: Context, wants: Callable[[Collection[str]], ProbeRequest]
) -> tuple[ChosenNodes, dict[str, NodeProbe], list[Finding]]:
    """The nodes, or this machine where none is named; what each told, and a finding for each that told
    nothing. Raises CannotTell where there is no way to nodes, or Slurm has to be asked and is blind."""
    from sentinel.nodes.probe import NodeProbe

    if not nodes:
        name, probe = probe_here(ctx.limit, wants([host_name()]))
        return ChosenNodes(meant=(name,), names=(name,), of="hosts"), {name: probe}, []
    asked = choose_nodes(nodes, "", None, ctx)
    told = probe_nodes(ctx, asked.names, wants(asked.names))
    silences = [silent_finding(n, a) for n, a in told.items() if not isinstance(a, NodeProbe)]
    return asked, {n: a for n, a in told.items() if isinstance(a, NodeProbe)}, silences


def is_ignored_part(patterns: Iterable[str], node: str, part: str) -> bool:
    """Whether one of the patterns means this part of a node: `FAN7`, or `gpu07/PSU2*`."""
    names = (part, f"{node}/{part}")
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def find_mended(
    bad: Sequence[str], found: Sequence[Finding], whole: Collection[str]
) -> tuple[list[Finding], list[str]]:
    """Parts of nodes (`NODE/PART`) that were told as bad and are well now, or were taken out: said
    once, and only where the `whole` node was seen. Second, what is to be remembered as bad."""
    told = {f.subject for f in found}
    rest = [s for s in bad if "/" in s and s not in told]
    well = [s for s in rest if s.partition("/")[0] in whole]
    findings = [
        Finding(
            subject=subject,
            status=Status.OK,
            summary=visible(f"{subject.partition('/')[2]}: well again"),
            labels={"node": subject.partition("/")[0]},
        )
        for subject in well
    ]
    return findings, [f.subject for f in found if f.status.bad] + [s for s in rest if s not in well]
