"""What drivers of network cards said on this machine, beside its GPUs: for a look by hand.

The `network` check tells it of every node and remembers it; who types `sentinel check gpu` on a node
whose job hangs should not have to know that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sentinel.core.model import Finding, get_worst_status
from sentinel.core.text import visible
from sentinel.nodes.probe import KernelLog, NodeProbe, Unread

if TYPE_CHECKING:
    from sentinel.core.model import Status

SHOWN = 2
"""Lines of a card that are shown; the `network` check has them all."""

RECENT_S = 3600.0
"""Seconds for which a line counts, as in the `network` check."""


def findings(name: str, probe: NodeProbe) -> Iterator[Finding]:
    """A finding for each card whose driver told of trouble within the last hour."""
    try:
        from sentinel.checks.network.driver_lines import find_driver_errors
    except ModuleNotFoundError:  # a copy without that kind
        return
    if not isinstance(probe.kernel, KernelLog) or isinstance(probe.identity, Unread):
        return
    since = probe.identity.uptime - RECENT_S
    told: dict[str, dict[str, Status]] = {}
    for card, status, text in find_driver_errors(
        line for line in probe.kernel.lines if line.at > since
    ):
        told.setdefault(card, {}).setdefault(text, status)
    for card, texts in told.items():
        yield Finding(
            subject=visible(f"{name}:{card}"),
            status=get_worst_status(texts.values()),
            summary="; ".join(
                [*list(texts)[:SHOWN], *([f"{len(texts) - SHOWN} more"] * (len(texts) > SHOWN))]
            ),
            labels={"node": visible(name)},
            commands=("sentinel check network",),
        )
