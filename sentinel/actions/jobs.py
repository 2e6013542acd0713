"""The common part of actions on jobs: they check the job and its log again, and collect evidence
before they change anything."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel.actions.job_requests import LOG_TAIL_BYTES, describe_log_change, parse_sighting
from sentinel.core.action_limits import Limits
from sentinel.core.actions import Answer, Look, Reply
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest
from sentinel.core.ports import JobHands, JobView
from sentinel.core.text import visible
from sentinel.core.values import Duration, Rate, Share
from sentinel.slurm.job_states import Phase, state_phase, uses_nodes

JOB_ACTION_LIMITS = Limits(
    per_hour=10, share=Share(100), per_node=Rate("2 in 1d"), cooldown=Duration(0)
)
"""At most twice per job and day. A job that hangs a third time needs a person. There is no
cooldown, because stacks come before each other action."""


def find_job(request: ActionRequest, view: JobView) -> Job | None:
    """The job of the request, in any state. None if Slurm has forgotten it."""
    rows = view.jobs(request.target)
    return next((j for j in rows if request.target in (j.id, j.job_id)), None)


def look_at_running_job(request: ActionRequest, view: JobView) -> Look:
    """The look at a job that is to be changed while it runs. If this run of the job is over, the
    action is done. If it is over or suspended, the action is unneeded."""
    job = find_job(request, view)
    over = _explain_run_over(request, job)
    return Look(
        text=_describe_job(job),
        done=bool(over) and not (job and state_phase(job.state) is Phase.PAUSED),
        unneeded=over,
        not_ready=""
        if over
        else _explain_foreign_job(request, job) or _explain_log_change(request, view),
        mark=f"{job.state} {job.started}" if job else "",
    )


def _describe_job(job: Job | None) -> str:
    """State, owner and nodes in one line."""
    if job is None:
        return "gone from Slurm"
    where = f" on {job.nodes}" if job.nodes else ""
    return visible(f"{job.state}{where}, of {job.user}")


def change_after_evidence(
    request: ActionRequest, hands: JobHands, commands: Sequence[Sequence[str]]
) -> Reply:
    """Collect the evidence, look once more, and only then run the commands.

    If the evidence cannot be collected, the commands still run. If the job or its log has moved
    meanwhile, they do not.
    """
    evidence = hands.evidence(request.target)
    try:
        job = find_job(request, hands)
        objection = (
            _explain_run_over(request, job)
            or _explain_foreign_job(request, job)
            or _explain_log_change(request, hands)
        )
    except CannotTell as error:
        return Reply(Answer.REFUSED, f"it could not be read again: {error}; {evidence.text}")
    if job is None or objection:
        return Reply(Answer.REFUSED, f"not done, meanwhile {objection}; {evidence.text}")
    # The number of an array's last element is also the number of the array, so scancel would end
    # all elements.
    name = job.id if "_" in job.id else request.target
    exact = [[name if word == request.target else word for word in c] for c in commands]
    return run_commands(hands, exact, evidence.text)


def run_commands(hands: JobHands, commands: Sequence[Sequence[str]], text: str = "") -> Reply:
    """Run the commands until one is refused. The result is `text`, followed by their output."""
    reply = Reply(Answer.ACCEPTED)
    for command in commands:
        reply = hands.change(command)
        if reply.answer is not Answer.ACCEPTED:
            break
    return Reply(reply.answer, "; ".join(filter(None, [reply.text, text])))


def _explain_run_over(request: ActionRequest, job: Job | None) -> str:
    """The reason why this run of the job is over. Empty if it is not."""
    if job is None:
        return "Slurm knows no such job"
    if not uses_nodes(job):
        return f"it is {job.state}, not RUNNING"
    meant = request.params.get("started")
    return "it was started anew since" if meant and meant != str(job.started) else ""


def _explain_foreign_job(request: ActionRequest, job: Job | None) -> str:
    owner = request.params.get("user")
    return f"it belongs to {visible(job.user)}" if job and owner not in (None, job.user) else ""


def _explain_log_change(request: ActionRequest, view: JobView) -> str:
    seen = parse_sighting(request.params)
    if seen is None:
        return ""
    user = request.params.get("user", "")
    size = view.size(seen.path, user)
    tail = view.tail(seen.path, LOG_TAIL_BYTES, user) if seen.pattern and size is not None else ""
    return visible(describe_log_change(seen, size, tail))
