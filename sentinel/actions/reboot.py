"""`reboot`: a drained node is rebooted by Slurm and then takes jobs again."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from sentinel.actions.cluster_view import find_paused_job
from sentinel.core.action_limits import Limits
from sentinel.core.actions import Answer, Look, Reply
from sentinel.core.cluster import ControllerLogEntry, Node
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest
from sentinel.core.ports import Hands, View
from sentinel.core.values import Rate
from sentinel.plugin import Action
from sentinel.slurm.node_notes import describe_changes
from sentinel.slurm.node_states import (
    describe_node,
    reason_params,
    tag_reason,
    unfit_reason,
)

REBOOTING_FLAGS = frozenset({"REBOOT_ISSUED", "REBOOT_REQUESTED"})
MARK_FLAGS = REBOOTING_FLAGS | {"COMPLETING", "DRAIN"}
SAME_BOOT_S = 60
"""By this many seconds the boot times that Slurm shows for one boot may differ, because it computes
them."""


class RebootAction(Action, frozen=True):
    """Reboots idle drained nodes (scontrol reboot ASAP nextstate=RESUME); needs RebootProgram.

    The param `booted` is the boot time that was seen: a node that was booted since is done.
    `completing` "yes": it may be not drained, and idle but for a job that does not end. Slurm reboots no
    such node (_queue_reboot_msg() in src/slurmctld): DRAIN, which comes with the wish to reboot it,
    keeps jobs away, and only if none has come is it set DOWN, which ends the waiting.
    """

    limits: ClassVar[Limits] = Limits(per_node=Rate("1 in 1d"), per_hour=4)
    replaces_reason: ClassVar[bool] = True
    returns: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: View) -> Look:
        """The node must be drained, up and idle, for the reason that was seen. Done when a reboot
        is requested or was made since."""
        node = view.node(request.target)
        if node is None:
            return Look(text="unknown to Slurm", not_ready="Slurm knows no such node")
        return Look(
            text=describe_node(node),
            done=bool(node.flags & REBOOTING_FLAGS) or _is_rebooted(request, node),
            unneeded=_explain_unneeded_reboot(request, node),
            not_ready=_explain_reboot_refusal(request, node) or find_paused_job(view, node.name),
            mark=" ".join(
                [node.state, *sorted(node.flags & MARK_FLAGS), *reason_params(node).values()]
            ),
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        reason = tag_reason(request.reason)
        node = f"NodeName={request.target}"
        words = ("scontrol", "reboot", "ASAP", "nextstate=RESUME", f"reason={reason}")
        down = ("scontrol", "update", node, "State=DOWN", f"Reason={reason}")
        return ((*words, request.target), *([down] if _is_completing(request) else []))

    def perform(self, request: ActionRequest, hands: Hands) -> Reply:
        """Run the commands in turn. Before the node is set DOWN, which ends jobs, check that no job
        is on it."""
        first, *down = self.commands(request)
        reply = hands.change(first)
        if reply.answer is not Answer.ACCEPTED or not down:
            return reply
        try:
            node, paused = hands.node(request.target), find_paused_job(hands, request.target)
        except CannotTell as error:
            return Reply(Answer.UNSURE, f"it could not be read before it was set DOWN: {error}")
        free = node is not None and node.state == "IDLE" and not paused
        if node is None or not (free and node.flags >= {"DRAIN", "COMPLETING"}):
            return reply
        return hands.change(down[0])

    def logged(self, request: ActionRequest, entry: ControllerLogEntry) -> bool:
        """Whether the entry says that a reboot was requested. Slurm does not log by whom."""
        return entry.kind == "rebooted"

    def takes_back(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        return (("scontrol", "cancel_reboot", request.target),)


def _is_rebooted(request: ActionRequest, node: Node) -> bool:
    before = request.params.get("booted", "")
    return before.isdigit() and (node.boot_time or 0) > int(before) + SAME_BOOT_S


def _is_completing(request: ActionRequest) -> bool:
    return request.params.get("completing") == "yes"


def _explain_unneeded_reboot(request: ActionRequest, node: Node) -> str:
    if "DRAIN" in node.flags or (_is_completing(request) and "COMPLETING" in node.flags):
        return ""
    return f"it is not drained: {describe_node(node)}"


def _explain_reboot_refusal(request: ActionRequest, node: Node) -> str:
    expected = {"COMPLETING"} if _is_completing(request) else set()
    if why := unfit_reason(replace(node, flags=node.flags - expected)):
        return f"it is {why}"
    if node.state != "IDLE":
        return f"jobs still run there ({node.state})"
    return describe_changes(request.params, node)
