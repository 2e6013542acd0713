"""`exclude`: keeps a waiting job from a node on which the job before it failed."""

from __future__ import annotations

from typing import ClassVar

from sentinel.actions.job_requests import make_exclude_command
from sentinel.actions.jobs import JOB_ACTION_LIMITS, find_job
from sentinel.core.action_limits import Limits
from sentinel.core.actions import Look
from sentinel.core.cluster import Job
from sentinel.core.errors import Invalid
from sentinel.core.hostlist import check_name, expand_hostlist
from sentinel.core.model import ActionRequest
from sentinel.core.ports import JobView
from sentinel.core.text import visible
from sentinel.core.values import Rate
from sentinel.plugin import Action

MAX_EXCLUDED_NODES = 64
"""How many nodes a job may exclude. If it excludes more, it may wait for ever."""


class ExcludeAction(Action, frozen=True):
    """Adds the node of the param `node` to the excluded ones of one's own pending job.

    The params `user` and `exclude` say whose job it is and which list it had when it was seen.
    """

    limits: ClassVar[Limits] = Limits(
        per_hour=20,
        share=JOB_ACTION_LIMITS.share,
        per_node=Rate("4 in 1d"),
        cooldown=JOB_ACTION_LIMITS.cooldown,
    )
    asks_anew: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: JobView) -> Look:
        """Done when the job excludes the node."""
        job = find_job(request, view)
        if job is None or job.state != "PENDING":
            state = job.state if job else "not known to Slurm"
            return Look(text=state, unneeded=f"it is {state}, not PENDING")
        try:
            node, there = check_name(request.params.get("node", "")), parse_excluded_nodes(job)
        except Invalid as error:
            return Look(text="PENDING", not_ready=str(error))
        return Look(
            text=f"PENDING, excludes {visible(job.exclude) or 'no node'}",
            done=node in there,
            unneeded=f"it excludes {node} already" if node in there else "",
            not_ready=_explain_exclude_refusal(request, job, there),
            mark=f"{job.user} {job.exclude}",
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        before, node = request.params.get("exclude", ""), request.params.get("node", "")
        return (make_exclude_command(request.target, before, node),)


def parse_excluded_nodes(job: Job) -> tuple[str, ...]:
    """The nodes that the job excludes. Raises Invalid if the list cannot be parsed."""
    return expand_hostlist(job.exclude) if job.exclude else ()


def _explain_exclude_refusal(request: ActionRequest, job: Job, there: tuple[str, ...]) -> str:
    owner = request.params.get("user", "")
    if not owner or owner != job.user:
        return f"it belongs to {visible(job.user)}, and only one's own jobs are changed"
    if request.params.get("exclude", "") != job.exclude:
        return f"its excluded nodes changed: now {visible(job.exclude) or 'none'}"
    return (
        f"it excludes {len(there)} nodes already (at most {MAX_EXCLUDED_NODES})"
        if len(there) >= MAX_EXCLUDED_NODES
        else ""
    )
