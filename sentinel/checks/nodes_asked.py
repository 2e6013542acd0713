"""Chooses the nodes that a check examines, and reports those that did not answer."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sentinel import proc
from sentinel.checks.users import refuse_lost
from sentinel.core import hostlist
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.guidance import Guidance, look
from sentinel.core.model import Coverage, Finding, Status, covered
from sentinel.core.node_answers import describe_unreached
from sentinel.core.text import visible
from sentinel.nodes import script
from sentinel.nodes.probe import CutShort, NodeProbe, NoProbe, parse
from sentinel.slurm.job_states import Phase, find_unknown_state, state_phase
from sentinel.slurm.node_states import ASLEEP, is_heard

if TYPE_CHECKING:
    from sentinel.core.cluster import Node
    from sentinel.core.node_answers import Unreached
    from sentinel.core.ports import Context
    from sentinel.nodes.probe import ProbeRequest, Unread

_LOG = logging.getLogger("sentinel")

ALL = "all"
CHOICE_MEMORY = "asked"
"""The key of a check's memory below which the last choice is stored."""


class ChosenNodes(Struct, frozen=True, kw_only=True):
    """The watched nodes, and those of them that can be asked (`names`).

    `why`: why the others cannot be asked, or why no node is watched. `lost`: some nodes were in
    Slurm's list at the last run and are missing now. `memory`: to be stored by the check for the
    next run. `of`: the kind of things that are counted.
    """

    meant: tuple[str, ...]  # Names of all configured nodes.
    names: tuple[str, ...]
    why: str = ""
    lost: bool = False
    memory: Mapping[str, Any] = {}
    of: str = "nodes"

    def nodes_coverage(self, seen: Iterable[str]) -> Coverage:
        """The coverage of the watched nodes. It is excused only if all nodes that could be asked
        were seen, and none is missing from Slurm's list."""
        there = set(seen)
        excused = self.why if there.issuperset(self.names) and not self.lost else ""
        return covered(self.of, self.meant, there, excused)


def judge_choice(nodes: str, job: str) -> None:
    """Raise Invalid if both are given, or if `nodes` is neither a host list nor `all`."""
    if nodes and job:
        raise Invalid("look at `nodes` or at those of a `job`; remove one of them", "job")
    if nodes and nodes != ALL:
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
    """The nodes by name.

    `all`: Slurm's nodes (that `of` accepts) that do not sleep. Those that Slurm hears from are
    asked. `job` (name or id): the nodes where it runs, none while it does not run. Raises
    CannotTell if Slurm must be asked and does not answer. A list may be cut at the end of a record
    without any sign. So a list without a node or job of the last run is not believed the first
    time: Slurm is asked again for jobs, and a node counts as not seen.
    """
    if job:
        return _nodes_of_job(job, users, ctx)
    if nodes == ALL:
        return _all_nodes(ctx, of)
    names = hostlist.expand_hostlist(nodes)
    return ChosenNodes(meant=names, names=names)


def _nodes_of_job(job: str, users: frozenset[str] | None, ctx: Context) -> ChosenNodes:
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
    """The choice of the last run. None if there was none."""
    asked = {} if ctx.one_shot else ctx.memory.get(CHOICE_MEMORY)
    found = asked.get(what) if isinstance(asked, Mapping) else None
    return found if isinstance(found, str) else None


def is_up(node: Node) -> bool:
    """Whether Slurm hears from the node. Other nodes are not asked."""
    return is_heard(node)


def probe_nodes(
    ctx: Context, names: Sequence[str], wants: ProbeRequest
) -> Mapping[str, NodeProbe | Unreached]:
    """Probe each node in one round trip. Raises CannotTell if there is no way to nodes."""
    if ctx.remote is None:
        raise CannotTell("there is no way to nodes here; see `remote` in the configuration")
    answers = ctx.remote.probe(names, wants, limit=ctx.limit) if names else {}
    for name, answer in answers.items():
        if squatter := getattr(answer, "squatter", ""):
            _LOG.warning("%s: %s; another directory is used", visible(name), squatter)
    return answers


def silent_finding(node: str, answer: Unreached, subject: str = "") -> Finding:
    """The finding about a node without an answer. Its state is unknown."""
    return Finding(
        subject=subject or node,
        status=Status.UNKNOWN,
        summary=describe_unreached(answer),
        labels={"node": node},
        commands=(look("sinfo -N -l -n {}", node), look("sentinel nodes probe {}", node)),
        guidance=Guidance(
            impact=f"{node} and its jobs may be down, or only the way from here to it is. Trouble there"
            " stays unnoticed until it answers.",
            todo="`sinfo` below shows what Slurm knows of the node; `sentinel nodes probe` asks it again."
            " Administrators: if it still does not answer, look at its console.",
            ask=f"look at {node}: {describe_unreached(answer)}",
        ),
    )


def unread_finding(node: str, part: Unread, subject: str = "") -> Finding:
    """The finding about a part of the probe that could not be read."""
    return Finding(
        subject=subject or node,
        status=Status.UNKNOWN,
        summary=visible(f"not read ({part.kind_words}): {part.why}"),
        labels={"node": node},
    )


def host_name() -> str:
    """The short name of this machine."""
    return os.uname().nodename.partition(".")[0]


def probe_here(limit: float, wants: ProbeRequest) -> tuple[str, NodeProbe]:
    """Probe this machine with the script that nodes run, in a child process that can be killed.

    Returns the machine's short name and the answer. Raises CannotTell.
    """
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
    """Ask the nodes, or this machine if none is configured. Returns their answers, and a finding
    for each that did not answer.

    Raises CannotTell if nodes cannot be reached at all, or if Slurm must be asked and does not
    answer.
    """
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
    """Find parts of nodes (`NODE/PART`) that were reported as bad and are well now, or were
    removed. Each is reported once, and only if the whole node was seen (it is in `whole`).

    Returns the findings about them, and the parts to remember as bad.
    """
    told = {f.subject for f in found}
    rest = [s for s in bad if "/" in s and s not in told]
    well = [s for s in rest if s.partition("/")[0] in whole]
    findings = [
        Finding(
            subject=subject,
            status=Status.OK,
            summary="well again",
            labels={"node": subject.partition("/")[0]},
        )
        for subject in well
    ]
    return findings, [f.subject for f in found if f.status.bad] + [s for s in rest if s not in well]
