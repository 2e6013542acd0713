"""`resubmit`: submits a training that has died again, as it was."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import ClassVar

from sentinel.actions.jobs import find_job
from sentinel.core.action_limits import Limits
from sentinel.core.actions import Look
from sentinel.core.model import ActionRequest
from sentinel.core.ports import JobView
from sentinel.core.text import visible
from sentinel.core.values import Duration, Rate, Share
from sentinel.plugin import Action
from sentinel.slurm.job_states import Phase, state_phase
from sentinel.user_files.identity import user_name

ONCE_PER_JOB_LIMITS = Limits(
    per_hour=3, share=Share(100), per_node=Rate("1 in 30d"), cooldown=Duration(0)
)
"""Once for each job. If the new job dies, the check has to request it again for that job."""


class ResubmitAction(Action, frozen=True):
    """Submits a job of sentinel's own user again: `workdir`, and `words` of sbatch's as JSON.

    With `--dependency=singleton`: where somebody else has submitted one of that name meanwhile, it
    waits for that, and no two run at once.
    """

    limits: ClassVar[Limits] = ONCE_PER_JOB_LIMITS
    asks_anew: ClassVar[bool] = True
    leaves_no_trace: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: JobView) -> Look:
        """Only a job that is over and belongs to the user who runs sentinel may be submitted again.

        Done when a job of its name was submitted since the request: so it is found out what became of
        a submission that timed out. Nothing is submitted where nobody could tell.
        """
        job = find_job(request, view)
        over = job is None or state_phase(job.state) is Phase.OVER
        state = "gone from Slurm" if job is None else visible(job.state)
        why = "" if over else f"it is {state}, and not over"
        again = _find_submitted(request, view)
        if again is None:
            doubt = "nobody can tell whether it was submitted: slurmctld forgets jobs, and there is no accounting"
            return Look(text=doubt, not_ready=doubt, mark="not known")
        new = f"job {', '.join(map(visible, again[:3]))} of its name was submitted since"
        return Look(
            text=new if again else state,
            done=bool(again),
            unneeded=new if again else "",
            not_ready=why or _explain_foreign_user(request.params.get("user", "")),
            mark="over" if over else state,
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        program, *words = json.loads(request.params["words"])
        chdir = f"--chdir={request.params['workdir']}"
        return ((program, chdir, *words),)


def _find_submitted(request: ActionRequest, view: JobView) -> Sequence[str] | None:
    """The ids of other jobs of this name since the request. None if nobody can tell."""
    name, since = request.params.get("name", ""), request.params.get("since", "")
    if not (name and since.isdecimal()):
        return ()
    return view.submitted_since(name, int(since), request.target)


def _explain_foreign_user(user: str) -> str:
    """Why a job of another user is refused: Slurm would run it as the user who submits it."""
    me = user_name(os.geteuid())
    return "" if user == me else f"it belongs to {visible(user)}, and sentinel runs as {me}"
