"""`requeue`: sends a job that hangs back into the queue."""

from __future__ import annotations

from typing import ClassVar

from sentinel.actions.jobs import JOB_ACTION_LIMITS, change_after_evidence, look_at_running_job
from sentinel.core.action_limits import Limits
from sentinel.core.actions import Look, Reply
from sentinel.core.model import ActionRequest
from sentinel.core.ports import JobHands, JobView
from sentinel.plugin import Action


class RequeueAction(Action, frozen=True):
    """Sends a running job back into the queue (`scontrol requeue`), stacks first.

    Slurm refuses jobs that were submitted with --no-requeue.
    """

    limits: ClassVar[Limits] = JOB_ACTION_LIMITS
    asks_anew: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: JobView) -> Look:
        """Done when this run of the job is over."""
        return look_at_running_job(request, view)

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        return (("scontrol", "requeue", request.target),)

    def perform(self, request: ActionRequest, hands: JobHands) -> Reply:
        """Collect the evidence, check the job once more, then requeue it."""
        return change_after_evidence(request, hands, self.commands(request))
