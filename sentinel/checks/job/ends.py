"""What happened to a job that left the queue, in the words a person would use."""

import signal

from sentinel.checks.job.memory import GoneJob
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.cluster import JobEnd
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.slurm.job_states import state_meaning
from sentinel.slurm.pending_reasons import explain_reason

OUT_OF_MEMORY_SIGNAL = 125
"""The signal that nobody sent: SIG_OOM, "exit status reported as 0:125" (slurm/slurm.h)."""

SLURMD_ERROR_BY_SIGNAL = {
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

_SLURMD_ERROR_OFFSET = 4000 - 32

NOT_STARTED_REASONS = ("JobLaunchFailure", "SystemFailure")
"""Reasons that tell the end; others may be left over from when it was pending."""


def is_completed(gone: GoneJob) -> bool:
    """Whether Slurm says that it ended by itself with exit code 0 and no signal, and no step of it
    failed: the exit code of a script is that of its last command."""
    end = gone.end
    failed = bool(end and (end.exit_code or end.signal or end.step_failed))
    return bool(end and end.state == "COMPLETED" and not failed)


def recency_key(gone: GoneJob) -> tuple[bool, int, int, bool, int]:
    """Sorts the newest run last. Slurm counts whole seconds: of runs that began and ended in the same
    one, the one that failed counts as newer, then an array's later element."""
    ended = (gone.end.ended if gone.end else None) or gone.at.wall // SECOND
    task = int(gone.seen.task) if gone.seen.task.isdecimal() else 0
    return gone.has_run, gone.started_at_s or 0, ended, not is_completed(gone), task


def get_end_instant(gone: GoneJob, now: Instant) -> Instant:
    """When it ended, by Slurm's clock; where that does not say, when that was noticed."""
    if gone.end is None or gone.end.ended is None:
        return gone.at
    return shift_instant(now, gone.end.ended - now.wall / SECOND)


def get_run_seconds(gone: GoneJob, now: Instant) -> float | None:
    """Seconds for which its last run ran; None where its start is not known."""
    if gone.started_at_s is None:
        return None
    return max(0.0, get_end_instant(gone, now).wall / SECOND - gone.started_at_s)


def describe_end(gone: GoneJob, now: Instant) -> str:
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
        what = "left the queue while pending" if not seen.has_run else "is gone"
        known = "Slurm does not remember how it ended" if gone.asked else "how is not known yet"
        return f"{head} {what} ({known})"
    if not gone.has_run and end.state == "FAILED":
        why = f": {explain_reason(end.reason).meaning}" if end.reason else ""
        return f"{head} was refused by Slurm before it had nodes{why}{_describe_end_time(gone, end, now)}"
    return f"{head} {_describe_state(end)}{_describe_end_nodes(gone, end)}{_describe_end_time(gone, end, now)}"


def _describe_state(end: JobEnd) -> str:
    by = f" by {visible(end.cancelled_by)}" if end.cancelled_by else ""
    word = visible(end.state.split(" ")[0])
    words = state_meaning(end.state).words
    if not words:
        return (f"ended as {word}" if word else "ended") + _describe_exit_code(end)
    state = "" if words == word else f" ({word})"
    return f"{words}{by}{state}{_describe_exit_code(end)}"


def _describe_exit_code(end: JobEnd) -> str:
    if end.signal == OUT_OF_MEMORY_SIGNAL:
        return "" if end.state == "OUT_OF_MEMORY" else ", out of memory (told as signal 125)"
    if end.signal in SLURMD_ERROR_BY_SIGNAL:
        told = f"Slurm's error {_SLURMD_ERROR_OFFSET + end.signal}, told as signal {end.signal}"
        return f" before it began: {SLURMD_ERROR_BY_SIGNAL[end.signal]} ({told})"
    if end.signal:
        return f", killed by {_signal_text(end.signal)}"
    if not end.exit_code and end.state == "COMPLETED" and end.step_failed:
        return f", but a step of it failed with exit code {visible(end.step_failed)}"
    if not end.exit_code:
        unstarted = end.state == "FAILED" and end.reason in NOT_STARTED_REASONS
        return f" before it began: Slurm could not start it ({end.reason})" if unstarted else ""
    hint = f" (128 + {_signal_text(end.exit_code - 128)})" if 128 < end.exit_code < 193 else ""
    return f" with exit code {end.exit_code}{hint}"


def _signal_text(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _describe_end_nodes(gone: GoneJob, end: JobEnd) -> str:
    if end.failed_node:
        return f": {shortened(visible(end.failed_node), 80)}"
    nodes = end.nodes or gone.seen.nodes
    return f" on {shortened(visible(nodes), 80)}" if nodes and gone.has_run else ""


def _describe_end_time(gone: GoneJob, end: JobEnd, now: Instant) -> str:
    if end.ended is None:
        return ""
    ago = f" {duration_text(max(0.0, now.wall / SECOND - end.ended))} ago"
    if not gone.has_run or gone.started_at_s is None or gone.started_at_s > end.ended:
        return ago
    return f"{ago} after running for {duration_text(end.ended - gone.started_at_s)}"
