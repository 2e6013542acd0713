"""Judges the clocks of nodes: whether something keeps them in step, and whether they agree. Pure.

One round of the probe tells each node's time, between the moments of the question and the answer by
the clock of who asks. So an offset is known up to half of the time that the answer took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from msgspec import Struct

from sentinel.core.host_parts import ClockSync
from sentinel.core.model import Status
from sentinel.core.values import duration_text
from sentinel.nodes.probe import NodeProbe, Unread

IN_STEP: Mapping[str, bool] = {
    "Normal": True,
    "Insert second": True,
    "Delete second": True,
    "Not synchronised": False,
    "yes": True,
    "no": False,
}
"""Words of chrony (client.c) and of timedatectl."""

RESOLUTION_S = 1.0
"""A node tells whole seconds."""

MUNGE_TTL_S = 300.0
"""How old a credential of munge may be (munged(8)): over that, nodes refuse one another's messages."""


class ClockOffset(Struct, frozen=True):
    """How far a node's clock is ahead of the others', in seconds, and how sure that is."""

    seconds: float
    uncertainty: float

    @property
    def certain(self) -> float:
        """What is left of it if it is as small as it may be."""
        return max(0.0, abs(self.seconds) - self.uncertainty)


def compare_clocks(probes: Mapping[str, NodeProbe]) -> dict[str, ClockOffset]:
    """The offset of each node from the middle one of all, the clock of who asked among them. With
    fewer than three clocks nobody knows which one is wrong: then from the clock of who asked."""
    found = {}
    for name, probe in probes.items():
        if probe.asked is not None and not isinstance(probe.identity, Unread):
            sent, received = probe.asked
            at = probe.identity.time
            low, high = at - received, at + RESOLUTION_S - sent
            found[name] = ClockOffset((low + high) / 2, (high - low) / 2)
    middle, unsure = 0.0, 0.0
    if len(found) >= 2:
        middle = median([0.0, *(one.seconds for one in found.values())])
        unsure = median([0.0, *(one.uncertainty for one in found.values())])
    return {
        name: ClockOffset(one.seconds - middle, one.uncertainty + unsure)
        for name, one in found.items()
    }


def judge_clock(
    sync: ClockSync | None, offset: ClockOffset | None, most: float
) -> Iterator[tuple[Status, str]]:
    """The troubles of a clock at this look, how bad each is, and why."""
    if sync is not None:
        known = IN_STEP.get(sync.word)
        if known is None:
            yield Status.UNKNOWN, f"a state of the clock that sentinel does not know: {sync.word}"
        elif not known:
            yield Status.WARNING, "nothing keeps the clock in step (not synchronised)"
        if sync.offset is not None and abs(sync.offset) > most:
            yield Status.WARNING, f"the clock is {_show(sync.offset)} NTP's time"
    if offset is not None and offset.certain > most:
        yield (
            Status.CRITICAL if offset.certain >= MUNGE_TTL_S else Status.WARNING,
            f"the clock is {_show(offset.seconds)} the other nodes' "
            f"(known up to {offset.uncertainty:.1f}s)",
        )


def _show(seconds: float) -> str:
    return f"{duration_text(abs(seconds))} {'ahead of' if seconds > 0 else 'behind'}"
