"""What is said of lemons: where they turn up, what to do, and what is asked of the guard. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Node
from sentinel.core.gpu_ledger import GpuStanding, Stay
from sentinel.core.model import ActionRequest, Finding, Status
from sentinel.core.values import duration_text

RENTERS = "report it to the provider, and hold this VM until its replacement runs, or it comes back"


def finding(
    uuid: str, node: str, standing: GpuStanding, stays: Sequence[Stay], now: Instant
) -> Finding:
    """A lemon is critical wherever it sits, and told anew wherever it turns up.

    A suspect is no trouble now: who was repaired shall not stay bad, and what it did before is in
    the ledger.
    """
    before = stays[-2] if len(stays) > 1 else None
    came = ""
    if before is not None:
        age = duration_text(max(0, now.wall - before.ended.wall) // SECOND)
        slot = f" slot {before.slot}" if before.slot else ""
        came = f", turned up here; it was on {before.node}{slot} until {age} ago"
    return Finding(
        subject=f"{uuid}@{node}",
        status=Status.CRITICAL,
        summary=f"lemon ({held(standing)}){came}: {RENTERS}",
        labels={"node": node},
        commands=(f"sentinel gpus show {uuid}", f"sentinel gpus report {uuid}"),
    )


def held(standing: GpuStanding) -> str:
    """Why it counts as what it does."""
    return "marked by hand" if standing.marked else f"score {standing.score:.1f}"


def requests(
    lemons: Iterable[tuple[str, str]], nodes: Mapping[str, Node]
) -> Iterator[ActionRequest]:
    """A drain of every node that holds one and takes jobs still."""
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
