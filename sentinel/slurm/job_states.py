"""Every state word squeue prints for a job, and what it means for a training.

Words: `job_state_string()` in src/common/slurm_protocol_defs.c, Slurm 20.11 to 26.11 (release
candidate), where the first flag hides the base state; meanings: https://slurm.schedmd.com/job_state_codes.html.
"""

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct

from sentinel.core.cluster import Job


class Phase(str, Enum):
    """Where a job stands."""

    RUNNING = "running"
    STARTING = "starting"  # it has its nodes, they are not ready yet
    WAITING = "waiting"  # why, says its reason
    HELD = "held"  # only a person lets it go
    PAUSED = "paused"  # it has its nodes and does nothing
    ENDING = "ending"  # how it ended is not shown yet
    OVER = "over"
    UNCLEAR = "unclear"


class JobState(Struct, frozen=True):
    """All that anybody asks of a state word.

    `words`: how a message says that a job ended so, empty where it is no end. `is_death`: an end
    that no plan of the job's owner is, so it is told at once. `may_resubmit`: the same job may do
    well when it is submitted again.
    """

    phase: Phase
    words: str = ""
    is_death: bool = False
    may_resubmit: bool = False


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
    # Another cluster of the federation runs it, or has run it.
    "REVOKED": JobState(Phase.UNCLEAR),
    "COMPLETED": JobState(Phase.OVER, "ended by itself"),
    "CANCELLED": JobState(Phase.OVER, "was cancelled"),
    "PREEMPTED": JobState(Phase.OVER, "was preempted"),
    "UPDATE_DB": JobState(Phase.OVER, "ended while its record was changed"),
    "FAILED": JobState(Phase.OVER, "FAILED", True, True),
    "TIMEOUT": JobState(Phase.OVER, "reached its time limit", True, True),
    "NODE_FAIL": JobState(Phase.OVER, "lost a node", True, True),
    "OUT_OF_MEMORY": JobState(Phase.OVER, "ran out of memory", True),
    "BOOT_FAIL": JobState(Phase.OVER, "got nodes that did not boot", True),
    "DEADLINE": JobState(Phase.OVER, "missed its deadline", True),
    "LAUNCH_FAILED": JobState(Phase.OVER, "could not be launched", True),
    "RECONFIG_FAIL": JobState(Phase.OVER, "got nodes that could not be reconfigured", True),
}
"""In words of several at once (`COMPLETING,FAILED`) the first counts, as squeue has it."""

_UNKNOWN = JobState(Phase.UNCLEAR)


REVOKED = "REVOKED"
AWAY = (
    "is REVOKED: it went to another cluster of the federation, which alone knows what it does (`squeue"
    " --federation` says which); watch it by a check with `cluster`"
)
"""Seen on 22.05: the cluster where it was submitted lists it as REVOKED while another one runs it, and
goes on to say so once that has ended (fed_mgr.c)."""

EXPEDITED = 600.0
"""Seconds after which a job in EXPEDITING needs a person. With `sbatch --requeue=expedite` (25.11)
it goes before all others the moment the epilogs on its nodes have ended: one that waits for
longer has a node that is drained, or whose epilog hangs (batch_requeue_fini() in
src/slurmctld/job_mgr.c, make_node_idle() in node_mgr.c)."""


def state_meaning(state: str) -> JobState:
    """What a state word means, also in the form of accounting (`CANCELLED by 1000`). A word that
    no Slurm we know prints is unclear, no death, and nothing is done for it."""
    return JOB_STATES.get(state.partition(" ")[0], _UNKNOWN)


def state_phase(state: str) -> Phase:
    """The phase of a state word; a word that no Slurm we know prints is unclear."""
    return state_meaning(state).phase


def find_unknown_state(jobs: Iterable[Job]) -> str:
    """The first of them of which nobody here can tell what it does: its state is a word that no
    Slurm we know prints, or another cluster has it. Empty where there is none."""
    for job in jobs:
        if job.state == REVOKED:
            return f"job {job.id} {AWAY}"
        if job.state not in JOB_STATES:
            return f"job {job.id} is {job.state}, a state that is not known here"
    return ""


def is_leader(job: Job) -> bool:
    """Whether the row stands for the whole job: of a heterogeneous one (`15+0`, `15+1`) only the
    first part does. It has the batch script, and the others come, start and go with it."""
    return job.id.partition("+")[2] in ("", "0")


def uses_nodes(job: Job) -> bool:
    """Whether it uses its nodes; a flag such as SIGNALING hides the word RUNNING."""
    return state_phase(job.state) is Phase.RUNNING
