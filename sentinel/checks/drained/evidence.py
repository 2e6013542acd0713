"""Gathers the evidence about drained nodes: one round trip to the nodes, the ledger, and logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sentinel import proc
from sentinel.checks import hanging
from sentinel.checks.drained.node_evidence import (
    NodeEvidence,
    ReasonHistory,
    filter_log_lines,
    filter_node_lines,
    find_lines_at_error,
    format_last_lines,
    parse_reason_histories,
)
from sentinel.checks.drained.proof import can_ask_node
from sentinel.core import hostlist
from sentinel.core.clock import SECOND
from sentinel.core.cluster import may_have_processes, process_job_ids
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.long_lines import decode_lines
from sentinel.core.node_answers import Answered
from sentinel.core.ports import Context
from sentinel.nodes.probe import NodeProbe, ProbeRequest
from sentinel.slurm.job_states import is_paused
from sentinel.slurm.slurmctld_log import explain_disorder

if TYPE_CHECKING:
    from sentinel.core.cluster import Job, Node
    from sentinel.core.node_answers import Answer, Unreached


PROBE_SHARE, LOGS_SHARE, PROOFS_SHARE = 0.5, 0.1, 0.3
"""Shares of the run's time limit."""

PROBE_REQUEST = ProbeRequest(
    parts=("processes", "blocked", "steps", "gpu_processes", "gpus", "kernel", "mounts", "waits")
)
LOG_TAIL_BYTES = 4 * 2**20
"""Bytes of the end of slurmctld's log that are read; of slurmd's a tenth."""


def gather_evidence(
    nodes: Sequence[Node],
    ctx: Context,
    *,
    queue: bool,
    completing: Mapping[str, float] = MappingProxyType({}),
    slurmctld_log: str | None = None,
    slurmd_log: str | None = None,
) -> list[NodeEvidence]:
    """All that can be seen of these nodes. Raises CannotTell only if Slurm does not tell its jobs.

    `queue`: the evidence includes the jobs that Slurm has on each node. `completing`: the seconds
    for which a node has not ended a job, by node.
    """
    if not nodes:
        return []
    running = _find_running_jobs(nodes, ctx) if queue else None
    expediting, paused = _find_waiting_jobs(ctx)
    log, trouble = _read_controller_log(slurmctld_log, ctx.limit * LOGS_SHARE)
    past = parse_reason_histories(log, [node.name for node in nodes], trouble)
    lines = filter_log_lines(log)
    sights = [
        replace(
            _make_evidence(node, ctx, running, past[node.name], lines),
            expediting=tuple(sorted(expediting.get(node.name, ()))),
            paused=tuple(sorted(paused.get(node.name, ()))),
            completing=completing.get(node.name),
        )
        for node in nodes
    ]
    names = [s.node.name for s in sights if can_ask_node(s)]
    answers = (
        ctx.remote.probe(names, PROBE_REQUEST, limit=ctx.limit * PROBE_SHARE) if ctx.remote else {}
    )
    told = _read_daemon_logs(names, slurmd_log, ctx)
    sights = [
        _add_node_answer(s, answers.get(s.node.name), told.get(s.node.name, "")) for s in sights
    ]
    sluids = hanging.find_sluids(ctx, [s.node_probe for s in sights])
    return [replace(s, sluids=sluids) for s in sights]


def run_proof_commands(
    nodes: Sequence[str], proofs: Mapping[str, Sequence[str]], ctx: Context
) -> dict[str, dict[str, Answer]]:
    """Run these commands on these nodes. Returns the answers by node and then by name of the
    proof."""
    ran: dict[str, dict[str, Answer]] = {node: {} for node in nodes}
    if ctx.remote is None or not nodes:
        return ran
    for name, argv in proofs.items():
        limit = ctx.limit * PROOFS_SHARE / len(proofs)
        for node, answer in ctx.remote.run(nodes, argv, limit=limit).items():
            ran[node][name] = answer
    return ran


def _make_evidence(
    node: Node,
    ctx: Context,
    running: Mapping[str, frozenset[str]] | None,
    history: ReasonHistory,
    lines: Sequence[str],
) -> NodeEvidence:
    book = ctx.logbook
    text = format_last_lines(filter_node_lines(lines, node.name))
    return NodeEvidence(
        node=node,
        now=ctx.now.wall // SECOND,
        readings=None if book is None else book.readings(node.name),
        records=() if book is None else book.records(node.name),
        here=None if running is None else running[node.name],
        history=history,
        logs={"slurmctld": text} if text else {},
    )


def _add_node_answer(
    sight: NodeEvidence, answer: NodeProbe | Unreached | None, log: str
) -> NodeEvidence:
    text = format_last_lines(find_lines_at_error(log))
    more = {"slurmd": text} if text else {}
    return replace(sight, answer=answer, logs={**sight.logs, **more})


def _find_running_jobs(nodes: Sequence[Node], ctx: Context) -> dict[str, frozenset[str]]:
    """The ids of the jobs that Slurm has on each node. A job that it should have ended by now is
    over. Raises CannotTell."""
    jobs: dict[str, set[str]] = {node.name: set() for node in nodes}
    for job in filter(may_have_processes, ctx.slurm.jobs()):
        for node in jobs.keys() & set(_expand_job_nodes(job.nodes)):
            jobs[node] |= process_job_ids(job)
    return {name: frozenset(found) for name, found in jobs.items()}


def _find_waiting_jobs(
    ctx: Context,
) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """The jobs in EXPEDITING on each node, and those that are suspended. Only jobs that are watched anyway
    are known. Raises CannotTell."""
    jobs = ctx.slurm.jobs()
    expediting = _group_by_node(job for job in jobs if job.state == "EXPEDITING")
    return expediting, _group_by_node(filter(is_paused, jobs))


def _group_by_node(jobs: Iterable[Job]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for job in jobs:
        for node in _expand_job_nodes(job.nodes) if job.nodes else ():
            found.setdefault(node, set()).add(job.job_id)
    return {node: frozenset(ids) for node, ids in found.items()}


def _expand_job_nodes(nodes: str) -> Sequence[str]:
    try:
        return hostlist.expand_printed(nodes)
    except Invalid as error:
        raise CannotTell(f"the nodes of a job are not understood: {error}") from error


def _read_controller_log(path: str | None, limit: float) -> tuple[str, str]:
    """The end of the log on this host, and why it could not be read."""
    if path is None:
        return "", ""
    try:
        done = proc.run(["tail", "-c", str(LOG_TAIL_BYTES), "--", path], limit=limit)
    except CannotTell as error:
        return "", str(error)
    out, err = map(decode_lines, (done.out, done.err.strip()))
    if done.code:
        return "", err or f"tail: exit code {done.code}"
    why = explain_disorder(out)
    return ("", why) if why else (out, "")


def _read_daemon_logs(names: Sequence[str], path: str | None, ctx: Context) -> dict[str, str]:
    if path is None or ctx.remote is None or not names:
        return {}
    argv = ["tail", "-c", str(LOG_TAIL_BYTES // 10), "--", path]
    answers = ctx.remote.run(names, argv, limit=ctx.limit * LOGS_SHARE)
    return {
        node: decode_lines(answer.out)
        for node, answer in answers.items()
        if isinstance(answer, Answered)
    }
