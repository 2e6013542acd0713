"""What actions on jobs share: the job as it is, the log as it was, and evidence before it goes."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.core.actions import Answer, Look, Reply
from sentinel.core.errors import CannotTell
from sentinel.core.jobdeeds import LOOKED_AT, moved, sighting
from sentinel.core.limits import Limits
from sentinel.core.model import ActionRequest
from sentinel.core.ports import JobHands, JobView
from sentinel.core.slurm import Job
from sentinel.core.text import visible
from sentinel.core.values import Duration, Rate, Share

LIMITS = Limits(per_hour=10, share=Share(100), per_node=Rate("2 in 1d"), cooldown=Duration(0))
"""At most twice per job and day: who hangs a third time needs a person. No cooldown, since
stacks come before whatever follows them."""

LIVE = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "STOPPED", "SIGNALING", "STAGE_OUT"})


def running(request: ActionRequest, view: JobView) -> tuple[Job | None, str]:
    """The run of the job that was meant, and why nothing must be done to it (empty: nothing).

    None when there is no such job any more.
    """
    rows = view.jobs(request.target)
    job = next((j for j in rows if request.target in (j.id, j.job_id)), None)
    if job is None:
        return None, "Slurm knows no such job"
    if job.state != "RUNNING":
        return job, f"it is {job.state}, not RUNNING"
    return job, _another_run(request, job) or _moved(request, view)


def looked(request: ActionRequest, view: JobView, *, done: bool = False) -> Look:
    """At a job that shall be changed while it runs; one that no longer runs needs nothing."""
    job, objection = running(request, view)
    over = job is None or job.state != "RUNNING"
    return Look(
        text=described(job),
        done=done or over,
        unneeded=objection if over else "",
        not_ready="" if over else objection,
        mark=f"{job.state} {job.started}" if job else "",
    )


def described(job: Job | None) -> str:
    """State, owner and nodes in one line."""
    if job is None:
        return "gone from Slurm"
    where = f" on {job.nodes}" if job.nodes else ""
    return visible(f"{job.state}{where}, of {job.user}")


def after_evidence(
    request: ActionRequest, hands: JobHands, commands: Sequence[Sequence[str]]
) -> Reply:
    """Keep the evidence, look once more, and only then change anything.

    Evidence that cannot be had holds nothing up; a job or log that moved meanwhile does.
    """
    evidence = hands.evidence(request.target)
    try:
        job, objection = running(request, hands)
    except CannotTell as error:
        return Reply(Answer.REFUSED, f"it could not be read again: {error}; {evidence.text}")
    if job is None or objection:
        return Reply(Answer.REFUSED, f"not done, meanwhile {objection}; {evidence.text}")
    # The number of an array's last element is the array's too: scancel would end them all.
    exact = [[job.id if word == request.target else word for word in c] for c in commands]
    return changed(hands, exact, evidence.text)


def changed(hands: JobHands, commands: Sequence[Sequence[str]], text: str = "") -> Reply:
    """One command after the other until one is not accepted; `text` goes before what they say."""
    reply = Reply(Answer.ACCEPTED)
    for command in commands:
        reply = hands.change(command)
        if reply.answer is not Answer.ACCEPTED:
            break
    return Reply(reply.answer, "; ".join(filter(None, [reply.text, text])))


def _another_run(request: ActionRequest, job: Job) -> str:
    meant, owner = request.params.get("started"), request.params.get("user")
    if meant and meant != str(job.started):
        return "it was started anew since"
    return f"it belongs to {visible(job.user)}" if owner and owner != job.user else ""


def _moved(request: ActionRequest, view: JobView) -> str:
    seen = sighting(request.params)
    if seen is None:
        return ""
    size = view.size(seen.path)
    tail = view.tail(seen.path, LOOKED_AT) if seen.pattern and size is not None else ""
    return visible(moved(seen, size, tail))
