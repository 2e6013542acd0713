"""Findings and drain requests about lemons. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Node
from sentinel.core.gpu_ledger import GpuStanding, Stay
from sentinel.core.guidance import Guidance, avoid_node, look
from sentinel.core.model import ActionRequest, Finding, Status
from sentinel.core.values import clock_text

RENTERS = "report it to the provider, and hold this VM until its replacement runs, or it comes back"


def finding(
    uuid: str, node: str, standing: GpuStanding, stays: Sequence[Stay], now: Instant
) -> Finding:
    """The finding about a lemon: critical in whatever node it is, and notified again if it turns up
    in another.

    A suspect has no finding: a repaired GPU must not stay bad, and its past is in the ledger."""
    before = stays[-2] if len(stays) > 1 else None
    came = ""
    if before is not None:
        at = clock_text(before.ended.wall / SECOND, now.wall / SECOND)
        slot = f" slot {before.slot}" if before.slot else ""
        came = f", turned up here; it left {before.node}{slot} {at}"
    return Finding(
        subject=f"{uuid}@{node}",
        status=Status.CRITICAL,
        summary=f"lemon ({held(standing)}){came}: {RENTERS}",
        labels={"node": node},
        commands=(look("sentinel gpus show {}", uuid), look("sentinel gpus report {}", uuid)),
        guidance=Guidance(
            impact="Jobs there fail again and again, as they did before.",
            todo=avoid_node(node),
            ask=f"take {uuid} out of {node}: it fails again and again",
        ),
    )


def held(standing: GpuStanding) -> str:
    """The reason for a standing, in words: its score, or a person's mark."""
    return "marked by hand" if standing.marked else f"score {standing.score:.1f}"


def requests(
    lemons: Iterable[tuple[str, str]], nodes: Mapping[str, Node]
) -> Iterator[ActionRequest]:
    """A request to drain every node that holds a lemon and still takes jobs."""
    held: dict[str, list[str]] = {}
    for uuid, name in lemons:
        held.setdefault(name, []).append(uuid)
    for name, uuids in held.items():
        node = nodes.get(name)
        if node is None or "DRAIN" in node.flags:
            continue
        more = f" and {len(uuids) - 3} more" if len(uuids) > 3 else ""
        yield ActionRequest(
            action="drain",
            target=name,
            reason=f"lemon GPU {', '.join(uuids[:3])}{more}",
            evidence={"lemons": "\n".join(uuids)},
        )
