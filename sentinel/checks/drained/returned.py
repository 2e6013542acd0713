"""What is said of a node that was told as drained, and is not drained for such a reason any more. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.core.actions import ActionOutcome, ActionRecord
from sentinel.core.cluster import Node
from sentinel.core.model import Finding, Status
from sentinel.core.text import shortened, visible
from sentinel.nodes.history import is_out
from sentinel.slurm.node_states import can_work, format_state, unknown_flags


def judge_returned_node(node: Node, records: Sequence[ActionRecord]) -> Finding:
    """That its drain is over, and what is known of how. `records` of actions on it, newest first."""
    return Finding(
        subject=node.name,
        status=Status.UNKNOWN if _is_unclear(node) else Status.OK,
        summary=visible(_describe_return(node, records)),
        labels={"node": node.name},
    )


def _is_unclear(node: Node) -> bool:
    """Whether the node may be back or not: slurmctld has not heard from it since its own start, or
    prints a word that is not known here."""
    told = "DRAIN" in node.flags or is_out(node)
    return not told and (node.state == "UNKNOWN" or bool(unknown_flags(node)))


def _describe_return(node: Node, records: Sequence[ActionRecord]) -> str:
    if "DRAIN" in node.flags:
        return f"still drained, now for another reason: {shortened(node.reason, 80)}"
    if is_out(node):
        return f"not drained any more, and still out of service ({format_state(node)})"
    if _is_unclear(node):
        return (
            f"not drained any more; not known whether it is back in service ({format_state(node)})"
        )
    if not can_work(node):
        return f"not drained any more, and takes no jobs yet ({format_state(node)})"
    last = records[0] if records else None
    if last and last.action == "undrain" and last.outcome is ActionOutcome.DONE:
        return f"back in service: undrained by {last.by}"
    return "back in service: resumed in Slurm, which does not record by whom"
