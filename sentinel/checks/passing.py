"""States that a node passes through: since when it is in one, how long that may take, and how long
it usually takes. Pure.

Slurm tells no beginning of them, so it is the first look that saw the node in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal

from msgspec import Struct

from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.cluster import Node, Timeouts
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Context
from sentinel.core.values import duration_text
from sentinel.slurm.node_states import UP, flag_meaning, is_heard

PassageKind = Literal["waking", "powering down", "rebooting", "completing"]
_ORDER: Sequence[PassageKind] = ("waking", "powering down", "rebooting", "completing")
BOOTING_KINDS = frozenset({"waking", "rebooting"})
KEPT, ENOUGH, SLOWER, SHORT = 20, 5, 2.0, 60.0
"""Boots kept of each partition; with how many there is a usual time; how many times that median,
and longer than all that are kept, is slow. A median, as one boot that hung moves no median. Seconds
in which none is slow: who wakes virtual machines in 2 s need not hear of 5."""


ROUND = 30
"""Seconds by which POWERING_DOWN outlasts SuspendTimeout on a well cluster: only slurmctld's round
over sleeping nodes ends it (10 s, slurm.conf(5), power_save_interval)."""


class NodePassage(Struct, frozen=True):
    """What is to be said of a node that passes through a state.

    late: longer than Slurm allows, so it is out; stuck: it does not end a job; slow: longer than
    usual; unknown: whether it is late cannot be told.
    """

    verdict: Literal["fine", "slow", "unknown", "late", "stuck"]
    text: str


class PassingNode(Struct, frozen=True, kw_only=True):
    """A node in such a state. `whole`: it was looked at before, so this is the beginning."""

    kind: PassageKind
    since: Instant
    whole: bool = False


def passage_kind(node: Node) -> PassageKind | None:
    """Which state it passes through; power saving and reboots before the end of a job."""
    kinds = {flag_meaning(flag).passing for flag in node.flags}
    return next((kind for kind in _ORDER if kind in kinds), None)


def follow_passages(
    before: Mapping[str, PassingNode] | None, nodes: Sequence[Node], now: Instant
) -> dict[str, PassingNode]:
    """Those who are in such a state now; `before` None: nobody has looked yet."""
    found: dict[str, PassingNode] = {}
    for node in nodes:
        kind, past = passage_kind(node), (before or {}).get(node.name)
        if kind and past and past.kind == kind:
            found[node.name] = past
        elif kind:
            found[node.name] = PassingNode(kind=kind, since=now, whole=before is not None)
    return found


def learn_boots(
    boots: Mapping[str, Sequence[int]],
    before: Mapping[str, PassingNode] | None,
    nodes: Sequence[Node],
    now: Instant,
) -> dict[str, tuple[int, ...]]:
    """Seconds of the last boots by partition, with those that have ended well since.

    Boots that began before the first look are not counted: nobody knows how long they took.
    """
    known = {name: tuple(seconds) for name, seconds in boots.items()}
    for node in nodes:
        past = (before or {}).get(node.name)
        if past and past.whole and past.kind in BOOTING_KINDS and _is_back(node):
            for name in node.partitions:
                known[name] = (*known.get(name, ()), round(get_elapsed_s(past.since, now)))[-KEPT:]
    there = {name for node in nodes for name in node.partitions}
    return {name: seconds for name, seconds in known.items() if name in there}


def find_slower_boot(
    boots: Mapping[str, Sequence[int]], node: Node, seconds: float
) -> tuple[str, float]:
    """The partition whose nodes usually boot much faster, and their usual time; ("", 0) if none."""
    for name in node.partitions:
        past = boots.get(name, ())
        if len(past) >= ENOUGH and seconds > max(SLOWER * median(past), *past, SHORT):
            return name, float(median(past))
    return "", 0.0


def _is_back(node: Node) -> bool:
    return node.state in UP and passage_kind(node) in (None, "completing") and is_heard(node)


def judge_ending(seconds: float, limit: float) -> NodePassage:
    """Of a node that does not end a job, after so many seconds of `limit`."""
    text = f"completing for {duration_text(seconds)}"
    return NodePassage("stuck" if seconds > limit else "fine", text)


def judge_move(
    node: Node,
    kind: PassageKind,
    seconds: float,
    boots: Mapping[str, Sequence[int]],
    timeouts: Timeouts,
    why: str,
) -> NodePassage:
    """Of a node that wakes, goes to sleep or reboots, against what Slurm allows and what is usual."""
    name = "SuspendTimeout" if kind == "powering down" else "ResumeTimeout"
    down = kind == "powering down"
    allowed = timeouts.node_timeout(node.partitions, suspend=down) + (ROUND if down else 0)
    text = f"{kind} for {duration_text(seconds)}"
    if seconds > allowed and why:
        return NodePassage("unknown", f"{text}; {name} could not be read ({why})")
    if seconds > allowed:
        return NodePassage("late", f"{text}, longer than {name} allows ({duration_text(allowed)})")
    partition, usual = find_slower_boot(boots, node, seconds) if kind in BOOTING_KINDS else ("", 0)
    if partition:
        return NodePassage("slow", f"{text}, usually {duration_text(usual)} in {partition}")
    return NodePassage("fine", text)


def ask_timeouts(ctx: Context) -> tuple[Timeouts, str]:
    """Slurm's limits; where they cannot be read the documented defaults, and why."""
    try:
        return ctx.slurm.timeouts(), ""
    except CannotTell as error:
        return Timeouts(), str(error)
