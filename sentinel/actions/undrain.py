"""`undrain`: a drained node takes jobs again."""

from __future__ import annotations

from typing import ClassVar

from sentinel.core.action_limits import Limits
from sentinel.core.actions import Look
from sentinel.core.cluster import ControllerLogEntry, Node
from sentinel.core.model import ActionRequest
from sentinel.core.ports import View
from sentinel.plugin import Action
from sentinel.slurm.node_notes import describe_changes
from sentinel.slurm.node_states import (
    describe_node,
    format_state,
    reason_params,
    unfit_reason,
)


class UndrainAction(Action, frozen=True):
    """Takes DRAIN off nodes that are up, and only that: a node that is down stays down.

    State=UNDRAIN, not RESUME or IDLE, which raise a DOWN node too. The param `idle` "yes"
    demands that no job runs there any more.
    """

    limits: ClassVar[Limits] = Limits()
    replaces_reason: ClassVar[bool] = True
    returns: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: View) -> Look:
        """DRAIN must be set, the node must be up, and its reason must be the one that was seen,
        without a note that somebody wrote since. Done when DRAIN is not set."""
        node = view.node(request.target)
        if node is None:
            return Look(text="unknown to Slurm", not_ready="Slurm knows no such node")
        drained = "DRAIN" in node.flags
        return Look(
            text=describe_node(node),
            done=not drained,
            unneeded="" if drained else f"it is not drained: {describe_node(node)}",
            not_ready=_explain_undrain_refusal(request, node),
            mark=" ".join([format_state(node), *reason_params(node).values()]),
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        return (("scontrol", "update", f"NodeName={request.target}", "State=UNDRAIN"),)

    def logged(self, request: ActionRequest, entry: ControllerLogEntry) -> bool:
        """Whether the entry is an update that put the node back into service."""
        return entry.kind == "back"


def _explain_undrain_refusal(request: ActionRequest, node: Node) -> str:
    if why := unfit_reason(node):
        return f"it is {why}"
    if request.params.get("idle") == "yes" and node.state != "IDLE":
        return f"jobs still run there ({node.state})"
    return describe_changes(request.params, node)
