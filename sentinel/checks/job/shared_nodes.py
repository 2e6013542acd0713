"""Which node the interrupted runs share, and the chance of that by luck. Pure.

If each interrupted run had drawn its nodes by luck, a node would be in each with the share of nodes
that this run had. The chance that it is in as many or more of them is the tail of a Poisson binomial
distribution. It is multiplied by the number of nodes that were looked at (Bonferroni). The pool is
only the nodes that these runs had, which makes the chance too large rather than too small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from sentinel.checks.job.ends import is_completed
from sentinel.checks.job.memory import MAX_NODES_CHARS, EndedRun, GoneJob
from sentinel.core.clock import SECOND, Instant
from sentinel.core.guidance import ADMINISTRATOR, ActingCommand, Guidance, avoid_node, look
from sentinel.core.hostlist import expand_printed
from sentinel.core.model import Finding, Status
from sentinel.core.text import visible
from sentinel.core.turns import interleave
from sentinel.slurm.job_states import find_state_cause, lost_partition

MAX_CHANCE = 0.01
"""Nothing is said of a node that luck explains with this chance or more, over all nodes."""

MIN_SHARED = 3
"""Nothing is said below so many interrupted runs with the node."""

MAX_ENDED_RUNS = 200
"""The newest so many are remembered; those of several users in turns, so that nobody's deaths push out
what others' runs prove."""
ENDED_RUNS_DAYS = 30
MAX_CALLED_RUNS = 20
"""At most the newest of so many interrupted runs, of several users in turns, are called `the last`."""

_PLANNED = frozenset({"time_limit", "person", "preemption"})


class SharedNode(Struct, frozen=True, kw_only=True):
    """A node that more interrupted runs had than luck explains."""

    node: str
    shared: int  # How many of the interrupted runs had it.
    interrupted: int  # How many interrupted runs were looked at.
    pool: int  # How many nodes were looked at.
    chance: float  # The chance of that by luck, of any of these nodes.
    ended_well: int  # Runs that had it and ended as planned.
    trainings: int  # How many different trainings the interrupted runs with it were of.
    users: tuple[str, ...]  # Whose they were.


def add_ended_runs(
    before: Sequence[EndedRun], gone: Mapping[str, Sequence[GoneJob]], now: Instant
) -> tuple[EndedRun, ...]:
    """The ended runs, the newest last, with those that are new. `gone`: the jobs that left the queue,
    by training."""
    known = {(run.job, run.started) for run in before}
    new = [
        run
        for training, jobs in gone.items()
        for job in jobs
        if (run := _make_ended_run(training, job)) and (run.job, run.started) not in known
    ]
    oldest = now.wall // SECOND - ENDED_RUNS_DAYS * 86400
    kept = [run for run in (*before, *new) if run.ended >= oldest]
    newest = sorted(kept, key=lambda run: run.ended, reverse=True)
    return tuple(sorted(_take_turns(newest)[:MAX_ENDED_RUNS], key=lambda run: run.ended))


def _take_turns(runs: Iterable[EndedRun]) -> list[EndedRun]:
    return interleave(runs, lambda run: run.user)


def _make_ended_run(training: str, gone: GoneJob) -> EndedRun | None:
    """The run, if it is known how it ended and where it ran. A list of nodes that was cut is not
    known."""
    end = gone.end
    if end is None or not gone.has_run:
        return None
    nodes = end.nodes or gone.seen.nodes
    if not nodes or (not end.nodes and len(nodes) >= MAX_NODES_CHARS):
        return None
    planned = lost_partition(end) or find_state_cause(end) in _PLANNED
    return EndedRun(
        job=gone.seen.job_id,
        started=gone.started_at_s or 0,
        ended=end.ended or gone.at.wall // SECOND,
        user=gone.seen.user,
        training=training,
        nodes=nodes,
        is_interrupted=not (planned or is_completed(gone)),
    )


def find_shared_node(runs: Sequence[EndedRun]) -> SharedNode | None:
    """The one node that the last interrupted runs share. None if luck explains it, if several nodes
    are shared alike (then it may be the training, or where Slurm puts it), or if as many runs with
    the node ended well."""
    bad = _take_turns(run for run in reversed(runs) if run.is_interrupted)[:MAX_CALLED_RUNS]
    if len(bad) < MIN_SHARED:
        return None
    held = {id(run): _expand_nodes(run.nodes) for run in runs}
    pool = frozenset[str]().union(*held.values())
    counts = Counter(node for run in bad for node in held[id(run)]).most_common(2)
    if (
        not counts
        or counts[0][1] < MIN_SHARED
        or (len(counts) > 1 and counts[1][1] == counts[0][1])
    ):
        return None
    node, shared = counts[0]
    mine = [run for run in runs if node in held[id(run)]]
    failed = [run for run in mine if run.is_interrupted]
    ended_well = len(mine) - len(failed)
    chance = find_luck_tail([len(held[id(run)]) / len(pool) for run in bad], shared) * len(pool)
    if chance >= MAX_CHANCE or ended_well >= shared:
        return None
    return SharedNode(
        node=node,
        shared=shared,
        interrupted=len(bad),
        pool=len(pool),
        chance=chance,
        ended_well=ended_well,
        trainings=len({run.training for run in failed}),
        users=tuple(sorted({run.user for run in failed})),
    )


@lru_cache(maxsize=4 * MAX_ENDED_RUNS)  # each training that is dead is judged again in every run
def _expand_nodes(nodes: str) -> frozenset[str]:
    return frozenset(expand_printed(nodes))


def find_luck_tail(shares: Iterable[float], at_least: int) -> float:
    """The chance that at least so many of independent events happen, each with its own chance."""
    chances = [1.0]  # Of 0, 1, 2, … events so far.
    for share in shares:
        chances = [
            (chances[n] if n < len(chances) else 0.0) * (1 - share)
            + (chances[n - 1] * share if n else 0.0)
            for n in range(len(chances) + 1)
        ]
    return min(1.0, sum(chances[at_least:]))


def describe_shared_node(found: SharedNode) -> str:
    """`3 of the last 4 interrupted runs had node gpu07; by chance that happens once in 5000 times (64
    nodes compared)`."""
    well = f"; {found.ended_well} with it ended well" if found.ended_well else ""
    return (
        f"{found.shared} of the last {found.interrupted} interrupted runs had node"
        f" {visible(found.node)}; by chance that happens once in {_round_odds(found.chance)} times"
        f" ({found.pool} nodes compared){well}"
    )


def _round_odds(chance: float) -> str:
    """One over the chance, with two digits; a million at most."""
    odds = min(1e6, 1 / chance) if chance > 0 else 1e6
    return f"{int(float(f'{odds:.2g}'))}"


def list_shared_findings(runs: Sequence[EndedRun]) -> tuple[Finding, ...]:
    """The warning for operations about the node that runs of several trainings share. It has no user,
    so no owner gets it."""
    found = find_shared_node(runs)
    if found is None or found.trainings < 2:
        return ()
    name = visible(found.node)
    whose = f"; all were {visible(found.users[0])}'s, whose jobs may be at fault themselves"
    return (
        Finding(
            subject=f"node {name}",
            status=Status.WARNING,
            summary=describe_shared_node(found) + (whose if len(found.users) == 1 else ""),
            values={"shared_runs": found.shared, "interrupted_runs": found.interrupted},
            labels={"node": name},
            tell_once=True,
            commands=(look("sentinel nodes list --history {}", found.node),),
            acts=(
                ActingCommand(owner=ADMINISTRATOR, argv=("sentinel", "nodes", "test", found.node)),
            ),
            guidance=Guidance(
                impact="If the node is at fault, it will interrupt more runs.",
                todo=f"{avoid_node(name, hangs=False)} `sentinel nodes list` below shows what is"
                " known of the node; `sentinel nodes test` tests it while it is idle.",
                ask=f"test node {name}: {found.shared} of the last {found.interrupted} interrupted"
                " runs had it",
            ),
        ),
    )
