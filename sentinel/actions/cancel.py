"""`cancel`: ends a job that hangs, or sends it a signal."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from sentinel.actions.jobs import JOB_ACTION_LIMITS, change_after_evidence, look_at_running_job
from sentinel.core.action_limits import Limits
from sentinel.core.actions import Look, Reply
from sentinel.core.model import ActionRequest
from sentinel.core.ports import JobHands, JobView
from sentinel.plugin import Action

ALLOWED_SIGNALS = frozenset({"HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "USR2", "TERM", "CONT"})
SCANCEL_OPTIONS = {"steps": (), "batch": ("--batch",), "all": ("--full",)}
"""The options of scancel(1) for its targets: only the steps, only the batch shell, or both."""


class CancelAction(Action, frozen=True):
    """Ends a running job (`scancel`), stacks first; with the param `signal` sends that instead.

    `to`: steps (default), batch or all. What a signal brings about is not waited for.
    """

    limits: ClassVar[Limits] = JOB_ACTION_LIMITS
    asks_anew: ClassVar[bool] = True
    leaves_no_trace: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: JobView) -> Look:
        """Done when this run of the job is over."""
        look = look_at_running_job(request, view)
        refusal = _explain_unknown_param(request) or look.not_ready
        return replace(look, not_ready=refusal or _explain_scrontab(request, view, look))

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        signal = request.params.get("signal", "")
        if not signal:
            return (("scancel", request.target),)
        to = SCANCEL_OPTIONS.get(request.params.get("to", "steps"), ())
        return (("scancel", f"--signal={signal}", *to, request.target),)

    def perform(self, request: ActionRequest, hands: JobHands) -> Reply:
        """Collect the evidence, check the job once more, then run scancel."""
        return change_after_evidence(request, hands, self.commands(request))


def _explain_scrontab(request: ActionRequest, view: JobView, look: Look) -> str:
    """Why a job that a line of scrontab began is left alone: scancel, with a signal too, comments the line out
    for good (_job_signal() in src/slurmctld/job_mgr.c, 20.11 to 26.11). Empty for any other."""
    ask = getattr(view, "is_of_scrontab", None)
    if look.done or ask is None or not ask(request.target):
        return ""
    return "scrontab began it, and scancel would switch its line off for good"


def _explain_unknown_param(request: ActionRequest) -> str:
    signal, to = request.params.get("signal", ""), request.params.get("to", "steps")
    if signal and signal not in ALLOWED_SIGNALS:
        return f"{signal!r} is no signal; known: {', '.join(sorted(ALLOWED_SIGNALS))}"
    return "" if to in SCANCEL_OPTIONS else f"`to` is {to!r}; known: {', '.join(SCANCEL_OPTIONS)}"
