"""What one run gathered; all that the judgement may use."""

from collections.abc import Sequence

from msgspec import Struct

from sentinel.checks.job.memory import Memory
from sentinel.checks.job.queue import Queue
from sentinel.core.clock import Instant
from sentinel.slurm.model import Job


class View(Struct, frozen=True, kw_only=True):
    """The queue, what is remembered, and the answers of the file system.

    `others`: every job that was seen, for dependencies and near misses. `kill_switch` None:
    not configured, not needed or not told; `notes` then say what could not be seen.
    `many`: it is one of those that were found, not one that was named.
    `finished`: what proves the end, "" for nothing. `at_risk`: the work that its death costs.
    `maintenance`: the reservation with the flag MAINT that holds a node of the job that ended last,
    and its end, epoch seconds. `ours`: sentinel itself has cancelled it.
    """

    subject: str
    now: Instant
    queue: Queue
    memory: Memory
    others: Sequence[Job] = ()
    many: bool = False
    kill_switch: bool | None = None
    finished: str = ""
    at_risk: str = ""
    maintenance: tuple[str, int] | None = None
    ours: bool = False
    notes: tuple[str, ...] = ()
