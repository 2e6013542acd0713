"""Which nodes a check looks at, and what is said of those that told nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Status

if TYPE_CHECKING:
    from sentinel.core.ports import Context
    from sentinel.core.probe import NodeProbe, Unread, Wants
    from sentinel.core.remote import Unreached
    from sentinel.core.slurm import Node

ALL = "all"
_AWAY = frozenset({"NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN"})


def judge_choice(nodes: str, job: str) -> None:
    """Raises Invalid unless at most one is given and `nodes` is a host list or `all`."""
    if nodes and job:
        raise Invalid("look at `nodes` or at those of a `job`; remove one of them", "job")
    if nodes and nodes != ALL:
        from sentinel.core import nodeset

        try:
            nodeset.expand(nodes)
        except Invalid as error:
            raise Invalid(str(error), "nodes") from None


def chosen(nodes: str, job: str, users: frozenset[str] | None, ctx: Context) -> tuple[str, ...]:
    """The nodes by name. `all`: those that Slurm says are up; `job` (name or id): where it runs,
    none while it does not. Raises CannotTell where Slurm has to be asked and is blind.
    """
    from sentinel.core import nodeset
    from sentinel.core.jobstates import Phase, phase

    if job:
        running = (
            j
            for j in ctx.slurm.jobs()
            if job in (j.name, j.id, j.job_id)
            and phase(j.state) in (Phase.RUNNING, Phase.PAUSED)
            and (users is None or j.user in users)
        )
        return tuple(dict.fromkeys(n for j in running for n in nodeset.expand(j.nodes)))
    if nodes == ALL:
        return tuple(n.name for n in ctx.slurm.nodes() if up(n))
    return nodeset.expand(nodes)


def up(node: Node) -> bool:
    """Whether Slurm hears from the node: nobody else is worth asking."""
    return node.state not in ("DOWN", "UNKNOWN", "FUTURE") and not node.flags & _AWAY


def probed(ctx: Context, names: Sequence[str], wants: Wants) -> Mapping[str, NodeProbe | Unreached]:
    """One round trip to each node; raises CannotTell where there is no way to nodes at all."""
    if ctx.remote is None:
        raise CannotTell("there is no way to nodes here; see `remote` in the configuration")
    return ctx.remote.probe(names, wants, limit=ctx.limit) if names else {}


def silent(node: str, answer: Unreached, subject: str = "") -> Finding:
    """A node that told nothing: nobody knows how it is."""
    from sentinel.core.remote import described

    return Finding(
        subject=subject or node,
        status=Status.UNKNOWN,
        summary=described(answer),
        labels={"node": node},
        commands=(f"sentinel nodes probe {node}",),
    )


def unread(node: str, part: Unread, subject: str = "") -> Finding:
    """A part of the probe that could not be read."""
    from sentinel.core.text import visible

    return Finding(
        subject=subject or node,
        status=Status.UNKNOWN,
        summary=visible(f"not read ({part.kind}): {part.why}"),
        labels={"node": node},
    )
