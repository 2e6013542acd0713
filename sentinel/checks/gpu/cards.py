"""Reports what drivers of network cards logged on this machine, beside its GPUs, for a person who
runs `sentinel check gpu`.

The `network` check reports and remembers this for every node. A person who looks at the GPUs of a
node whose job hangs need not know that check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sentinel.core.guidance import Guidance, look
from sentinel.core.model import Finding, get_worst_status
from sentinel.core.text import visible
from sentinel.nodes.probe import KernelLog, NodeProbe, Unread

if TYPE_CHECKING:
    from sentinel.core.model import Status

SHOWN = 2
"""How many lines of a card are shown. The `network` check has all of them."""

RECENT_S = 3600.0
"""How many seconds a line counts, as in the `network` check."""


def findings(name: str, probe: NodeProbe) -> Iterator[Finding]:
    """A finding for each card whose driver told of trouble within the last hour."""
    try:
        from sentinel.checks.network.driver_lines import find_driver_errors
    except ModuleNotFoundError:  # that kind was removed from this installation
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
            commands=(look("sentinel check network"),),
            guidance=Guidance(ask=visible(f"look at the network card {card} of {name}")),
        )
