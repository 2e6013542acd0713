"""`killswitch`: creates the file at which a training saves and ends itself."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from sentinel.actions.jobs import JOB_ACTION_LIMITS, change_after_evidence, look_at_running_job
from sentinel.core.action_limits import Limits
from sentinel.core.actions import Answer, Look, Reply
from sentinel.core.model import ActionRequest
from sentinel.core.ports import JobHands, JobView
from sentinel.core.text import visible
from sentinel.plugin import Action


class KillswitchAction(Action, frozen=True):
    """Makes the kill-switch file of the param `file`, stacks first; never replaces one.

    Jobs that ask for it end by themselves, those that are queued behind too. It stays until
    a person removes it.
    """

    limits: ClassVar[Limits] = JOB_ACTION_LIMITS
    asks_anew: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: JobView) -> Look:
        """Done when the file exists."""
        path = request.params.get("file", "")
        if not path.startswith("/"):
            return Look(text="no file", not_ready="the param `file` is no absolute path")
        there, look = (
            view.size(path, request.params.get("user", "")) is not None,
            look_at_running_job(request, view),
        )
        return replace(
            look,
            text=f"{look.text}, {visible(path)} is {'there' if there else 'not there'}",
            done=there,
            unneeded=f"{visible(path)} is there already" if there else look.unneeded,
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        return (("touch", request.params.get("file", "")),)

    def perform(self, request: ActionRequest, hands: JobHands) -> Reply:
        """Collect the evidence, check the job once more, then create the file."""
        before = change_after_evidence(request, hands, ())
        if before.answer is not Answer.ACCEPTED:
            return before
        made = hands.create(
            request.params["file"],
            f"sentinel: job {request.target}: {request.reason}",
            request.params.get("user", ""),
            literal="literal" in request.params,
        )
        return Reply(made.answer, "; ".join(filter(None, [made.text, before.text])))
