"""Runs under way, and what became of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job, JobEnd
from sentinel.slurm.job_states import state_meaning

QUEUE_GRACE_S = 120.0
"""Seconds in which a job may be on its way into the queue, or its last file to other hosts."""


class DiagRun(Struct, frozen=True, kw_only=True):
    """One diagnostic that was asked for. Times in µs UTC; `name` is its job's, `limit` seconds.

    `job` is empty until it was seen in the queue; `by_ssh`: on a drained node, without a job.
    `test`: the test of nodes that it is, if not dcgmi diag; `command`: what that runs;
    `back`: the node had just come back; `kept`: the reservation in which it waits.
    """

    node: str
    name: str
    level: int
    out: str
    asked: int
    limit: float
    gpus: int = 0
    job: str = ""
    seen: int = 0
    state: str = ""
    by_ssh: bool = False
    test: str = ""
    command: tuple[str, ...] = ()
    back: bool = False
    kept: str = ""

    @property
    def display_name(self) -> str:
        """As people call it."""
        return format_test_name(self.level, self.test)


def format_test_name(level: int, test: str) -> str:
    """`dcgmi diag -r 2` or `test cuda`."""
    return f"test {test}" if test else f"dcgmi diag -r {level}"


def update_from_queue(run: DiagRun, jobs: Sequence[Job] | None, now: Instant) -> DiagRun:
    """The run with what the queue says of its job; None: the queue could not be read."""
    mine = next((j for j in jobs or () if j.name == run.name), None)
    if mine is None:
        return replace(run, state="") if jobs is not None else run
    return replace(run, job=mine.job_id, seen=now.wall, state=mine.state)


def explain_lost_run(run: DiagRun, end_of: Callable[[str], JobEnd | None], now: Instant) -> str:
    """Why nothing will come of it any more; empty while something may.

    To be asked of runs that are in no queue and have left no exit code.
    """
    since = (now.wall - max(run.asked, run.seen)) / SECOND
    if run.by_ssh:
        return "timed out: it left no result" if since > run.limit + QUEUE_GRACE_S else ""
    if since < QUEUE_GRACE_S or run.state:
        return ""
    if not run.job:
        return f"its job never came into the queue; see: sentinel nodes list --history {run.node}"
    end = end_of(run.job)
    if end is None:
        return "its job is gone and left no result"
    words = state_meaning(end.state).words or "ended in a state that is not known here"
    late = "timed out: " if end.state == "TIMEOUT" else ""
    return f"{late}its job {words} ({end.state}) and left no result"


class LastDiagVerdict(Struct, frozen=True, kw_only=True):
    """The last verdict on a node; `at` in µs UTC. `needs_a_person`: of an inconclusive one, whether
    people hear of it. `gpus` are the blamed ones by UUID; `test` and `back` as in Run."""

    node: str
    level: int
    outcome: str
    why: str
    at: int
    needs_a_person: bool = False
    gpus: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    file: str = ""
    test: str = ""
    back: bool = False


def find_fresh_nodes(
    last: Mapping[str, LastDiagVerdict], now: Instant, seconds: float
) -> Collection[str]:
    """Nodes of which enough is known for now; an inconclusive one may be tried again sooner."""
    return {
        name
        for name, one in last.items()
        if now.wall - one.at
        < seconds * SECOND / (1 if one.outcome != "inconclusive" else RETRY_DIVISOR)
    }


RETRY_DIVISOR = 6
"""An inconclusive test is tried again after a sixth of the time."""
