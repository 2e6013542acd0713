"""`hold`: keeps a pending job in the queue, with its age."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sentinel.actions.jobs import JOB_ACTION_LIMITS
from sentinel.core.action_limits import Limits
from sentinel.core.actions import Look
from sentinel.core.cluster import Job
from sentinel.core.model import ActionRequest
from sentinel.core.ports import JobView
from sentinel.core.text import visible
from sentinel.plugin import Action
from sentinel.slurm.job_states import Phase, find_unknown_state, state_phase
from sentinel.slurm.pending_reasons import explain_reason


class HoldAction(Action, frozen=True):
    """Holds the pending elements of a job array (`scontrol uhold`), its owner may release them.

    For a restart storm: a train that dies at every start would burn through its elements. The
    target is the array's id, or a job's; what runs goes on.
    """

    limits: ClassVar[Limits] = JOB_ACTION_LIMITS
    asks_anew: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: JobView) -> Look:
        """Done when the job has no pending element that is not held."""
        jobs = view.jobs(request.target)
        phases = [(j, state_phase(j.state)) for j in jobs]
        rows = [j for j, phase in phases if phase in (Phase.WAITING, Phase.HELD)]
        free = [j for j, p in phases if p is Phase.WAITING and not explain_reason(j.reason).held]
        unknown = find_unknown_state(jobs)
        return Look(
            text=_describe_pending(rows, free),
            done=not (free or unknown),
            unneeded="" if free or unknown else "nothing of it is pending that is not held",
            not_ready=unknown or _explain_foreign_owner(request, rows),
            mark=" ".join(sorted(f"{j.id}" for j in free)),
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        return (("scontrol", "uhold", request.target),)


def _explain_foreign_owner(request: ActionRequest, rows: Sequence[Job]) -> str:
    owner = request.params.get("user", "")
    others = [j.user for j in rows if owner and j.user != owner]
    return f"it belongs to {visible(others[0])}" if others else ""


def _describe_pending(rows: Sequence[Job], free: Sequence[Job]) -> str:
    elements, loose = sum(j.elements for j in rows), sum(j.elements for j in free)
    return f"{elements} pending, {elements - loose} of them held"
