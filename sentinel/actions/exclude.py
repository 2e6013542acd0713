"""`exclude`: a job that waits is not put on a node that broke its predecessor."""

from __future__ import annotations

from typing import ClassVar

from sentinel.actions.job_requests import excluding
from sentinel.actions.jobs import LIMITS, changed, found
from sentinel.core.action_limits import Limits
from sentinel.core.actions import Look, Reply
from sentinel.core.cluster import Job
from sentinel.core.errors import Invalid
from sentinel.core.hostlist import check_name, expand
from sentinel.core.model import ActionRequest
from sentinel.core.ports import JobHands, JobView
from sentinel.core.text import visible
from sentinel.core.values import Rate
from sentinel.plugin import Action

MOST = 64
"""Nodes that a job may come to exclude: more, and it waits for ever."""


class Exclude(Action, frozen=True):
    """Adds the node of the param `node` to the excluded ones of one's own pending job.

    The params `user` and `exclude` say whose job it is and which list it had when it was seen.
    """

    limits: ClassVar[Limits] = Limits(
        per_hour=20, share=LIMITS.share, per_node=Rate("4 in 1d"), cooldown=LIMITS.cooldown
    )
    asks_anew: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: JobView) -> Look:
        """Done when the node is among the excluded ones."""
        job = found(request, view)
        if job is None or job.state != "PENDING":
            state = job.state if job else "not known to Slurm"
            return Look(text=state, unneeded=f"it is {state}, not PENDING")
        try:
            node, there = check_name(request.params.get("node", "")), excluded(job)
        except Invalid as error:
            return Look(text="PENDING", not_ready=str(error))
        return Look(
            text=f"PENDING, excludes {visible(job.exclude) or 'no node'}",
            done=node in there,
            unneeded=f"it excludes {node} already" if node in there else "",
            not_ready=_not_ready(request, job, there),
            mark=f"{job.user} {job.exclude}",
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        before, node = request.params.get("exclude", ""), request.params.get("node", "")
        return (excluding(request.target, before, node),)

    def perform(self, request: ActionRequest, hands: JobHands) -> Reply:
        """The command; there are no processes to look at."""
        return changed(hands, self.commands(request))


def excluded(job: Job) -> tuple[str, ...]:
    """The nodes it excludes; Invalid for a list that is none."""
    return expand(job.exclude) if job.exclude else ()


def _not_ready(request: ActionRequest, job: Job, there: tuple[str, ...]) -> str:
    owner = request.params.get("user", "")
    if not owner or owner != job.user:
        return f"it belongs to {visible(job.user)}, and only one's own jobs are changed"
    if request.params.get("exclude", "") != job.exclude:
        return f"its excluded nodes changed: now {visible(job.exclude) or 'none'}"
    return f"it excludes {len(there)} nodes already (at most {MOST})" if len(there) >= MOST else ""
