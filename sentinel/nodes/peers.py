"""Judges what nodes measured against the other nodes of their kind. Pure.

A fixed limit needs somebody who knows what a healthy node reaches. The other nodes know it. Median
and median absolute deviation (MAD) are not moved by a few slow nodes, as mean and standard
deviation are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal

from msgspec import Struct

MIN_PEERS = 8
"""With fewer other nodes of the same kind, nobody is judged."""

MIN_SHORTFALL = 0.20
"""A node that reaches 80% of the median is never slow, however equal the others are. Healthy ones
differ: V100 nodes by 8%, at most 22%, between the ends of what is no outlier (Sinha et al., SC22,
arXiv 2208.11035); IBM sorts out nodes 4% below the reference of STREAM, Intel lets the slowest
good one fall by 10% ("normal fluctuation"). Slow ones are further away: the outliers of SC22 took
1.5 times as long, a PCIe link with half of its lanes or a port at half of its rate has 50%."""

MAX_SPREAD = 0.10
"""If the peers themselves spread by more than this share of their median, they are no measure."""

SPREADS_BELOW = 4.0
"""A slow node is at least so many spreads below the median."""

MAD_TO_DEVIATION = 1.4826
"""The MAD of a normal distribution times this is its standard deviation."""

PeerOutcome = Literal["pass", "slow", "inconclusive"]


class Measured(Struct, frozen=True, kw_only=True):
    """What one node reached in one measure. More is better."""

    node: str  # Name of the node.
    kind: str  # Only nodes of the same kind are compared.
    measure: str  # What was measured, as `write`.
    value: float  # In the unit of the measure.


class PeerJudgement(Struct, frozen=True, kw_only=True):
    """How one value stands among those of the other nodes."""

    outcome: PeerOutcome  # Slow only if it is far below the others.
    peers: int  # How many other nodes of its kind there are.
    median: float  # Of all of its kind, in the unit of the measure.
    spread: float  # A robust standard deviation, as a share of the median.


def judge_peers(values: Sequence[Measured]) -> Mapping[Measured, PeerJudgement]:
    """The judgement of every value."""
    groups: dict[tuple[str, str], list[Measured]] = {}
    for one in values:
        groups.setdefault((one.kind, one.measure), []).append(one)
    return {one: found for group in groups.values() for one, found in _judge_group(group).items()}


def _judge_group(group: Sequence[Measured]) -> Mapping[Measured, PeerJudgement]:
    middle = median(one.value for one in group)
    deviation = MAD_TO_DEVIATION * median(abs(one.value - middle) for one in group)
    spread = deviation / middle if middle > 0 else 0.0
    peers = len({one.node for one in group}) - 1
    known = peers >= MIN_PEERS and middle > 0 and spread <= MAX_SPREAD
    slow_below = middle * (1 - max(MIN_SHORTFALL, SPREADS_BELOW * spread))

    def judge_value(value: float) -> PeerOutcome:
        if not known:
            return "inconclusive"
        return "slow" if value < slow_below else "pass"

    return {
        one: PeerJudgement(
            outcome=judge_value(one.value), peers=peers, median=middle, spread=spread
        )
        for one in group
    }
