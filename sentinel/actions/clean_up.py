"""`clean_up`: ends what a job that is over left running on a drained node."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from sentinel.core.action_limits import Limits
from sentinel.core.actions import Answer, Look, Reply
from sentinel.core.cluster import Node, ids, runs
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest
from sentinel.core.node_answers import Answered, Partial, TimedOut
from sentinel.core.ports import Hands, View
from sentinel.core.text import shortened, visible
from sentinel.nodes.script import cgroups
from sentinel.plugin import Action
from sentinel.slurm.node_states import UP, changed, described, seen, state_of, unfit_flags

GRACE = "5"
"""Seconds between SIGTERM and SIGKILL: Slurm sent both long ago, and `remote: {timeout}` has to
hold all of it."""

SIGNALS_SENT = b"signals were sent before"
"""What clean_up.sh prints where it could not see what became of the signals that it had sent."""

_NUMBER = re.compile("[0-9]+")
_JOB = re.compile("[0-9]+|s[0-9A-Z]{13}")


class CleanUp(Action, frozen=True):
    """Ends left-over processes of jobs that are over: SIGTERM, after 5 s SIGKILL.

    Only those that the kernel (cgroup) or a slurmstepd above them counts to one of the jobs in the
    param `jobs` (ids and SLUIDs); by their SLURM_JOB_ID alone only those of the users in `alone`
    ("uid:name,…"), who have no job on the node. Never those of uids below `first_uid`, of nobody,
    or in a login session. Slurm is asked anew that none of the jobs is there.
    """

    limits: ClassVar[Limits] = Limits()

    def look(self, request: ActionRequest, view: View) -> Look:
        """Done when nothing is left that may be ended; only hands that reach the node know."""
        node = view.node(request.target)
        if node is None:
            return Look(text="unknown to Slurm", not_ready="Slurm knows no such node")
        left = _left(request, view)
        told = described(node) if left is None else f"{described(node)}; {_listed(left)}"
        return Look(
            text=told,
            done=left == [],
            not_ready=_not_ready(request, node) or _living(request, view),
            mark=" ".join([str("DRAIN" in node.flags), *seen(node).values()]),
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        return ((*_argv("end", request), GRACE),)

    def perform(self, request: ActionRequest, hands: Hands) -> Reply:
        """Run the script on the node."""
        [argv] = self.commands(request)
        answer = hands.ask_node(request.target, argv, stdin=script())
        if isinstance(answer, Answered):
            if answer.code not in (0, 1):
                some = SIGNALS_SENT in answer.out
                return Reply(Answer.UNSURE if some else Answer.REFUSED, visible(_why(answer)))
            return Reply(Answer.ACCEPTED, _listed(_lines(answer.out)))
        unsure = isinstance(answer, TimedOut | Partial)
        return Reply(Answer.UNSURE if unsure else Answer.REFUSED, visible(answer.why))


@cache
def script() -> bytes:
    """What runs on the node; kept in files so that it can be read and checked as shell."""
    with open(os.path.join(os.path.dirname(__file__), "clean_up.sh"), "rb") as file:
        return cgroups().encode("ascii") + file.read()


def _argv(verb: str, request: ActionRequest) -> tuple[str, ...]:
    jobs, first = request.params.get("jobs", ""), request.params.get("first_uid", "1000")
    return ("sh", "-s", verb, jobs, first, ",".join(uid for uid, _ in _alone(request)))


def _alone(request: ActionRequest) -> list[tuple[str, str]]:
    """The users, by uid and name, for whom an inherited id is enough."""
    pairs = (one.partition(":") for one in request.params.get("alone", "").split(",") if one)
    return [(uid, name) for uid, _, name in pairs]


def _living(request: ActionRequest, view: View) -> str:
    """Why a job that Slurm has there just now forbids it: what the check knew may be older than
    the job. Empty where the view does not reach the node."""
    ask = getattr(view, "jobs_on", None)
    if ask is None or not _sane(request):
        return ""
    wanted = set(request.params["jobs"].split(","))
    names = {name for _, name in _alone(request)}
    for job in ask(request.target):
        if runs(job) and ids(job) & wanted:
            return f"job {visible(job.id)} runs there"
        if runs(job) and job.user in names:
            return f"{visible(job.user)} has job {visible(job.id)} there"
    return ""


def _left(request: ActionRequest, view: View) -> list[str] | None:
    """The processes that may be ended; None where the view does not reach the node.

    Raises CannotTell when the node does not answer: silence is not clean.
    """
    ask = getattr(view, "ask_node", None)
    if ask is None or not _sane(request):
        return None
    answer = ask(request.target, _argv("list", request), stdin=script())
    if not isinstance(answer, Answered) or answer.code:
        raise CannotTell(f"{request.target}: {visible(_why(answer))}")
    return [line for line in _lines(answer.out) if line.startswith("may ")]


def _not_ready(request: ActionRequest, node: Node) -> str:
    if not _sane(request):
        return "no job is named whose processes are to be ended"
    if node.state not in UP or set(unfit_flags(node)) - {"COMPLETING"}:
        return f"it is {state_of(node)}"
    return changed(request.params, node) if "DRAIN" in node.flags else "it is not drained"


def _sane(request: ActionRequest) -> bool:
    jobs = request.params.get("jobs", "").split(",")
    numbers = [request.params.get("first_uid", "1000"), *(uid for uid, _ in _alone(request))]
    return all(_JOB.fullmatch(job) for job in jobs) and all(map(_NUMBER.fullmatch, numbers))


def _why(answer: object) -> str:
    if isinstance(answer, Answered):
        said = answer.err.decode("utf-8", "backslashreplace").strip()
        return f"exit code {answer.code} {said}".strip()
    return f"{type(answer).__name__}: {getattr(answer, 'why', '')}"


def _lines(out: bytes) -> list[str]:
    return [visible(line) for line in out.decode("utf-8", "backslashreplace").splitlines()]


def _listed(lines: Sequence[str]) -> str:
    return shortened(", ".join(lines) or "nothing is left there", 1000)
