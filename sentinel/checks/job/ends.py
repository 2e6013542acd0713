"""Describes how a job ended, in plain words."""

import signal

from sentinel.checks.job.memory import GoneJob
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.cluster import JobEnd
from sentinel.core.text import shortened, visible
from sentinel.core.values import clock_text, duration_text
from sentinel.slurm.job_states import end_meaning, is_node_failure, lost_partition
from sentinel.slurm.pending_reasons import explain_reason
from sentinel.slurm.words import parse_time_limit

OUT_OF_MEMORY_SIGNAL = 125
"""Not a real signal: Slurm's SIG_OOM, "exit status reported as 0:125" (slurm/slurm.h)."""

SLURMD_ERROR_BY_SIGNAL = {
    42: "slurmd could not write its batch script",
    46: "slurmd could not set up its environment",
    48: "slurmd could not become its user",
    52: "slurmd could not start its script",
    53: "slurmd could not open its output or enter its directory",
    54: "a prolog failed",
}
"""Signals that were never sent. If slurmd cannot start a job, Slurm stores its error 40xx
(slurm/slurm_errno.h) like a wait status. The low seven bits then look like a signal: `4021 & 127`
is 53 (github.com/SckyzO/slurm_exporter/issues/171)."""

_SLURMD_ERROR_OFFSET = 4000 - 32

NOT_STARTED_REASONS = ("JobLaunchFailure", "SystemFailure")
"""Reasons that explain an end. Other reasons may be left over from when the job was pending."""


def is_completed(gone: GoneJob) -> bool:
    """Whether Slurm says that the job ended with exit code 0 and without a signal, and that none of
    its steps failed. The exit code of a script is only that of its last command."""
    end = gone.end
    failed = bool(end and (end.exit_code or end.signal or end.step_failed))
    return bool(end and end.state == "COMPLETED" and not failed)


def recency_key(gone: GoneJob) -> tuple[bool, int, int, bool, int]:
    """A sort key: the newest run sorts last.

    Slurm counts whole seconds. If two runs began and ended in the same second, the failed one
    counts as newer, then the later element of an array.
    """
    ended = (gone.end.ended if gone.end else None) or gone.at.wall // SECOND
    task = int(gone.seen.task) if gone.seen.task.isdecimal() else 0
    return gone.has_run, gone.started_at_s or 0, ended, not is_completed(gone), task


def get_end_instant(gone: GoneJob, now: Instant) -> Instant:
    """When the job ended, by Slurm's clock. If Slurm does not say, the time when sentinel
    noticed."""
    if gone.end is None or gone.end.ended is None:
        return gone.at
    return shift_instant(now, gone.end.ended - now.wall / SECOND)


def get_run_seconds(gone: GoneJob, now: Instant) -> float | None:
    """How many seconds its last run took. None if its start is not known."""
    if gone.started_at_s is None:
        return None
    return max(0.0, get_end_instant(gone, now).wall / SECOND - gone.started_at_s)


ENDED_EARLY = "its reservation has ended, its account has used up its granted time, or somebody lowered the limit"
"""Why Slurm ends a job as TIMEOUT before the limit that it had (job_time_limit() in src/slurmctld/job_mgr.c,
acct_policy_job_time_out()). It keeps none of these reasons."""

EARLY_S = 120
"""Slurm looks at limits each half minute."""


def find_early_end_s(gone: GoneJob) -> int:
    """How many seconds before its own time limit a job was ended as TIMEOUT. 0 if it reached it, or if the limit
    is not known."""
    end, options = gone.end, gone.how.options if gone.how else ()
    if end is None or end.state != "TIMEOUT" or not (end.started and end.ended):
        return 0
    told = next((o.removeprefix("--time=") for o in options if o.startswith("--time=")), "")
    try:
        limit = parse_time_limit(told.encode()) or 0
    except ValueError:
        return 0
    early = limit - (end.ended - end.started)
    return early if early > EARLY_S else 0


def describe_end(gone: GoneJob, now: Instant, owner: str = "") -> str:
    """One sentence about the end: `4711 FAILED with exit code 1 at 07:55 UTC after running for 5h
    03m`. `owner` is named in it if it is given."""
    seen, end = gone.seen, gone.end
    head = f"job {visible(seen.id)}" + (f" of {visible(owner)}" if owner else "")
    if gone.lost is not None:
        since = clock_text(gone.lost, now.wall / SECOND)
        return (
            f"{head} is gone: slurmctld started anew {since} and has lost its memory of it "
            "(StateSaveLocation gone, or started with -c); what still ran is ended by the nodes"
        )
    if end is None and gone.runaway:
        return (
            f"{head} is gone: slurmctld does not know it, and accounting still has it as"
            f" {visible(gone.runaway)} (a runaway job: sacctmgr show runawayjobs)"
        )
    if end is None:
        what = "left the queue while pending" if not seen.has_run else "is gone"
        known = (
            "neither squeue nor sacct said how it ended" if gone.asked else "how is not known yet"
        )
        return f"{head} {what} ({known})"
    if not gone.has_run and end.state == "FAILED":
        why = f": {explain_reason(end.reason).meaning}" if end.reason else ""
        return f"{head} was refused by Slurm before it had nodes{why}{_describe_end_time(gone, end, now)}"
    state = describe_state(end)
    if early := find_early_end_s(gone):
        state = f"was ended as TIMEOUT, {duration_text(early)} before the limit that it had ({ENDED_EARLY}),"
    words = f"{state}{_describe_end_nodes(gone, end)}"
    return f"{head} {words}{_describe_end_time(gone, end, now)}"


def describe_state(end: JobEnd) -> str:
    """Its state in words, with the exit code or signal, and who cancelled it."""
    by = f" by {visible(end.cancelled_by)}" if end.cancelled_by else ""
    word = visible(end.state.split(" ")[0])
    words = end_meaning(end).words
    if not words:
        return (f"ended as {word}" if word else "ended") + _describe_exit_code(end)
    state = "" if word.lower() in words.lower() else f" ({word})"
    return f"{words}{by}{state}{_describe_exit_code(end)}"


def _describe_exit_code(end: JobEnd) -> str:
    if end.signal == OUT_OF_MEMORY_SIGNAL:
        return "" if end.state == "OUT_OF_MEMORY" else ", out of memory (told as signal 125)"
    if end.signal in SLURMD_ERROR_BY_SIGNAL:
        told = f"Slurm's error {_SLURMD_ERROR_OFFSET + end.signal}, told as signal {end.signal}"
        return f" before it began: {SLURMD_ERROR_BY_SIGNAL[end.signal]} ({told})"
    if end.signal in (signal.SIGTERM, signal.SIGKILL) and end_meaning(end).first_step:
        return ""  # Slurm's own: the state has said why it ended the job
    if end.signal:
        return f", killed by {_signal_text(end.signal)}"
    if not end.exit_code and end.state == "COMPLETED" and end.step_failed:
        return f", but a step of it failed with exit code {visible(end.step_failed)}"
    if not end.exit_code:
        unstarted = end.state == "FAILED" and end.reason in NOT_STARTED_REASONS
        return f" before it began: Slurm could not start it ({end.reason})" if unstarted else ""
    if end.or_exit_code:  # an older sacct prints both alike
        return f" with exit code {_exit_code_text(end.or_exit_code)} or {end.exit_code}"
    return f" with exit code {_exit_code_text(end.exit_code)}"


def _exit_code_text(code: int) -> str:
    """The code, with the signal that a shell returns it for."""
    return f"{code} (128 + {_signal_text(code - 128)})" if 128 < code < 193 else str(code)


def _signal_text(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _describe_end_nodes(gone: GoneJob, end: JobEnd) -> str:
    if lost_partition(end):
        return f": {shortened(visible(gone.seen.partition), 80)}"
    if end.failed_node:
        return f": {shortened(visible(end.failed_node), 80)}"
    nodes = shortened(visible(end.nodes or gone.seen.nodes), 80)
    where = " on"
    if is_node_failure(end):
        where = " among" if {*nodes} & {*"[,"} else ":"  # of many not all failed
    return f"{where} {nodes}" if nodes and gone.has_run else ""


def _describe_end_time(gone: GoneJob, end: JobEnd, now: Instant) -> str:
    if end.ended is None:
        return ""
    at = f" {clock_text(end.ended, now.wall / SECOND)}"
    if not gone.has_run or gone.started_at_s is None or gone.started_at_s > end.ended:
        return at
    return f"{at} after running for {duration_text(end.ended - gone.started_at_s)}"
