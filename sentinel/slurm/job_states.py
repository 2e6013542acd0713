"""Every state word squeue prints for a job, and what it means for a training.

Words: `job_state_string()` in src/common/slurm_protocol_defs.c, Slurm 20.11 to 26.05, where
the first flag hides the base state; meanings: https://slurm.schedmd.com/job_state_codes.html.
"""

from collections.abc import Iterable
from enum import Enum

from sentinel.slurm.model import Job


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


STATES: dict[str, Phase] = {
    "RUNNING": Phase.RUNNING,
    "RESIZING": Phase.RUNNING,
    "SIGNALING": Phase.RUNNING,
    "CONFIGURING": Phase.STARTING,
    "POWER_UP_NODE": Phase.STARTING,
    "PENDING": Phase.WAITING,
    "REQUEUED": Phase.WAITING,
    "REQUEUED_CRON": Phase.WAITING,
    "REQUEUE_FED": Phase.WAITING,
    "EXPEDITING": Phase.WAITING,
    "REQUEUE_HOLD": Phase.HELD,
    "SPECIAL_EXIT": Phase.HELD,
    "RESV_DEL_HOLD": Phase.HELD,
    "SUSPENDED": Phase.PAUSED,
    "STOPPED": Phase.PAUSED,
    "COMPLETING": Phase.ENDING,
    "STAGE_OUT": Phase.ENDING,
    "REVOKED": Phase.UNCLEAR,  # another cluster of the federation runs it, or has run it
    "COMPLETED": Phase.OVER,
    "CANCELLED": Phase.OVER,
    "FAILED": Phase.OVER,
    "TIMEOUT": Phase.OVER,
    "NODE_FAIL": Phase.OVER,
    "PREEMPTED": Phase.OVER,
    "BOOT_FAIL": Phase.OVER,
    "DEADLINE": Phase.OVER,
    "OUT_OF_MEMORY": Phase.OVER,
    "LAUNCH_FAILED": Phase.OVER,
    "RECONFIG_FAIL": Phase.OVER,
    "UPDATE_DB": Phase.OVER,
}


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


def phase(state: str) -> Phase:
    """The phase of a state word; a word that no Slurm we know prints is unclear."""
    return STATES.get(state, Phase.UNCLEAR)


def strange(jobs: Iterable[Job]) -> str:
    """The first of them of which nobody here can tell what it does: its state is a word that no
    Slurm we know prints, or another cluster has it. Empty where there is none."""
    for job in jobs:
        if job.state == REVOKED:
            return f"job {job.id} {AWAY}"
        if job.state not in STATES:
            return f"job {job.id} is {job.state}, a state that is not known here"
    return ""


def leads(job: Job) -> bool:
    """Whether the row stands for the whole job: of a heterogeneous one (`15+0`, `15+1`) only the
    first part does. It has the batch script, and the others come, start and go with it."""
    return job.id.partition("+")[2] in ("", "0")


def runs(job: Job) -> bool:
    """Whether it uses its nodes; a flag such as SIGNALING hides the word RUNNING."""
    return phase(job.state) is Phase.RUNNING
