"""`diag`: runs one dcgmi diag, or one test of nodes, on one node, as a batch job. On a drained node
it runs through ssh."""

from __future__ import annotations

import os
import shlex
from typing import ClassVar

from sentinel.core.action_limits import Limits
from sentinel.core.actions import Answer, Look, Reply
from sentinel.core.long_lines import decode_lines
from sentinel.core.model import ActionRequest
from sentinel.core.node_answers import Answer as AnswerOfNode
from sentinel.core.node_answers import Answered, Partial, TimedOut
from sentinel.core.ports import Hands, View
from sentinel.core.text import visible
from sentinel.core.values import Duration, Rate, Share
from sentinel.plugin import Action
from sentinel.proc.own_package import read_program_file, require_own_package
from sentinel.slurm.node_states import describe_node, unfit_reason

JOB_SCRIPT_PATH = os.path.join(
    os.path.dirname(os.path.dirname(__file__)), "checks", "diag", "job.sh"
)
NODE_TEST_PATH = os.path.join(os.path.dirname(os.path.dirname(__file__)), "nodes", "node_test.py")
GPU_PROBE_COMMAND = (
    "sh",
    "-c",
    "uname -n && all=$(ps -e -o args=) && printf '%s\\n' \"$all\" | sed -n '/^slurmstepd: \\[/p'",
)
"""Prints the name of the node that answers, and a line for each step of a job on it."""

DCGMI_MARGIN_S = 60
"""How many seconds before the end of its job dcgmi is ended."""


class DiagAction(Action, frozen=True):
    """Starts dcgmi diag on a node: exclusively, with all its GPUs, within a time limit.

    Its share of a partition is the check's own; here only a bound that no fault can pass.
    """

    limits: ClassVar[Limits] = Limits(
        per_hour=1000, share=Share(100), per_node=Rate("50 in 7d"), cooldown=Duration(0)
    )
    leaves_no_trace: ClassVar[bool] = True

    def look(self, request: ActionRequest, view: View) -> Look:
        """The node must be up. A drained node is accepted only if it was drained when the test was
        requested."""
        node = view.node(request.target)
        if node is None:
            return Look(text="unknown to Slurm", not_ready="Slurm knows no such node")
        bad = unfit_reason(node)
        drained = "DRAIN" in node.flags
        if not bad and drained != (request.params.get("ssh") == "yes"):
            bad = "drained meanwhile" if drained else "not drained any more"
        if not bad and drained and node.state != "IDLE":
            bad = f"{node.state} with jobs still on it"
        return Look(
            text=describe_node(node), not_ready=f"it is {bad}" if bad else "", mark=str(drained)
        )

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        return (
            _make_ssh_command(request)
            if request.params.get("ssh") == "yes"
            else _make_sbatch_command(request),
        )

    def perform(self, request: ActionRequest, hands: Hands) -> Reply:
        """Run the test by sbatch. On a drained node it is started by ssh and goes on by itself."""
        if request.params.get("ssh") != "yes":
            require_own_package()  # because sbatch reads the file
            return hands.change(_make_sbatch_command(request))
        if objection := _explain_ssh_refusal(request.target, hands):
            return Reply(Answer.REFUSED, objection)
        answer = hands.ask_node(
            request.target,
            _make_ssh_command(request),
            read_program_file("checks/diag/job.sh").encode("ascii"),
        )
        if isinstance(answer, Answered) and not answer.code:
            return Reply(Answer.ACCEPTED, "started through ssh")
        unsure = isinstance(answer, TimedOut | Partial)
        return Reply(
            Answer.UNSURE if unsure else Answer.REFUSED,
            _describe_node_answer(request.target, answer),
        )


def _explain_ssh_refusal(node: str, hands: Hands) -> str:
    """Why the test must not be started through ssh. Empty if it may be. A name may lead to another
    host with jobs, and Slurm calls a node idle whose job is suspended."""
    answer = hands.ask_node(node, GPU_PROBE_COMMAND)
    if not isinstance(answer, Answered) or answer.code:
        return _describe_node_answer(node, answer)
    name, *steps = decode_lines(answer.out).splitlines() or [""]
    if name.partition(".")[0].lower() != node.partition(".")[0].lower():
        return visible(f"{node}: a host that calls itself '{name}' answered")
    return visible(f"{node}: a job is still there: {steps[0]}") if steps else ""


def _describe_node_answer(node: str, answer: AnswerOfNode) -> str:
    what = f"exit code {answer.code}" if isinstance(answer, Answered) else answer.why
    return visible(f"{node}: {what}")


def _make_sbatch_command(request: ActionRequest) -> tuple[str, ...]:
    params = request.params
    seconds, within = int(params["seconds"]), int(params["within"])
    named = ("partition", "account", "qos", "reservation")
    gres = f"--gres=gpu:{params['gpus']}" if params.get("gpus", "0") != "0" else ""
    options = [f"--{name}={params[name]}" for name in named if params.get(name)]
    return (
        "sbatch",
        "--parsable",
        f"--job-name={params['name']}",
        f"--nodelist={request.target}",
        "--nodes=1",
        "--ntasks=1",
        "--exclusive",
        *filter(None, [gres]),
        f"--time={-(-seconds // 60)}",
        f"--deadline=now+{-(-(within + seconds) // 60)}minutes",
        "--no-requeue",
        "--output=/dev/null",
        *options,
        *_make_job_command(request),
    )


def _make_job_command(request: ActionRequest) -> tuple[str, ...]:
    """The script and its arguments, for dcgmi diag or for a test of nodes (see sentinel/nodes)."""
    params = request.params
    if not params.get("test"):
        return JOB_SCRIPT_PATH, *_make_script_arguments(request)
    node, gpus = request.target, params.get("gpus", "0")
    words = (params["out"], params["test"], node, node, "0", gpus, ".")
    return NODE_TEST_PATH, *words, *shlex.split(params.get("command", ""))


def _make_ssh_command(request: ActionRequest) -> tuple[str, ...]:
    """The command runs in a separate session, so that neither the end of ssh nor its time limit
    ends it."""
    return ("setsid", "--fork", "sh", "-s", "--", *_make_script_arguments(request))


def _make_script_arguments(request: ActionRequest) -> tuple[str, ...]:
    limit = max(DCGMI_MARGIN_S, int(request.params["seconds"]) - DCGMI_MARGIN_S)
    return request.params["level"], request.params["out"], str(limit)
