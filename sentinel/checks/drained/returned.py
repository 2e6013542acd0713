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
    """That its drain is over, and what is known of how. `records` of actions on it, newest first.
    UNKNOWN if slurmctld has not heard from it since its own start, or prints a word that is not known
    here: it may be back or not."""
    status, text = _describe_return(node, records)
    return Finding(
        subject=node.name, status=status, summary=visible(text), labels={"node": node.name}
    )


def _describe_return(node: Node, records: Sequence[ActionRecord]) -> tuple[Status, str]:
    if "DRAIN" in node.flags:
        return Status.OK, f"still drained, now for another reason: {shortened(node.reason, 80)}"
    over, state = "not drained any more", format_state(node)
    if is_out(node):
        return Status.OK, f"{over}, and still out of service ({state})"
    if node.state == "UNKNOWN" or unknown_flags(node):
        return Status.UNKNOWN, f"{over}; not known whether it is back in service ({state})"
    if not can_work(node):
        return Status.OK, f"{over}, and takes no jobs yet ({state})"
    last = records[0] if records else None
    if last and last.action == "undrain" and last.outcome is ActionOutcome.DONE:
        return Status.OK, f"back in service: undrained by {last.by}"
    return Status.OK, "back in service: resumed in Slurm, which does not record by whom"
