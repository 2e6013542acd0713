"""`reboot`: a drained node is rebooted by Slurm and then takes jobs again."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from sentinel.actions.nodes import tagged
from sentinel.core.actions import Look
from sentinel.core.limits import Limits
from sentinel.core.model import ActionRequest
from sentinel.core.nodestate import changed, described, seen, unfit
from sentinel.core.ports import View
from sentinel.core.slurm import Node
from sentinel.core.slurmctld_log import Entry
from sentinel.core.values import Rate

REBOOTING = frozenset({"REBOOT_ISSUED", "REBOOT_REQUESTED"})
SAME_BOOT = 60
"""Seconds by which the boot times that Slurm shows of one boot may differ (it computes them)."""


class Reboot(Struct, frozen=True):
    """Reboots idle drained nodes (scontrol reboot ASAP nextstate=RESUME); needs RebootProgram.

    The param `booted` is the boot time that was seen: a node that was booted since is done.
    """

    limits: ClassVar[Limits] = Limits(per_node=Rate("1 in 1d"), per_hour=4)

    def look(self, request: ActionRequest, view: View) -> Look:
        """Fit while the node is drained, up and idle, for the reason that was seen."""
        node = view.node(request.target)
        if node is None:
            return Look(text="unknown to Slurm", not_ready="Slurm knows no such node")
        return Look(
            text=described(node),
            done=bool(node.flags & REBOOTING) or _booted_since(request, node),
            unneeded="" if "DRAIN" in node.flags else f"it is not drained: {described(node)}",
            not_ready=_not_ready(request, node),
            mark=" ".join([node.state, *sorted(node.flags & REBOOTING), *seen(node).values()]),
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        reason = f"reason={tagged(request.reason)}"
        words = ("scontrol", "reboot", "ASAP", "nextstate=RESUME", reason, request.target)
        return (words,)

    def logged(self, request: ActionRequest, entry: Entry) -> bool:
        """A reboot was asked for; who did is not logged."""
        return entry.kind == "rebooted"

    def takes_back(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        return (("scontrol", "cancel_reboot", request.target),)


def _booted_since(request: ActionRequest, node: Node) -> bool:
    before = request.params.get("booted", "")
    return before.isdigit() and (node.boot_time or 0) > int(before) + SAME_BOOT


def _not_ready(request: ActionRequest, node: Node) -> str:
    if why := unfit(node):
        return f"it is {why}"
    if node.state != "IDLE":
        return f"jobs still run there ({node.state})"
    return changed(request.params, node)
