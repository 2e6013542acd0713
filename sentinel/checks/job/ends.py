"""What happened to a job that left the queue, in the words a person would use."""

import signal

from sentinel.checks.job.memory import Gone
from sentinel.core.clock import SECOND, Instant, shifted
from sentinel.core.cluster import JobEnd
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.slurm.job_states import meaning
from sentinel.slurm.pending_reasons import explain

OUT_OF_MEMORY = 125
"""The signal that nobody sent: SIG_OOM, "exit status reported as 0:125" (slurm/slurm.h)."""

BY_SLURMD = {
    42: "slurmd could not write its batch script",
    46: "slurmd could not set up its environment",
    48: "slurmd could not become its user",
    52: "slurmd could not start its script",
    53: "slurmd could not open its output or enter its directory",
    54: "a prolog failed",
}
"""Signals that nobody sent: where slurmd itself could not begin a job, its error 40xx
(slurm/slurm_errno.h) is kept as if it were a wait status, and the low seven bits of that are shown
as a signal: `4021 & 127` is 53 (github.com/SckyzO/slurm_exporter/issues/171)."""

_FIRST_ERROR = 4000 - 32

NOT_STARTED = ("JobLaunchFailure", "SystemFailure")
"""Reasons that tell the end; others may be left over from when it was pending."""


def completed(gone: Gone) -> bool:
    """Whether Slurm says that it ended by itself with exit code 0 and no signal, and no step of it
    failed: the exit code of a script is that of its last command."""
    end = gone.end
    failed = bool(end and (end.exit_code or end.signal or end.step_failed))
    return bool(end and end.state == "COMPLETED" and not failed)


def recency(gone: Gone) -> tuple[bool, int, int, bool, int]:
    """Sorts the newest run last. Slurm counts whole seconds: of runs that began and ended in the same
    one, the one that failed counts as newer, then an array's later element."""
    ended = (gone.end.ended if gone.end else None) or gone.at.wall // SECOND
    task = int(gone.seen.task) if gone.seen.task.isdecimal() else 0
    return gone.ran, gone.started or 0, ended, not completed(gone), task


def last_moment(gone: Gone, now: Instant) -> Instant:
    """When it ended, by Slurm's clock; where that does not say, when that was noticed."""
    if gone.end is None or gone.end.ended is None:
        return gone.at
    return shifted(now, gone.end.ended - now.wall / SECOND)


def lasted(gone: Gone, now: Instant) -> float | None:
    """Seconds for which its last run ran; None where its start is not known."""
    if gone.started is None:
        return None
    return max(0.0, last_moment(gone, now).wall / SECOND - gone.started)


def told(gone: Gone, now: Instant) -> str:
    """One sentence about its end: `4711 FAILED with exit code 1 12m ago after running for 5h 03m`."""
    seen, end = gone.seen, gone.end
    head = f"job {visible(seen.id)}"
    if gone.lost is not None:
        since = duration_text(max(0.0, now.wall / SECOND - gone.lost))
        return (
            f"{head} is gone: slurmctld started anew {since} ago and has lost its memory of it "
            "(StateSaveLocation gone, or started with -c); what still ran is ended by the nodes"
        )
    if end is None and gone.runaway:
        return (
            f"{head} is gone: slurmctld does not know it, and accounting still has it as"
            f" {visible(gone.runaway)} (a runaway job: sacctmgr show runawayjobs)"
        )
    if end is None:
        what = "left the queue while pending" if not seen.ran else "is gone"
        known = "Slurm does not remember how it ended" if gone.asked else "how is not known yet"
        return f"{head} {what} ({known})"
    if not gone.ran and end.state == "FAILED":
        why = f": {explain(end.reason).meaning}" if end.reason else ""
        return f"{head} was refused by Slurm before it had nodes{why}{_when(gone, end, now)}"
    return f"{head} {_what(end)}{_where(gone, end)}{_when(gone, end, now)}"


def _what(end: JobEnd) -> str:
    by = f" by {visible(end.cancelled_by)}" if end.cancelled_by else ""
    word = visible(end.state.split(" ")[0])
    words = meaning(end.state).words
    if not words:
        return (f"ended as {word}" if word else "ended") + _code(end)
    state = "" if words == word else f" ({word})"
    return f"{words}{by}{state}{_code(end)}"


def _code(end: JobEnd) -> str:
    if end.signal == OUT_OF_MEMORY:
        return "" if end.state == "OUT_OF_MEMORY" else ", out of memory (told as signal 125)"
    if end.signal in BY_SLURMD:
        told = f"Slurm's error {_FIRST_ERROR + end.signal}, told as signal {end.signal}"
        return f" before it began: {BY_SLURMD[end.signal]} ({told})"
    if end.signal:
        return f", killed by {_signal(end.signal)}"
    if not end.exit_code and end.state == "COMPLETED" and end.step_failed:
        return f", but a step of it failed with exit code {visible(end.step_failed)}"
    if not end.exit_code:
        unstarted = end.state == "FAILED" and end.reason in NOT_STARTED
        return f" before it began: Slurm could not start it ({end.reason})" if unstarted else ""
    hint = f" (128 + {_signal(end.exit_code - 128)})" if 128 < end.exit_code < 193 else ""
    return f" with exit code {end.exit_code}{hint}"


def _signal(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _where(gone: Gone, end: JobEnd) -> str:
    if end.failed_node:
        return f": {shortened(visible(end.failed_node), 80)}"
    nodes = end.nodes or gone.seen.nodes
    return f" on {shortened(visible(nodes), 80)}" if nodes and gone.ran else ""


def _when(gone: Gone, end: JobEnd, now: Instant) -> str:
    if end.ended is None:
        return ""
    ago = f" {duration_text(max(0.0, now.wall / SECOND - end.ended))} ago"
    if not gone.ran or gone.started is None or gone.started > end.ended:
        return ago
    return f"{ago} after running for {duration_text(end.ended - gone.started)}"
