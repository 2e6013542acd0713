"""Every state word squeue prints for a job, and what it means for a training.

Words: `job_state_string()` in src/common/slurm_protocol_defs.c, Slurm 20.11 to 26.11 (release
candidate), where the first flag hides the base state; meanings: https://slurm.schedmd.com/job_state_codes.html.
"""

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.cluster import COMPLETING, Job, JobEnd
from sentinel.core.run_ledger import EndCause
from sentinel.core.text import visible


class Phase(str, Enum):
    """The phase of a job."""

    RUNNING = "running"
    STARTING = "starting"  # it has its nodes, but they are not ready yet
    WAITING = "waiting"  # its reason says why
    HELD = "held"  # only a person can release it
    PAUSED = "paused"  # it has its nodes, but does nothing
    ENDING = "ending"  # its state does not yet show how it ended
    OVER = "over"
    UNCLEAR = "unclear"


class JobState(Struct, frozen=True):
    """The meaning of a job state.

    `words`: how a message says that a job ended in this state. Empty if it is no end. `is_death`:
    the owner cannot have planned this end, so it is reported at once. `may_resubmit`: the same job
    may succeed if it is submitted again. `first_step`: what to do first, with `{owner}` for the
    user whose job it was, `{exclude}` for what leaves out the node that failed, and `{find_node}`
    for the command that names it. Empty if this depends on the job's log.
    """

    phase: Phase
    words: str = ""
    is_death: bool = False
    may_resubmit: bool = False
    first_step: str = ""


JOB_STATES: dict[str, JobState] = {
    "RUNNING": JobState(Phase.RUNNING),
    "RESIZING": JobState(Phase.RUNNING),
    "SIGNALING": JobState(Phase.RUNNING),
    "CONFIGURING": JobState(Phase.STARTING),
    "POWER_UP_NODE": JobState(Phase.STARTING),
    "PENDING": JobState(Phase.WAITING),
    "REQUEUED": JobState(Phase.WAITING),
    "REQUEUED_CRON": JobState(Phase.WAITING),
    "REQUEUE_FED": JobState(Phase.WAITING),
    "EXPEDITING": JobState(Phase.WAITING),
    "REQUEUE_HOLD": JobState(Phase.HELD),
    "SPECIAL_EXIT": JobState(Phase.HELD),
    "RESV_DEL_HOLD": JobState(Phase.HELD),
    "SUSPENDED": JobState(Phase.PAUSED),
    "STOPPED": JobState(Phase.PAUSED),
    "COMPLETING": JobState(Phase.ENDING),
    "STAGE_OUT": JobState(Phase.ENDING),
    # Another cluster of the federation runs the job, or has run it.
    "REVOKED": JobState(Phase.UNCLEAR),
    "COMPLETED": JobState(Phase.OVER, "completed with exit code 0"),
    "CANCELLED": JobState(
        Phase.OVER,
        "was cancelled",
        first_step="Ask who cancelled it. If that was not meant, {owner} submits it again.",
    ),
    "PREEMPTED": JobState(
        Phase.OVER,
        "was preempted",
        first_step="{owner} submits it again, from its last checkpoint: another job took its place.",
    ),
    "UPDATE_DB": JobState(Phase.OVER, "ended while its record was changed"),
    "FAILED": JobState(Phase.OVER, "FAILED", True, True),
    "TIMEOUT": JobState(
        Phase.OVER,
        "reached its time limit",
        True,
        True,
        first_step="{owner} submits it again, from its last checkpoint: its time limit was over.",
    ),
    "NODE_FAIL": JobState(
        Phase.OVER,
        "ended because one of its nodes failed",
        True,
        True,
        first_step="{owner} submits it again, from its last checkpoint. Slurm keeps jobs off the failed node"
        " while it is down{find_node}; if it is back already, exclude it (`{exclude}`).",
    ),
    "OUT_OF_MEMORY": JobState(
        Phase.OVER,
        "ran out of memory",
        True,
        first_step="It used more memory of its nodes (not of GPUs) than it asked for by --mem. Where there"
        " is accounting, sacct shows what it asked for (ReqMem) and what it used (MaxRSS). {owner} asks"
        " for more or uses less, and submits it again.",
    ),
    "BOOT_FAIL": JobState(
        Phase.OVER,
        "got nodes that did not boot",
        True,
        first_step="{owner} submits it again: its nodes did not boot.",
    ),
    "DEADLINE": JobState(
        Phase.OVER,
        "missed its deadline",
        True,
        first_step="{owner} submits it again, with a later deadline: it was over.",
    ),
    "LAUNCH_FAILED": JobState(Phase.OVER, "could not be launched", True),
    "RECONFIG_FAIL": JobState(Phase.OVER, "got nodes that could not be reconfigured", True),
}
"""If a state has several words (`COMPLETING,FAILED`), the first counts, as in squeue."""

_UNKNOWN = JobState(Phase.UNCLEAR)


REVOKED = "REVOKED"
AWAY = (
    "is REVOKED: it went to another cluster of the federation, which alone knows what it does (`squeue"
    " --federation` says which); watch it by a check with `cluster`"
)
"""Seen on 22.05: the cluster where the job was submitted lists it as REVOKED while another one runs
it, and still does after the job has ended (fed_mgr.c)."""

EXPEDITED = 600.0
"""Seconds after which a job in EXPEDITING needs a person.

With `sbatch --requeue=expedite` (25.11) such a job starts before all others as soon as the epilogs
on its nodes have ended. If it waits longer, a node is drained or its epilog hangs
(batch_requeue_fini() in src/slurmctld/job_mgr.c, make_node_idle() in node_mgr.c)."""


def state_meaning(state: str) -> JobState:
    """The meaning of a state word, also in the form of accounting (`CANCELLED by 1000`). A word
    that no known Slurm prints is UNCLEAR and not a death, so nothing is done for it."""
    return JOB_STATES.get(state.partition(" ")[0], _UNKNOWN)


PARTITION_DOWN = "PartitionDown"
"""Why slurmctld ended a job whose partition was taken out of slurm.conf or deleted: it ends as NODE_FAIL,
although no node failed (kill_job_by_part_name() in src/slurmctld/job_mgr.c, 20.11 to 26.05). Accounting
has the reason for which the job waited last, so its word proves nothing."""

_PARTITION_GONE = JobState(
    Phase.OVER,
    "ended because its partition is gone",
    is_death=True,
    first_step="{owner} submits it again to another partition (`sinfo` shows them), from its last checkpoint:"
    " its own was taken away by an administrator. No node failed.",
)


INACTIVE = "InactiveLimit"
"""Why slurmctld ended an allocation whose salloc or srun was silent: it ends as TIMEOUT (job_time_limit() in
src/slurmctld/job_mgr.c, 20.11 to 26.11)."""

_SILENT = JobState(
    Phase.OVER,
    "was ended because its salloc or srun did not answer for InactiveLimit",
    is_death=True,
    first_step="See whether the host on which {owner} began it is up. {owner} begins it again, better by sbatch.",
)


def lost_partition(end: JobEnd) -> bool:
    """Whether the job ended because its partition went, so that its nodes are not to blame."""
    word = end.state.partition(" ")[0]
    return word == "NODE_FAIL" and end.reason == PARTITION_DOWN and end.source != "sacct"


def is_node_failure(end: JobEnd) -> bool:
    """Whether the job ended because one of its nodes failed."""
    return end.state.partition(" ")[0] == "NODE_FAIL" and not lost_partition(end)


def end_meaning(end: JobEnd) -> JobState:
    """The meaning of an end. Its state alone may not say it."""
    if end.state == "TIMEOUT" and end.reason == INACTIVE:
        return _SILENT
    return _PARTITION_GONE if lost_partition(end) else state_meaning(end.state)


def find_state_cause(end: JobEnd) -> EndCause | None:
    """Why the job ended, where its state and reason say it."""
    odd = lost_partition(end) or end_meaning(end) is _SILENT
    return "slurm" if odd else END_CAUSES.get(end.state.partition(" ")[0])


END_CAUSES: dict[str, EndCause] = {
    "TIMEOUT": "time_limit",
    "DEADLINE": "time_limit",
    "NODE_FAIL": "node",
    "BOOT_FAIL": "node",
    "OUT_OF_MEMORY": "memory",
    "PREEMPTED": "preemption",
    "CANCELLED": "person",
    REVOKED: "slurm",
}
"""Why a job ended, by its last state, where the state alone says it."""


def state_phase(state: str) -> Phase:
    """The phase of a state word; UNCLEAR if no known Slurm prints the word."""
    return state_meaning(state).phase


def find_unknown_state(jobs: Iterable[Job]) -> str:
    """Describe the first job whose state cannot be judged here: no known Slurm prints its word, or
    another cluster has the job. Empty if there is none."""
    for job in jobs:
        if job.state == REVOKED:
            return f"job {job.id} {AWAY}"
        if job.state not in JOB_STATES:
            return f"job {job.id} is {job.state}, a state that sentinel does not know"
    return ""


def mark_overdue(jobs: Iterable[Job], end_timeout: float, now: float) -> tuple[Job, ...]:
    """The jobs, of which those are marked that are COMPLETING for more than `end_timeout` seconds at
    `now` (epoch seconds). The time at which its end began is not known of every job."""
    return tuple(
        replace(job, overdue=True)
        if job.state == COMPLETING and job.ends is not None and now - job.ends > end_timeout
        else job
        for job in jobs
    )


def is_leader(job: Job) -> bool:
    """Whether the row stands for the whole job. Of a heterogeneous job (`15+0`, `15+1`) that is the
    first part: it has the batch script, and the others come, start and go with it."""
    return job.id.partition("+")[2] in ("", "0")


def uses_nodes(job: Job) -> bool:
    """Whether the job uses its nodes; a flag such as SIGNALING hides the word RUNNING."""
    return state_phase(job.state) is Phase.RUNNING


def is_paused(job: Job) -> bool:
    """Whether the job has its nodes and does nothing. Slurm shows a node as IDLE that has no other
    (_suspend_job_nodes() in src/slurmctld/job_mgr.c, 20.11 to 26.11)."""
    return state_phase(job.state) is Phase.PAUSED


def explain_paused_job(jobs: Iterable[Job]) -> str:
    """Which of these jobs of a node is suspended there, in words. Empty if none is."""
    found = next(filter(is_paused, jobs), None)
    return visible(f"job {found.id} is {found.state} there") if found else ""
