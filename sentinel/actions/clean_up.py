"""`clean_up`: ends processes that an ended job has left on a drained node."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from sentinel.core.action_limits import Limits
from sentinel.core.actions import Answer, Look, Reply
from sentinel.core.cluster import COMPLETING, Node, may_have_processes, process_job_ids
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.core.model import ActionRequest
from sentinel.core.node_answers import Answered, Partial, TimedOut
from sentinel.core.ports import Hands, View
from sentinel.core.text import shortened, visible
from sentinel.nodes.script import cgroups
from sentinel.plugin import Action
from sentinel.proc.own_package import read_program_file
from sentinel.slurm.node_notes import describe_changes
from sentinel.slurm.node_states import (
    UP,
    describe_node,
    format_state,
    reason_params,
    unfit_flags,
)

KILL_GRACE_S = "5"
"""Seconds between SIGTERM and SIGKILL. They are few, because Slurm sent both long ago, and all of
it has to fit into `remote: {timeout}`."""

SIGNALS_SENT_TEXT = b"signals were sent before"
"""The output of clean_up.sh if it could not see the effect of the signals that it had sent."""

_NUMBER_PATTERN = re.compile("[0-9]+")
_JOB_ID_PATTERN = re.compile("[0-9]+|s[0-9A-Z]{13}")


class CleanUpAction(Action, frozen=True):
    """Ends left-over processes of jobs that are over: SIGTERM, after 5 s SIGKILL.

    Only those that the kernel (cgroup) or a slurmstepd above them counts to one of the jobs in the
    param `jobs` (ids and SLUIDs), of the users in `uids`. Never those of uids below `first_uid`, of
    nobody, or in a login session. Slurm is asked anew that none of the jobs is there.
    """

    limits: ClassVar[Limits] = Limits()

    def look(self, request: ActionRequest, view: View) -> Look:
        """Done when no process is left that may be ended. Only a view that reaches the node knows
        that."""
        node = view.node(request.target)
        if node is None:
            return Look(text="unknown to Slurm", not_ready="Slurm knows no such node")
        left = _list_endable_processes(request, view)
        told = (
            describe_node(node)
            if left is None
            else f"{describe_node(node)}; {_format_process_list(left)}"
        )
        return Look(
            text=told,
            done=left == [],
            not_ready=_explain_clean_up_refusal(request, node)
            or _explain_running_job(request, view),
            mark=" ".join([str("DRAIN" in node.flags), *reason_params(node).values()]),
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        return ((*_make_script_argv("end", request), KILL_GRACE_S),)

    def perform(self, request: ActionRequest, hands: Hands) -> Reply:
        """Run the script on the node."""
        [argv] = self.commands(request)
        answer = hands.ask_node(request.target, argv, stdin=read_clean_up_script())
        if isinstance(answer, Answered):
            if answer.code not in (0, 1):
                some = SIGNALS_SENT_TEXT in answer.out
                return Reply(
                    Answer.UNSURE if some else Answer.REFUSED, visible(_explain_node_answer(answer))
                )
            return Reply(Answer.ACCEPTED, _format_process_list(_split_output_lines(answer.out)))
        unsure = isinstance(answer, TimedOut | Partial)
        return Reply(Answer.UNSURE if unsure else Answer.REFUSED, visible(answer.why))


def read_clean_up_script() -> bytes:
    """The script for the node. It is kept in files so that it can be read and checked as shell."""
    return (cgroups() + read_program_file("actions/clean_up.sh")).encode("ascii")


def _make_script_argv(verb: str, request: ActionRequest) -> tuple[str, ...]:
    jobs, first = request.params.get("jobs", ""), request.params.get("first_uid", "1000")
    return ("sh", "-s", verb, jobs, first, request.params.get("uids", ""))


def _explain_running_job(request: ActionRequest, view: View) -> str:
    """Why a job that is on the node now forbids the clean-up, which is well formed. The check's
    knowledge may be older than that job. Empty if no job forbids it, or if the view does not reach
    the node."""
    ask = getattr(view, "jobs_on", None)
    if ask is None:
        return ""
    wanted = set(request.params["jobs"].split(","))
    for job in ask(request.target):
        if may_have_processes(job) and process_job_ids(job) & wanted:
            does = "is being ended" if job.state == COMPLETING else "runs"
            return f"job {visible(job.id)} {does} there"
    return ""


def _list_endable_processes(request: ActionRequest, view: View) -> list[str] | None:
    """The processes that may be ended. None if the view does not reach the node.

    Raises CannotTell if the node does not answer, because silence does not mean that it is clean.
    """
    ask = getattr(view, "ask_node", None)
    if ask is None or not _is_well_formed(request):
        return None
    answer = ask(request.target, _make_script_argv("list", request), stdin=read_clean_up_script())
    if not isinstance(answer, Answered) or answer.code:
        raise CannotTell(f"{request.target}: {visible(_explain_node_answer(answer))}")
    return [line for line in _split_output_lines(answer.out) if line.startswith("may ")]


def _explain_clean_up_refusal(request: ActionRequest, node: Node) -> str:
    if not _is_well_formed(request):
        return "no job is named whose processes are to be ended"
    if node.state not in UP or set(unfit_flags(node)) - {"COMPLETING"}:
        return f"it is {format_state(node)}"
    return describe_changes(request.params, node) if "DRAIN" in node.flags else "it is not drained"


def _is_well_formed(request: ActionRequest) -> bool:
    jobs = request.params.get("jobs", "").split(",")
    uids = request.params.get("uids", "")
    numbers = [request.params.get("first_uid", "1000"), *(uids.split(",") if uids else ())]
    return all(_JOB_ID_PATTERN.fullmatch(job) for job in jobs) and all(
        map(_NUMBER_PATTERN.fullmatch, numbers)
    )


def _explain_node_answer(answer: object) -> str:
    if isinstance(answer, Answered):
        said = decode_lines(answer.err).strip()
        return f"exit code {answer.code} {said}".strip()
    return f"{type(answer).__name__}: {getattr(answer, 'why', '')}"


def _split_output_lines(out: bytes) -> list[str]:
    return [visible(line) for line in decode_lines(out).splitlines()]


def _format_process_list(lines: Sequence[str]) -> str:
    return shortened(", ".join(lines) or "nothing is left there", 1000)
