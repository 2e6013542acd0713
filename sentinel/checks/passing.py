"""Judges nodes that pass through a state: since when they are in it, how long that may take, and
how long it usually takes. Pure.

Slurm does not show when such a state began. So it begins with the first run of the check that saw
the node in it.
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
"""KEPT: how many boots of each partition are remembered. ENOUGH: how many are needed for a usual
time. A boot is slow if it takes SLOWER times the median, longer than all that are remembered, and
more than SHORT seconds. One boot that hung does not move the median. Nobody who boots virtual
machines in 2 s needs to hear of 5."""


ROUND = 30
"""By how many seconds POWERING_DOWN may outlast SuspendTimeout on a healthy cluster. Only
slurmctld's round over sleeping nodes ends it (10 s, slurm.conf(5), power_save_interval)."""


class NodePassage(Struct, frozen=True):
    """The verdict about a node that changes its state.

    late: It takes longer than Slurm allows, so it is out.
    stuck: It does not end a job.
    slow: It takes longer than usual.
    unknown: It is not known whether it is late.
    """

    verdict: Literal["fine", "slow", "unknown", "late", "stuck"]  # The verdict.
    text: str  # The text for people.


class PassingNode(Struct, frozen=True, kw_only=True):
    """A node in such a state. `whole`: an earlier run of the check saw it in another state, so
    `since` is the real beginning."""

    kind: PassageKind  # The state.
    since: Instant  # When the node was first seen in this state.
    whole: bool = False


def passage_kind(node: Node) -> PassageKind | None:
    """The state that the node passes through. None if there is none. Power saving and reboots come
    before the end of a job."""
    kinds = {flag_meaning(flag).passing for flag in node.flags}
    return next((kind for kind in _ORDER if kind in kinds), None)


def follow_passages(
    before: Mapping[str, PassingNode] | None, nodes: Sequence[Node], now: Instant
) -> dict[str, PassingNode]:
    """The nodes that are in such a state now. `before` is None in the first run of the check."""
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
    """Seconds of the last boots by partition, with those that have ended well since. A boot that
    began before the first run of the check does not count, because its length is not known."""
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
    """The verdict about a node that has not ended a job after this many seconds of `limit`."""
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
    """The verdict about a node that wakes up, goes to sleep or reboots, by Slurm's limits and the
    usual time."""
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
    """Slurm's limits. If they cannot be read, the documented defaults, and the reason."""
    try:
        return ctx.slurm.timeouts(), ""
    except CannotTell as error:
        return Timeouts(), str(error)
