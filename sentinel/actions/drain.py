"""`drain`: no further jobs start on a node. Those that run there continue."""

from __future__ import annotations

from typing import ClassVar

from sentinel.core.action_limits import Limits
from sentinel.core.actions import Look
from sentinel.core.cluster import ControllerLogEntry, Node
from sentinel.core.model import ActionRequest
from sentinel.core.ports import View
from sentinel.core.values import Duration, Rate
from sentinel.plugin import Action
from sentinel.slurm.drain_reasons import find_slurms_reason
from sentinel.slurm.node_notes import describe_changes
from sentinel.slurm.node_states import (
    TAG,
    describe_node,
    flag_meaning,
    format_state,
    tag_reason,
    unfit_reason,
    unknown_flags,
)


class DrainAction(Action, frozen=True):
    """Sets nodes to DRAIN, with the reason; a node that is drained keeps the reason it has."""

    # Draining has no limit, because a node that fails again must be drained again. The limit is on
    # returning it to service.
    limits: ClassVar[Limits] = Limits(per_node=Rate("20 in 7d"), cooldown=Duration(0))
    replaces_reason: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: View) -> Look:
        """Done when the node is drained with our reason. The reason of somebody else, for which the node
        is out of service, is never replaced, unless the request names it."""
        node = view.node(request.target)
        if node is None:
            return Look(text="unknown to Slurm", not_ready="Slurm knows no such node")
        drained = "DRAIN" in node.flags
        return Look(
            text=describe_node(node),
            done=drained and node.reason == tag_reason(request.reason),
            unneeded=f"it is drained already: {describe_node(node)}" if drained else "",
            not_ready=_explain_drain_refusal(request, node),
            mark=f"{drained} {node.state == 'DOWN'} {node.reason} {node.reason_time}",
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        reason = f"Reason={tag_reason(request.reason)}"
        return (("scontrol", "update", f"NodeName={request.target}", "State=DRAIN", reason),)

    def logged(self, request: ActionRequest, entry: ControllerLogEntry) -> bool:
        """Whether the entry is an update that set our reason."""
        return entry.kind == "reason" and entry.text == tag_reason(request.reason)


def _explain_drain_refusal(request: ActionRequest, node: Node) -> str:
    if not request.reason.strip():
        return "a drain needs a reason"
    # State=DRAIN ends and requeues the job of a node that is being powered up for it (update_node()
    # in src/slurmctld/node_mgr.c, 20.11 to 26.05).
    wakes = any(flag_meaning(flag).wakes for flag in node.flags)
    if node.state in ("ALLOCATED", "MIXED") and wakes:
        return f"it is powered up for a job, which a drain would end ({format_state(node)})"
    if unknown_flags(node):
        return f"sentinel does not know its state: {format_state(node)}"
    known = "reason" in request.params or node.reason.startswith(TAG.strip())
    theirs = node.reason and not (known or find_slurms_reason(node.reason))
    if theirs and unfit_reason(node):
        return f"it is out of service for another reason: {describe_node(node)}"
    return describe_changes(request.params, node)
