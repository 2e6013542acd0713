"""Takes a closer look at a training that is quiet for unusually long, and reports the result."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.closer_look_state import (
    CloserLookState,
    compute_due_in_s,
    find_latest_number,
)
from sentinel.checks.log.judge import LogVerdict
from sentinel.checks.log.log_state import LogObservation, LogState
from sentinel.checks.log.settings import CloserLookMode
from sentinel.checks.users import own_user_name
from sentinel.core.cluster import Job
from sentinel.core.model import Status
from sentinel.core.node_answers import Remote, uses_steps

LOOK_LIMIT_SHARE = 0.6
"""The share of a run's time for a pair of looks. If less is left, the pair waits for the next pass.
"""


def may_look_at_nodes(looks: CloserLookMode, job: Job, remote: Remote | None) -> bool:
    """Whether the nodes of this job may be examined before there is an alarm."""
    if looks == "off" or remote is None or (uses_steps(remote) and looks != "srun"):
        return False
    return job.user == own_user_name() or (looks == "all" and os.geteuid() == 0)


def take_closer_look(
    suspicion: CloserLookState,
    sight: LogObservation,
    seen: LogState,
    learned: TrainingBaseline,
    *,
    remote: Remote,
    nodes: Sequence[str],
    again: Callable[[], LogObservation],
    limit: float,
) -> CloserLookState:
    """Look at the nodes twice, if that is due.

    `again` reads the log once more: a training that has advanced in between does not hang. `limit`
    is the time for all this in seconds. In a large job, a sample of the nodes comes first.
    """
    job, name = sight.job, find_latest_number(seen)
    if (
        job is None
        or name is None
        or not nodes
        or compute_due_in_s(suspicion, seen, learned, sight.at) > 0
    ):
        return suspicion
    try:
        from sentinel.checks.log.node_looks import look_at_nodes
    except ModuleNotFoundError:  # the kind `stacks` was removed from this installation
        return suspicion
    return look_at_nodes(
        suspicion,
        sight,
        seen,
        learned,
        job=job,
        name=name,
        remote=remote,
        nodes=nodes,
        again=again,
        limit=limit,
    )


def apply_closer_look(verdict: LogVerdict, suspicion: CloserLookState, still: float) -> LogVerdict:
    """The verdict with the result of the closer look. Without a result it stays the same.

    Before the limit, the result is an alarm by itself. After the limit, it begins the text. `still`
    is the quiet time in seconds.
    """
    if not suspicion.told:
        return verdict
    if verdict.hung:
        return replace(verdict, summary=f"{suspicion.told}; {verdict.summary}")
    return replace(
        verdict,
        status=Status.CRITICAL,
        summary=suspicion.told,
        quiet=still,
        hung=True,
        early=True,
    )
