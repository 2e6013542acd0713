"""The facts that one run gathered. The judgement uses nothing else."""

from collections.abc import Sequence
from datetime import tzinfo

from msgspec import Struct

from sentinel.checks.job.memory import EndedRun, Memory
from sentinel.checks.job.queue import JobQueue
from sentinel.core.clock import Instant
from sentinel.core.cluster import Job


class TrainingView(Struct, frozen=True, kw_only=True):
    """The facts about one training.

    others: Every job that was seen, to find dependencies and similar names.
    kill_switch: None if it is not configured, not needed or not known.
    notes: What could not be seen.
    ended: Runs of its user that are over, of all trainings of the check.
    many: The training was found by a pattern, not named.
    finished: The proof that it has finished. Empty if there is none.
    at_risk: The work that its death costs.
    maintenance: The MAINT reservation on a node of the last job. Empty if there is none.
    ours: sentinel itself has cancelled it.
    for_: Seconds of the setting `for`.
    zone: Time zone for people. None means that of the host.
    slurm_clusters: The value of SLURM_CLUSTERS here, which is not followed.
    reader: The user who runs sentinel. This user must not run commands for another user's job.
    """

    subject: str  # What the alert is about.
    now: Instant  # When it was checked.
    queue: JobQueue  # Its jobs in the queue.
    memory: Memory  # What is remembered.
    others: Sequence[Job] = ()
    many: bool = False
    kill_switch: bool | None = None
    finished: str = ""
    at_risk: str = ""
    maintenance: str = ""
    ours: bool = False
    for_: float | None = None
    zone: tzinfo | None = None
    slurm_clusters: str = ""
    reader: str = ""
    notes: tuple[str, ...] = ()
    ended: tuple[EndedRun, ...] = ()
