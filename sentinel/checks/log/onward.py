"""How a training that hangs goes on without the node that holds it up: commands for people. Pure.

Only where one node is the culprit. Nothing here starts a second training beside the first: what is
submitted waits for the end of the job that hangs, and where a next one is queued none is submitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from sentinel.actions.job_requests import excluding, target
from sentinel.checks.users import me
from sentinel.core.text import shortened, visible
from sentinel.slurm.model import Job
from sentinel.slurm.submission import Submission, shell

MOST = 3
"""Waiting jobs that are shown: an alert has room for few commands."""
REASON = 160
"""Characters of a drain's reason."""

_ADMIN = "  # for an administrator; if you are none, send them this line"


def onward(
    job: Job, node: str, how: Submission | None, waiting: Sequence[Job], fault: str = ""
) -> tuple[str, ...]:
    """Commands in their order. `waiting`: jobs that go on after it; `fault`: what is wrong with the
    node itself, without which nobody is asked to drain it."""
    owner = "" if job.user == me() else f"  # as {visible(job.user)}"
    if waiting:
        lines = [
            " ".join(map(quote, excluding(target(j), j.exclude, node))) for j in waiting[:MOST]
        ]
    else:
        again = shell(how, node, job.id) if how else ""
        lines = [again] if again.isprintable() and again else []
    if lines:
        lines = [f"{line}{owner}" for line in (*lines, f"scancel {target(job)}")]
    if fault:
        why = quote(shortened(visible(f"job {job.id} hung: {fault}"), REASON))
        lines.append(f"scontrol update NodeName={node} State=DRAIN Reason={why}{_ADMIN}")
    return tuple(lines)
