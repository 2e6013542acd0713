"""What sentinel says of a public form of Slurm's commands, in words that can be written down before."""

from __future__ import annotations

from typing import Any

from sentinel.checks.drained.reasons import find_note, find_reason_author, has_prefix
from sentinel.core.cluster import Node
from sentinel.core.cron import parse_cron
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.slurm.drain_reasons import KILL
from sentinel.slurm.ends import read_sacct, sacct_columns
from sentinel.slurm.job_states import state_meaning
from sentinel.slurm.node_states import can_work
from sentinel.slurm.nodes import read_nodes, read_state
from sentinel.slurm.words import parse_time_limit
from sentinel.testing import FixedSlurm
from tests.checks.job.making import Watch, check, job

GITHUB = "https://github.com/"
MARK = "x1y2z3"


def waits(reason: str, state: str = "PENDING", **more: Any) -> str:
    """Whether a job with this reason needs a person: `waits`, `person` or `unknown`."""
    one = job("11", state, reason, **more)
    finding = Watch(check()).see(FixedSlurm(jobs=(one,), nodes=(), partitions={"prod": 4}))
    return {Status.OK: "waits", Status.CRITICAL: "person", Status.UNKNOWN: "unknown"}[
        finding.status
    ]


def seconds(limit: str) -> int | None:
    """A time limit of Slurm."""
    return parse_time_limit(limit.encode())


def booked(state: str, code: str) -> str:
    """What a row of sacct says: the state, the exit code, the signal, who cancelled it, whether it is a death."""
    columns = sacct_columns(())
    told = {"JobIDRaw": "3826", "JobID": "3826", "State": state, "ExitCode": code, "NodeList": "n1"}
    row = "".join(told.get(name, "Unknown") + MARK for name in (*columns, "JobIDRaw")) + "\n"
    (run,) = read_sacct(row.encode(), MARK, columns)
    death = "death" if state_meaning(run.state).is_death else "no death"
    return f"{run.state} {run.exit_code} {run.signal} {run.cancelled_by or '-'} {death}"


def works(word: str) -> bool | None:
    """Whether Slurm gives a node in this state (scontrol's word) jobs."""
    state, flags = read_state(word)
    return can_work(Node(name="n1", state=state, flags=flags))


def returns(reason: str, user: str, *prefixes: str) -> bool:
    """Whether a node with this reason may be given back, if it is proven clean."""
    meant = prefixes or (KILL,)
    node = Node(
        name="n1", state="IDLE", flags=frozenset({"DRAIN"}), reason=reason, reason_user=user
    )
    return (
        has_prefix(reason, meant) and not find_note(reason, meant) and not find_reason_author(node)
    )


def shown(line: str) -> tuple[bool | None, str, str]:
    """Of a line of `scontrol -o show node`: whether it can work, its reason and who gave it."""
    (node,) = read_nodes(line.encode())
    return can_work(node), node.reason, node.reason_user


def field(schedule: str, name: str) -> Any:
    """A field of a schedule, or `refused`."""
    try:
        return getattr(parse_cron(schedule), name)
    except Invalid:
        return "refused"
