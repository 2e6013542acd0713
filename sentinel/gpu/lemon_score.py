"""Lemons: GPUs and nodes that fail again and again. What counts, and what it means. Pure.

The signals are those of Kokolis et al. 2024 (https://arxiv.org/abs/2410.21680, section IV-A):
Xid counts, tickets, nodes taken out, jobs failing with NODE_FAIL on one and on several nodes, and
users' exclusion lists. They publish no numbers (thresholds were set by hand on a distribution of
28 days), so the weights below are ours, from what NVIDIA's own actions demand: what only a
program can cause weighs nothing, a reset 1, a reboot 2, a diagnosis 3, and one that fails 6.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from msgspec import Struct

from sentinel.core.clock import SECOND, Instant
from sentinel.core.lemon_policy import DAY_S, LemonPolicy

WEIGHTS: Mapping[str, float] = {
    # a diagnosis
    "diag fail": 6,
    "diag reset": 1,
    # memory
    "remap failed": 4,
    "remap pending": 1,
    "memory unrepairable": 4,
    "repair pending": 1,
    "retired pages": 3,
    "retired pending": 1,
    "ecc uncorrected": 2,
    "sram threshold": 4,
    # NVIDIA's own recovery action, read from the device
    "recovery Reset": 1,
    "recovery Reboot": 2,
    "recovery Drain P2P": 2,
    "recovery Drain and Reset": 1,
    "recovery Bus Reset": 1,
    "recovery System Reboot": 2,
    # the device is gone or does not answer
    "missing": 3,
    "unreadable": 2,
    # Xids, weighted by the action that they require; others have no weight
    **{f"xid {n}": 1.0 for n in (46, 62, 63, 109, 110, 119, 120, 136, 155, 156, 158, 177)},
    **{f"xid {n}": 2.0 for n in (79, 95, 151, 167, 168, 173)},
    **{f"xid {n}": 3.0 for n in (48, 54, 64, 74, 140, 143, 171, 172)},
    **{f"xid {n}": 1.0 for n in (144, 145, 146, 147, 148, 149, 150)},
    "xid 94": 0.5,
    "xid 92": 0.25,
    # an NVSwitch is not a GPU, so this counts for its node
    "sxid fatal": 3,
    "init failed": 2,
    "ras uncorrectable": 2,
    # nodes, after Kokolis et al.
    "node fail": 2,
    "node fail alone": 3,
    "drained": 1,
    "excluded": 0.25,
}
"""The weight of one event of each kind; `xid 13`, `31`, `43`, `45` and every other kind weigh 0."""

OUTAGE = 1.0
"""An event of at least this weight takes a node out; a user who avoids the node does not."""

RETURN = "undrained"
"""The event that a node is in service again; whatever comes next is another outage."""


def weight(policy: LemonPolicy, what: str) -> float:
    """The weight of one event of that kind."""
    own = policy.weights.get(what)
    return own if own is not None else WEIGHTS.get(what, 0.0)


class Term(Struct, frozen=True, kw_only=True):
    """One term of a score: an event, its weight, and how much of the weight is left today."""

    id: str
    what: str
    at: Instant
    weight: float
    left: float
    why: str = ""


def decayed(score: float, since: int, now: int, policy: LemonPolicy) -> float:
    """The present value of a score that was counted at `since` (µs UTC); never more than it was."""
    age = max(0, now - since) / SECOND
    return score * math.pow(0.5, age / policy.half_life)


def sum_of(events: Iterable[tuple[str, str, Instant]], now: int, policy: LemonPolicy) -> list[Term]:
    """The terms of a score from (id, what, when), the oldest first; `explain` prints them.

    One incident makes several events (an Xid, a remapping, a recovery action), so only the heaviest
    event of each day counts."""
    told = sorted(events, key=lambda e: (e[2].wall, e[0]))
    heaviest: dict[int, tuple[str, str, Instant]] = {}
    for event in told:
        day = _day(event[2])
        if day not in heaviest or weight(policy, event[1]) > weight(policy, heaviest[day][1]):
            heaviest[day] = event
    return [_term(event, heaviest[_day(event[2])], now, policy) for event in told]


def outages(events: Iterable[tuple[str, str, Instant]], policy: LemonPolicy) -> list[Instant]:
    """When each outage of a node began, the oldest first, from (id, what, when). Events within a
    day belong to the same outage, unless the node came back in between."""
    found: list[Instant] = []
    over = True
    for _, what, at in sorted(events, key=lambda e: (e[2].wall, e[0])):
        if what == RETURN:
            over = True
        elif weight(policy, what) >= OUTAGE:
            if over or at.wall - found[-1].wall >= DAY_S * SECOND:
                found.append(at)
            over = False
    return found


def _term(
    event: tuple[str, str, Instant],
    heaviest: tuple[str, str, Instant],
    now: int,
    policy: LemonPolicy,
) -> Term:
    name, what, at = event
    heavy, why, left = weight(policy, what), "", 0.0
    if not heavy:
        why = "weighs nothing"
    elif event != heaviest:
        why = f"{heaviest[1]} counts for that day"
    else:
        left = decayed(heavy, at.wall, now, policy)
    return Term(id=name, what=what, at=at, weight=heavy, left=left, why=why)


def _day(at: Instant) -> int:
    return at.wall // (DAY_S * SECOND)
