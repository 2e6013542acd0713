"""Gathers what is to be known about drained nodes: one round trip, the ledger, and logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sentinel import proc
from sentinel.checks import hanging
from sentinel.checks.drained import logs
from sentinel.checks.drained.proof import askable
from sentinel.checks.drained.sight import Here, Sight
from sentinel.core import hostlist
from sentinel.core.clock import SECOND
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.ports import Context
from sentinel.nodes.probe import NodeProbe, Wants
from sentinel.slurm.model import ids, runs

if TYPE_CHECKING:
    from sentinel.nodes.model import Answer, Unreached
    from sentinel.slurm.model import Job, Node

WANTS = Wants(
    parts=("processes", "blocked", "steps", "gpu_processes", "gpus", "kernel", "mounts", "waits")
)
TAIL = 4 * 2**20
"""Bytes of the end of slurmctld's log that are read; of slurmd's a tenth."""

PROBE, LOGS, PROOFS = 0.5, 0.1, 0.3
"""Shares of a run's limit."""


def gather(
    nodes: Sequence[Node],
    ctx: Context,
    *,
    queue: bool,
    completing: Mapping[str, float] = MappingProxyType({}),
    slurmctld_log: str | None = None,
    slurmd_log: str | None = None,
) -> list[Sight]:
    """All that can be seen of these nodes; raises CannotTell only for what Slurm must tell.

    `queue`: with the jobs that Slurm has on each of them. `completing`: seconds, of those who do not
    end a job.
    """
    if not nodes:
        return []
    running = _running(nodes, ctx) if queue else None
    expediting = _expediting(ctx)
    log, trouble = _controller_log(slurmctld_log, ctx.limit * LOGS)
    histories = logs.histories(log, [node.name for node in nodes], trouble)
    lines = logs.telling(log)
    sights = [
        replace(
            _sight(node, ctx, running, histories[node.name], lines),
            expediting=tuple(sorted(expediting.get(node.name, ()))),
            completing=completing.get(node.name),
        )
        for node in nodes
    ]
    names = [s.node.name for s in sights if askable(s)]
    answers = ctx.remote.probe(names, WANTS, limit=ctx.limit * PROBE) if ctx.remote else {}
    told = _daemon_logs(names, slurmd_log, ctx)
    sights = [_asked(s, answers.get(s.node.name), told.get(s.node.name, "")) for s in sights]
    sluids = hanging.sluids(ctx, [s.probe for s in sights])
    return [replace(s, sluids=sluids) for s in sights]


def prove(
    nodes: Sequence[str], proofs: Mapping[str, Sequence[str]], ctx: Context
) -> dict[str, dict[str, Answer]]:
    """Run these commands on these nodes; by node and name of the proof."""
    ran: dict[str, dict[str, Answer]] = {node: {} for node in nodes}
    if ctx.remote is None or not nodes:
        return ran
    for name, argv in proofs.items():
        limit = ctx.limit * PROOFS / len(proofs)
        for node, answer in ctx.remote.run(nodes, argv, limit=limit).items():
            ran[node][name] = answer
    return ran


def _sight(
    node: Node,
    ctx: Context,
    running: Mapping[str, Here] | None,
    history: logs.History,
    lines: Sequence[str],
) -> Sight:
    book = ctx.logbook
    text = logs.shown(logs.about(lines, node.name))
    return Sight(
        node=node,
        now=ctx.now.wall // SECOND,
        readings=None if book is None else book.readings(node.name),
        records=() if book is None else book.records(node.name),
        here=None if running is None else running[node.name],
        history=history,
        logs={"slurmctld": text} if text else {},
    )


def _asked(sight: Sight, answer: NodeProbe | Unreached | None, log: str) -> Sight:
    text = logs.shown(logs.telling(log))
    more = {"slurmd": text} if text else {}
    return replace(sight, answer=answer, logs={**sight.logs, **more})


def _running(nodes: Sequence[Node], ctx: Context) -> dict[str, Here]:
    """What Slurm has on each node; a job that is completing is over."""
    jobs: dict[str, set[str]] = {node.name: set() for node in nodes}
    users: dict[str, set[str]] = {node.name: set() for node in nodes}
    anywhere = set[str]()
    for job in filter(runs, ctx.slurm.jobs()):
        anywhere |= ids(job)
        for node in jobs.keys() & set(_expanded(job.nodes)):
            jobs[node] |= ids(job)
            users[node].add(job.user)
    everywhere = frozenset(anywhere)
    return {
        name: Here(jobs=frozenset(jobs[name]), users=frozenset(users[name]), anywhere=everywhere)
        for name in jobs
    }


def _expediting(ctx: Context) -> dict[str, frozenset[str]]:
    """The jobs in EXPEDITING on each node, of those whose jobs are watched anyway."""
    try:
        return _by_node(job for job in ctx.slurm.jobs() if job.state == "EXPEDITING")
    except CannotTell:
        return {}


def _by_node(jobs: Iterable[Job]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for job in jobs:
        for node in _expanded(job.nodes) if job.nodes else ():
            found.setdefault(node, set()).add(job.job_id)
    return {node: frozenset(ids) for node, ids in found.items()}


def _expanded(nodes: str) -> Sequence[str]:
    try:
        return hostlist.printed(nodes)
    except Invalid as error:
        raise CannotTell(f"the nodes of a job are not understood: {error}") from error


def _controller_log(path: str | None, limit: float) -> tuple[str, str]:
    """The end of the log on this host, and why it could not be read."""
    if path is None:
        return "", ""
    try:
        done = proc.run(["tail", "-c", str(TAIL), "--", path], limit=limit)
    except CannotTell as error:
        return "", str(error)
    out, err = (raw.decode("utf-8", "backslashreplace") for raw in (done.out, done.err.strip()))
    return (out, "") if done.code == 0 else ("", err or f"tail: exit code {done.code}")


def _daemon_logs(names: Sequence[str], path: str | None, ctx: Context) -> dict[str, str]:
    if path is None or ctx.remote is None or not names:
        return {}
    from sentinel.nodes.model import Answered

    argv = ["tail", "-c", str(TAIL // 10), "--", path]
    answers = ctx.remote.run(names, argv, limit=ctx.limit * LOGS)
    return {
        node: answer.out.decode("utf-8", "backslashreplace")
        for node, answer in answers.items()
        if isinstance(answer, Answered)
    }
