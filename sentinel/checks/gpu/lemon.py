"""What is said of lemons: where they turn up, what to do, and what is asked of the guard. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sentinel.checks.gpu.judge import Problem
from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpus import Move
from sentinel.core.lemons import Standing
from sentinel.core.model import ActionRequest, Status
from sentinel.core.slurm import Node
from sentinel.core.values import duration_text

RENTERS = "report it to the provider, and hold this VM until its replacement runs, or it comes back"


def problem(
    uuid: str, standings: Mapping[str, Standing], moves: Mapping[str, Move]
) -> Problem | None:
    """A lemon is critical; where it came from if it just turned up. A suspect is no trouble now:
    who was repaired shall not stay bad, and what it did before is in the ledger."""
    standing = standings.get(uuid)
    if standing is None or standing.judged != "lemon":
        return None
    move = moves.get(uuid)
    came = f", turned up here; it was {_place(move)}" if move else ""
    return Status.CRITICAL, f"lemon ({held(standing)}){came}: {RENTERS}"


def held(standing: Standing) -> str:
    """Why it counts as what it does."""
    return "marked by hand" if standing.marked else f"score {standing.score:.1f}"


def _place(move: Move) -> str:
    slot = f" slot {move.was.slot}" if move.was.slot else ""
    return f"on {move.was.node}{slot}"


def moved(move: Move, now: Instant) -> str:
    """For the details of a finding: where it was, and until when."""
    age = duration_text(max(0, now.wall - move.was.ended.wall) // SECOND)
    return f"was {_place(move)} until {age} ago; is {move.now.node} slot {move.now.slot} now"


def requests(
    lemons: Mapping[str, Sequence[str]], nodes: Mapping[str, Node]
) -> Iterator[ActionRequest]:
    """A drain of every node that holds one and takes jobs still."""
    for name, uuids in lemons.items():
        node = nodes.get(name)
        if node is None or "DRAIN" in node.flags:
            continue
        listed = ", ".join(uuids[:3]) + (f" and {len(uuids) - 3} more" if len(uuids) > 3 else "")
        yield ActionRequest(
            action="drain",
            target=name,
            reason=f"lemon GPU {listed}",
            evidence={"lemons": "\n".join(uuids)},
        )
