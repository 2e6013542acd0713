"""The ledger of runs: what a training did with the GPUs that it held, as checks saw it."""

from typing import Literal

from msgspec import Struct

LedgerKind = Literal[
    "held",
    "steps",
    "startup",
    "checkpoint",
    "evaluation",
    "hung",
    "crashed",
    "idle",
    "blind",
    "saved",
    "queued",
    "maintenance",
]
"""held: a job had GPUs. steps: it made steps. saved: a checkpoint was complete. The others say what
else the time was spent on."""

InterruptionCause = Literal[
    "gpu",
    "memory",
    "network",
    "node",
    "file_system",
    "software",
    "person",
    "preemption",
    "slurm",
    "unknown",
]
"""The causes of interruptions, as in table 5 of the Llama 3 paper, with those that Slurm adds."""

StripClass = Literal["steps", "slow", "lost", "hung", "down", "queued", "blind"]
"""What a moment of a run was, at a glance."""

EndCause = Literal["", "completed", "time_limit", InterruptionCause]
"""How a job ended. Empty: it runs, or nobody knows yet that it ended."""


class LedgerRow(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One span of one run. Times are µs UTC. A row with the same key replaces it if it
    `supersedes` it."""

    run: str  # The name of the training.
    kind: LedgerKind
    began: int
    ended: int
    job: str = ""  # The id of the job.
    attempt: int = 0  # When this start of the job began, epoch seconds.
    gpus: int = 0  # How many GPUs the job held. Only in rows of the kind `held`.
    nodes: str = ""  # Host list of its nodes, or of those that failed.
    submitted: int | None = None  # When the job was submitted, epoch seconds.
    cause: EndCause = ""  # How the job ended, or why it stood still.
    first_step: float | None = None  # The step at the beginning.
    last_step: float | None = None  # The step at the end. Of a checkpoint: the number in its name.
    checkpoint_us: int = 0  # Time within it that was spent on saving checkpoints.
    evaluation_us: int = 0  # Time within it that was spent on evaluation.
    noticed: int | None = None  # When sentinel called it hung.
    acted: int | None = None  # When somebody, or sentinel, did something about it.
    cluster: str = ""  # The name of the cluster. The pipeline sets it.

    @property
    def is_end(self) -> bool:
        """Whether it says how a job ended."""
        return self.kind == "held" and self.cause != ""

    def supersedes(self, before: "LedgerRow") -> bool:
        """Whether it replaces an earlier row with its key. A row that an older pass writes once more,
        as from a journal, changes nothing. The end of a job counts whatever was written before: the
        clock may have been ahead then."""
        return self.is_end or self.ended >= before.ended

    @property
    def unique_parts(self) -> tuple[str, ...]:
        """What names the row among all others."""
        place = (self.job, str(self.attempt)) if self.job else ("", "")
        # A job has one row of this kind, whoever saw it first.
        began = "" if self.kind == "held" else str(self.began)
        return (self.cluster, self.run, self.kind, *place, began)
