"""A chain as it was installed, and its links as the queue shows them."""

from shlex import quote
from typing import Literal

from msgspec import Struct, field

from sentinel.core.errors import Invalid
from sentinel.slurm.job_states import Phase, state_phase
from sentinel.slurm.pending_reasons import explain_reason

ChainMode = Literal["chain", "relay", "scrontab", "systemd", "crontab"]
STRAND_LETTERS = "abc"
MIN_INTERVAL_S = 5
"""Seconds between slots at the least: slurmctld starts jobs no faster."""


class Chain(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What runs in place of cron: kept as `chain.json` beside the state.

    `every` (seconds) separates slots, which are multiples of it since 1970: nothing drifts.
    `name` begins the job names, `revision` tells links of this installation from older ones.
    `command` is sentinel as it is called, `options` are sbatch's. `time_limit` in seconds. Not
    `delivers`: messages wait for `sentinel deliver` elsewhere. `mount` is where the file system of
    the folder was mounted when it was installed, empty where that is not known.
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
        """The job names of its strands, each unique to this state of this user."""
        return tuple(f"{self.name}-{letter}" for letter in STRAND_LETTERS[: self.strands])

    @property
    def is_in_slurm(self) -> bool:
        """Whether its links are jobs that submit one another."""
        return self.mode in ("chain", "relay")

    def command_line(self, verb: str) -> str:
        """What to type about it: `sentinel cron status`, with the file that it was installed with."""
        return f"sentinel cron {verb}" + (f" -c {quote(self.config)}" if self.config else "")

    def slot_at(self, now: float) -> int:
        """The slot that this moment (epoch seconds) belongs to."""
        return int(now) // self.every * self.every

    def strand_of(self, slot: int) -> int:
        """Whose turn a slot is."""
        return slot // self.every % self.strands

    def next_slot(self, strand: int, now: float) -> int:
        """The first slot of a strand after this moment."""
        first = self.slot_at(now) + self.every
        while self.strand_of(first) != strand:
            first += self.every
        return first


class ChainLink(Struct, frozen=True, kw_only=True):
    """A job of the chain. `slot` and `revision` are 0 and empty where its comment says nothing;
    `ends` (epoch seconds) is when its time limit is over, None while it waits."""

    job: str
    name: str
    state: str
    reason: str = ""
    slot: int = 0
    revision: str = ""
    ends: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it has still to run."""
        return state_phase(self.state) in (Phase.WAITING, Phase.HELD)

    @property
    def is_held(self) -> bool:
        """Whether `scontrol release` lets it go."""
        return self.is_waiting and explain_reason(self.reason).held

    @property
    def waits_for_time(self) -> bool:
        """Whether nothing but the time that it was given holds it up."""
        return self.is_waiting and self.reason == "BeginTime"

    @property
    def can_never_start(self) -> bool:
        """Whether it can never start as it was submitted."""
        return self.is_waiting and explain_reason(self.reason).never
