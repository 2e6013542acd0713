"""One row of the table of pending reasons: the meaning of a reason that Slurm gives for a waiting
job."""

from enum import Enum

from msgspec import Struct

DAY_S = 86400.0


class ReasonEnd(str, Enum):
    """What has to happen before a job with this reason can start."""

    ITSELF = "itself"
    PERSON = "person"
    UNKNOWN = "unknown"


class PendingReason(Struct, frozen=True):
    """One reason: its name or text, who can end it, and its meaning for a person.

    `patience`: after this many seconds, it no longer counts as ending by itself. None: it always
    does. `held`: `scontrol release` lets the job start. `never`: the job can never start as it was
    submitted. `needs_nodes`: another node may let it start sooner. `shared`: it waits for others of
    its account. If none of them runs for a day, it may ask for more than the whole limit.
    `one_partition`: if the job has several partitions, the reason is about one of them.
    """

    code: str
    ends: ReasonEnd
    meaning: str
    patience: float | None = None
    held: bool = False
    never: bool = False
    needs_nodes: bool = True
    shared: bool = False
    one_partition: bool = False
