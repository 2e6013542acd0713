"""`stacks`: stores where every rank of a job stands, as evidence."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from sentinel.actions.jobs import JOB_ACTION_LIMITS, look_at_running_job
from sentinel.core.action_limits import Limits
from sentinel.core.actions import Look, Reply
from sentinel.core.model import ActionRequest
from sentinel.core.ports import JobHands, JobView
from sentinel.core.values import Rate
from sentinel.plugin import Action


class StacksAction(Action, frozen=True):
    """Takes the stacks of all ranks and keeps them with the log's end and the nodes' states.

    Changes nothing: processes are read without being stopped.
    """

    limits: ClassVar[Limits] = replace(JOB_ACTION_LIMITS, per_node=Rate("6 in 1d"))
    asks_anew: ClassVar[bool] = True
    leaves_no_trace: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: JobView) -> Look:
        """This run of the job must be running, and its log must stand still."""
        return replace(look_at_running_job(request, view), done=False)

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        return (("sentinel", "stacks", request.target),)

    def perform(self, request: ActionRequest, hands: JobHands) -> Reply:
        """Take the stacks. The answer says what was found, and where it is stored."""
        return hands.evidence(request.target)
