"""The settings of an installed chain, and its links as the queue shows them."""

from typing import Literal

from msgspec import Struct, field

from sentinel.core.errors import Invalid
from sentinel.core.guidance import quote_command
from sentinel.slurm.job_states import JOB_STATES, Phase, state_phase
from sentinel.slurm.pending_reasons import explain_job_reason, explain_reason

ChainMode = Literal["chain", "relay", "scrontab", "systemd", "crontab"]
STRAND_LETTERS = "abc"
MIN_INTERVAL_S = 5
"""The smallest number of seconds between slots. slurmctld does not start jobs any faster."""


class Chain(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of what runs in place of cron. They are stored as `chain.json` beside the state.

    `every` is the time between slots in seconds. Slots are multiples of it since 1970, so they
    never drift. Job names begin with `name`. `revision` tells links of this installation from older
    ones. `command` is the command that calls sentinel. `options` are options of sbatch.
    `time_limit` and `handover` are in seconds. If `delivers` is False, messages wait until
    `sentinel deliver` runs elsewhere. `mount` is the mount point of the folder's file system at the
    time of installation, empty if it is not known.
    """

    name: str
    every: int
    command: tuple[str, ...]
    mode: ChainMode = "chain"
    config: str = ""
    strands: int = 3
    time_limit: int = 7200
    handover: int = 600
    options: tuple[str, ...] = ()
    delivers: bool = True
    mount: str = ""
    revision: str = ""
    installed: int = field(default=0)

    def __post_init__(self) -> None:
        if self.every < MIN_INTERVAL_S:
            raise Invalid(f"--every must be {MIN_INTERVAL_S}s or longer", "every")
        if not 1 <= self.strands <= len(STRAND_LETTERS):
            raise Invalid(f"--strands is 1 to {len(STRAND_LETTERS)}", "strands")
        if self.mode == "relay" and self.time_limit <= self.handover:
            raise Invalid("--time must be longer than the hand-over of 10 minutes", "time_limit")

    @property
    def strand_names(self) -> tuple[str, ...]:
        """The job names of the strands. Each is unique to this state of this user."""
        return tuple(f"{self.name}-{letter}" for letter in STRAND_LETTERS[: self.strands])

    @property
    def is_in_slurm(self) -> bool:
        """Whether the links are Slurm jobs that submit one another."""
        return self.mode in ("chain", "relay")

    def command_line(self, verb: str) -> str:
        """The command for the user to type, e.g. `sentinel cron status`, with the configuration
        file of this chain."""
        return quote_command(
            "sentinel", "cron", verb, *(("-c", self.config) if self.config else ())
        )

    def slot_at(self, now: float) -> int:
        """The slot of this moment (epoch seconds)."""
        return int(now) // self.every * self.every

    def strand_of(self, slot: int) -> int:
        """The number of the strand that runs this slot."""
        return slot // self.every % self.strands

    def next_slot(self, strand: int, now: float) -> int:
        """The first slot of this strand after this moment."""
        first = self.slot_at(now) + self.every
        while self.strand_of(first) != strand:
            first += self.every
        return first


class ChainLink(Struct, frozen=True, kw_only=True):
    """A job of the chain.

    `slot` is 0 and `revision` is empty if they are not known. `submitted` and `ends` are epoch
    seconds. `ends` is the end of its time limit, None while it waits.
    """

    job: str
    name: str
    state: str
    reason: str = ""
    partition: str = ""
    slot: int = 0
    revision: str = ""
    submitted: int | None = None
    ends: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it has not started yet."""
        return state_phase(self.state) in (Phase.WAITING, Phase.HELD)

    @property
    def is_unknown(self) -> bool:
        """Whether no known Slurm prints its state."""
        return self.state not in JOB_STATES

    @property
    def is_held(self) -> bool:
        """Whether `scontrol release` would let it start."""
        held = state_phase(self.state) is Phase.HELD
        return held or (self.is_waiting and explain_reason(self.reason).held)

    @property
    def waits_for_time(self) -> bool:
        """Whether it waits only for its start time."""
        return self.is_waiting and self.reason == "BeginTime"

    @property
    def can_never_start(self) -> bool:
        """Whether it can never start as it was submitted, in any of its partitions."""
        return self.is_waiting and explain_job_reason(self.reason, self.partition).never
