"""Follows runs that are under way, and explains how they ended. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job, JobEnd
from sentinel.core.guidance import look
from sentinel.nodes.node_waves import RETRY_DIVISOR
from sentinel.slurm.job_states import state_meaning

QUEUE_GRACE_S = 120.0
"""Seconds that a job may need to appear in the queue, or its last file to appear on other hosts."""


class DiagRun(Struct, frozen=True, kw_only=True):
    """A requested diagnostic. Times are in µs UTC."""

    node: str  # Name of the node.
    name: str  # the name of its job
    level: int  # Level of the test.
    out: str  # Path of its output.
    asked: int  # When it was requested.
    limit: float  # how many seconds it may take
    gpus: int = 0  # How many GPUs the node must have.
    job: str = ""  # the id of its job; empty until the job was seen in the queue
    seen: int = 0  # When its job was last seen in the queue.
    state: str = ""  # The job's last state.
    by_ssh: bool = False  # whether it runs on a drained node, without a job
    test: str = ""  # the kind of `sentinel nodes test`; empty for dcgmi diag
    command: tuple[str, ...] = ()  # what `test: command` runs
    back: bool = False  # whether the node had just come back to service
    kept: str = ""  # the reservation in which the node waits

    @property
    def display_name(self) -> str:
        """The name of the test for people."""
        return format_test_name(self.level, self.test)


def format_test_name(level: int, test: str) -> str:
    """`dcgmi diag -r 2` or `test cuda`."""
    return f"test {test}" if test else f"dcgmi diag -r {level}"


def update_from_queue(
    run: DiagRun, jobs: Sequence[Job] | None, now: Instant, submitters: Collection[str]
) -> DiagRun:
    """The run with the state of its job in the queue (None: the queue could not be read).

    `submitters`: users whose job it may be. Everybody can see its name in the queue, and may give
    it to a job of their own."""
    mine = next((j for j in jobs or () if j.name == run.name and j.user in submitters), None)
    if mine is None:
        return replace(run, state="") if jobs is not None else run
    return replace(run, job=mine.job_id, seen=now.wall, state=mine.state)


def explain_lost_run(run: DiagRun, end_of: Callable[[str], JobEnd | None], now: Instant) -> str:
    """Why the run will have no result; empty while it may still have one. Only for runs that have
    left no exit code."""
    since = (now.wall - max(run.asked, run.seen)) / SECOND
    if run.by_ssh:
        return "timed out: it left no result" if since > run.limit + QUEUE_GRACE_S else ""
    if since < QUEUE_GRACE_S or run.state:
        return ""
    if not run.job:
        return f"its job never came into the queue; see: {look('sentinel nodes list --history {}', run.node).render()}"
    end = end_of(run.job)
    if end is None:
        return "its job is gone and left no result"
    words = state_meaning(end.state).words or "ended in a state that sentinel does not know"
    late = "timed out: " if end.state == "TIMEOUT" else ""
    return f"{late}its job {words} ({end.state}) and left no result"


class LastDiagVerdict(Struct, frozen=True, kw_only=True):
    """The last verdict on a node."""

    node: str  # Name of the node.
    level: int  # Level of the test.
    outcome: str  # pass, fail or inconclusive.
    why: str  # The reason, in one line.
    at: int  # when it was judged, µs UTC; for `sentinel check` the time in the output's name
    # whether an inconclusive verdict is a warning, because a person has to look
    needs_a_person: bool = False
    gpus: tuple[str, ...] = ()  # the UUIDs of the blamed GPUs
    details: tuple[str, ...] = ()  # Further lines.
    file: str = ""  # Path of the output in the archive.
    test: str = ""  # the kind of `sentinel nodes test`; empty for dcgmi diag
    back: bool = False  # whether the node had just come back to service


def find_fresh_nodes(
    last: Mapping[str, LastDiagVerdict], now: Instant, seconds: float
) -> Collection[str]:
    """Nodes whose last verdict is recent enough. An inconclusive one counts for a shorter time."""
    return {
        name
        for name, one in last.items()
        if now.wall - one.at
        < seconds * SECOND / (1 if one.outcome != "inconclusive" else RETRY_DIVISOR)
    }
