"""`probation` and `release`: a node that came back is kept from jobs in a reservation, and given back.

The reservation ends by itself in Slurm, so that nothing of sentinel is needed for that. It carries
no MAINT: nobody takes it for a maintenance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sentinel.actions.cluster_view import find_paused_job
from sentinel.core.action_limits import Limits
from sentinel.core.actions import Look
from sentinel.core.cluster import Job, Node, Reservation
from sentinel.core.model import ActionRequest
from sentinel.core.ports import Hands
from sentinel.core.text import visible
from sentinel.core.values import Duration, Rate, Share
from sentinel.plugin import Action
from sentinel.slurm.node_states import describe_node, unfit_reason
from sentinel.slurm.pending_reason_row import ReasonEnd
from sentinel.slurm.pending_reasons import explain_job_reason
from sentinel.slurm.reservations import is_as_asked

OWN_TEST_PREFIX = "sentinel-diag-"
"""The beginning of the names of our own tests."""


class ProbationAction(Action, frozen=True):
    """Keeps an idle node in a reservation of its own, `name`, for `minutes`, open to `users` alone.

    Not while a pending job lacks the node, nor where anybody else has reserved it.
    """

    limits: ClassVar[Limits] = Limits(per_node=Rate("3 in 7d"), cooldown=Duration(0))
    asks_anew: ClassVar[bool] = True

    def look(self, request: ActionRequest, hands: Hands) -> Look:
        """The action is done if the reservation exists as requested. Raises CannotTell."""
        node, all_ = hands.node(request.target), hands.reservations()
        if node is None:
            return Look(text="unknown to Slurm", not_ready="Slurm knows no such node")
        mine = next((r for r in all_ if r.name == request.params["name"]), None)
        done = mine is not None and is_as_asked(mine, request.params)
        return Look(
            text=f"{describe_node(node)}, {'kept' if done else 'not kept'}",
            done=done,
            unneeded="it is kept already" if done else "",
            not_ready="" if done else _explain_probation_refusal(request, node, all_, hands),
            mark=node.state,
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        params = request.params
        made = (
            *(f"ReservationName={params['name']}", "StartTime=now"),
            *(f"Duration={params['minutes']}", f"Users={params['users']}"),
            f"Nodes={request.target}",
        )
        return (("scontrol", "create", "reservation", *made),)


class ReleaseAction(Action, frozen=True):
    """Takes a reservation of ours away, before its end; one that somebody has changed is theirs."""

    # No limit is needed: the action only gives a node back, which Slurm would do anyway.
    limits: ClassVar[Limits] = Limits(
        per_hour=1000, share=Share(100), per_node=Rate("50 in 7d"), cooldown=Duration(0)
    )
    asks_anew: ClassVar[bool] = True

    def look(self, request: ActionRequest, hands: Hands) -> Look:
        """Done when there is no reservation of that name. Raises CannotTell."""
        name = request.params["name"]
        mine = next((r for r in hands.reservations() if r.name == name), None)
        if mine is None:
            return Look(text="in no reservation", done=True, unneeded=f"{name} is gone")
        changed = not is_as_asked(mine, request.params)
        return Look(
            text=f"in {name} until {mine.ends}",
            not_ready=f"somebody has changed {name}: it is theirs now" if changed else "",
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        return (("scontrol", "delete", f"ReservationName={request.params['name']}"),)


def _explain_probation_refusal(
    request: ActionRequest, node: Node, reservations: Sequence[Reservation], hands: Hands
) -> str:
    if why := unfit_reason(node) or ("drained" if "DRAIN" in node.flags else ""):
        return f"it is {why}"
    if node.state != "IDLE":
        return f"jobs run there ({node.state})"
    if paused := find_paused_job(hands, node.name):
        return paused
    if other := next((r for r in reservations if node.name in r.nodes), None):
        return visible(f"it is reserved already: {other.name}")
    lacking = next((j for j in hands.waiting() if _may_need_node(j, node, request)), None)
    if lacking is None:
        return ""
    return visible(f"job {lacking.id} waits for nodes of {lacking.partition} ({lacking.reason})")


def _may_need_node(job: Job, node: Node, request: ActionRequest) -> bool:
    """Whether the job might start sooner with the node. If that is not known, it might."""
    if not set(job.partition.split(",")) & set(node.partitions):
        return False
    if job.name.startswith(OWN_TEST_PREFIX) and job.user in request.params["users"].split(","):
        return False
    reason = explain_job_reason(job.reason, job.partition)
    return reason.ends is not ReasonEnd.PERSON and reason.needs_nodes
