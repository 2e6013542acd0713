"""Commands for people to end a hanging training and to continue it, without the node that holds it up
if one is at fault. Pure.

They never start a second training beside the first: a submitted job waits for the end of the hanging
one. If a next job is queued already, none is submitted.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.actions.job_requests import make_exclude_command, make_job_target
from sentinel.core.cluster import Job, Submission
from sentinel.core.guidance import ADMINISTRATOR, ActingCommand
from sentinel.core.text import shortened, visible
from sentinel.slurm.submission import resubmit_command

MAX_SHOWN_JOBS = 3
"""How many waiting jobs are shown. An alert has room for few commands."""
MAX_REASON_CHARS = 160
"""The longest reason for a drain, in characters."""

_ADMIN_NOTE = "for an administrator; if you are none, send them this line"


def list_resume_commands(
    job: Job, node: str, how: Submission | None, waiting: Sequence[Job], fault: str = ""
) -> tuple[ActingCommand, ...]:
    """The commands in their order. `node` is the culprit, empty if none is known. `waiting` are jobs
    that follow the hanging one. `fault` is the fault of the node itself. Without it, nobody is asked
    to drain the node. The job is not ended if nobody knows how it is submitted again."""
    if waiting:
        lines = [
            ActingCommand(
                owner=j.user, argv=tuple(make_exclude_command(make_job_target(j), j.exclude, node))
            )
            for j in waiting[: MAX_SHOWN_JOBS if node else 0]
        ]
    else:
        again = resubmit_command(how, node, f"afterany:{job.id}") if how else None
        lines = [again] if again else []
    if lines or waiting:
        lines.append(ActingCommand(owner=job.user, argv=("scancel", make_job_target(job))))
    if fault:
        why = shortened(visible(f"job {job.id} hung: {fault}"), MAX_REASON_CHARS)
        drain = ("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={why}")
        lines.append(ActingCommand(owner=ADMINISTRATOR, argv=drain, note=_ADMIN_NOTE))
    return tuple(lines)
