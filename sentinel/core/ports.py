"""The ports of the core as protocols, which the outer packages implement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:  # a command that runs once does not need these
    from datetime import tzinfo

    from sentinel.core.actions import (
        ActionHistory,
        ActionRecord,
        ActionSwitch,
        GuardDecision,
        NodeReading,
        Reply,
    )
    from sentinel.core.clock import Instant
    from sentinel.core.cluster import (
        Controller,
        Job,
        JobEnd,
        JobPast,
        Node,
        Reservation,
        Submission,
        Timeouts,
    )
    from sentinel.core.gpu_ledger import GpuLedger
    from sentinel.core.node_answers import Answer, Remote


class Clock(Protocol):
    """The only source of the present time."""

    def now(self) -> Instant: ...


class Slurm(Protocol):
    """One view of Slurm for all checks of a pass. Every method raises CannotTell if Slurm does not
    answer."""

    def jobs(self) -> Sequence[Job]:
        """Pending, running, suspended and completing jobs of the given users."""

    def gpus(self) -> Mapping[str, int | None]:
        """The number of GPUs of these jobs, by `job_id`. This is another question to Slurm, so a job
        may have ended between the two."""

    def sluids(self) -> Mapping[str, str]:
        """Job ids by SLUID, for all jobs that Slurm remembers; empty before Slurm 25.11."""

    def nodes(self) -> Sequence[Node]:
        """Every node Slurm knows."""

    def job_end(self, job_id: str) -> JobEnd | None:
        """How a job that left the queue ended; None if nothing remembers it."""

    def past(
        self,
        job_ids: Collection[str],
        names: Collection[str],
        since: float,
        *,
        failed_within: float = 0.0,
    ) -> JobPast:
        """Ask again about jobs: slurmctld's jobs, ended or not, later than `jobs()`. If slurmctld
        has none, also accounting's runs of these ids, and of these names in the last `since`
        seconds.

        If slurmctld remembers jobs for less than `failed_within` seconds, accounting is asked for
        all jobs that failed in that time.
        """

    def controller(self) -> Controller:
        """Whether slurmctld and its backups answer, and how fast; never cached."""

    def timeouts(self) -> Timeouts:
        """How long nodes may take to wake and to go to sleep."""

    def reservations(self) -> Sequence[Reservation]:
        """All reservations, future ones too."""

    def private(self) -> Collection[str]:
        """What Slurm hides from ordinary users: the words of PrivateData in slurm.conf."""

    def partitions(self) -> Mapping[str, int]:
        """The number of nodes of each partition, also if it is 0."""

    def partition_states(self) -> Mapping[str, str]:
        """The state of each partition, as Slurm writes it: UP, DOWN, DRAIN, INACTIVE."""

    def topology(self) -> Mapping[str, str]:
        """Leaf switches or blocks with their nodes as host lists. Empty if Slurm has none."""

    def submission(self, job_id: str) -> Submission | None:
        """How a job was submitted, ended or not; None if slurmctld does not remember it."""


class NodeListing(Protocol):
    """The nodes, with the time of the answer, for the ledger."""

    def nodes(self) -> Sequence[Node]:
        """See `Slurm`."""

    def nodes_asked(self) -> Instant | None:
        """When Slurm was asked for the nodes of the last answer. None: now."""


class Calendar(Protocol):
    """Slurm's plans. Every method raises CannotTell if Slurm does not answer."""

    def reservations(self) -> Sequence[Reservation]:
        """All reservations, future ones too."""

    def nodes(self) -> Sequence[Node]:
        """See `Slurm`."""


class Logbook(Protocol):
    """Reads the actions on nodes, and the reasons that nodes had: the reading half of
    `AuditLog`."""

    def records(self, target: str = "", limit: int = 100) -> Sequence[ActionRecord]:
        """Records of actions, the newest first; those of one target if it is given."""

    def readings(self, node: str, limit: int = 100) -> Sequence[NodeReading]:
        """Lines of the ledger about a node, the newest first."""


class Context(Struct, kw_only=True):
    """All that a check may use while it runs: ports and its memory, nothing global.

    limit: Seconds that the whole run may take.
    memory: What its last Report stored.
    one_shot: There is no state; judge by this look alone.
    remote: The way to nodes; None: there is none.
    logbook: History of nodes; None without a state.
    gpus: The ledger of GPUs; None without one.
    due: False in a run in between: one more of the same pass, or one of a kind with FOLLOW whose
        `cron` has not come.
    told: When somebody was last told of a subject that is in trouble, by subject.
    for_: The seconds of `for` in the file.
    every: The seconds between two runs; None: it runs by a calendar, or only once.
    zone: Time zone for people; None: the host's.
    """

    name: str  # Name of the check.
    now: Instant  # When the run began.
    limit: float
    slurm: Slurm  # Slurm's answers. All checks of the pass share one snapshot.
    memory: Mapping[str, Any] = {}
    one_shot: bool = False
    history: Callable[[str, str, float], Sequence[tuple[Instant, float]]] = lambda *_: ()
    """Past samples of (subject, name), for this many seconds."""
    remote: Remote | None = None
    logbook: Logbook | None = None
    gpus: GpuLedger | None = None
    due: bool = True
    told: Mapping[str, Instant] = {}
    for_: float | None = None
    every: float | None = None
    zone: tzinfo | None = None


class Pulse(Protocol):
    """A dead man's switch outside of this host. Raises ChannelError if it cannot be reached."""

    async def announce_start(self) -> None:
        """Report that a pass begins, if the switch supports that."""

    async def send_heartbeat(self, well: bool, text: str) -> None:
        """Send the heartbeat. If something is wrong and the service takes it, report that instead."""


class View(Protocol):
    """The node that an action is about. Raises CannotTell if Slurm does not answer."""

    def node(self, name: str) -> Node | None:
        """The node; None if Slurm does not know that name."""


class Hands(View, Protocol):
    """Changes Slurm. `node` asks Slurm each time; the other methods are as in `Slurm`."""

    def nodes(self, after: Instant | None = None) -> Sequence[Node]:
        """Every node that Slurm knows, in this pass; the answer was not asked for before
        `after`."""

    def controller(self) -> Controller:
        """Whether slurmctld answers now."""

    def change(self, argv: Sequence[str]) -> Reply:
        """Run one command of Slurm that changes something; never raises."""

    def jobs_on(self, node: str) -> Sequence[Job]:
        """The jobs that Slurm has on a node, completing ones too. Slurm is asked each time."""

    def waiting(self) -> Sequence[Job]:
        """All users' pending jobs. Slurm is asked each time. Raises CannotTell if not all may be
        seen."""

    def reservations(self) -> Sequence[Reservation]:
        """All reservations, future ones too. Slurm is asked each time."""

    def ask_node(self, node: str, argv: Sequence[str], stdin: bytes = b"") -> Answer:
        """Run one command on a node. NotAsked if there is no way to nodes."""

    def log_end(self) -> str:
        """The position where slurmctld's log ends now, for `log_since`. Raises CannotTell if the
        log cannot be read."""

    def log_since(self, end: str) -> str:
        """What slurmctld logged after `end`, which `log_end` returned. Raises CannotTell if the log
        cannot be read or was rotated."""

    def author(self, node: str, reason: str) -> str:
        """The user who gave the node this reason a moment ago, by accounting; empty if accounting
        does not say."""


class JobView(View, Protocol):
    """The job that an action is about. Slurm is asked each time. Raises CannotTell if it does not
    answer."""

    def jobs(self, job_id: str) -> Sequence[Job]:
        """The rows that Slurm has of the job, ended or not, one for each element of an array that
        it lists."""

    def submitted_since(self, name: str, since: float, job_id: str) -> Sequence[str] | None:
        """The ids of jobs of sentinel's own user with this name that were submitted at `since` (epoch
        seconds) or later, ended or not, and not before the job `job_id`, which is none of them. None
        if Slurm may have forgotten them and has no accounting."""

    def size(self, path: str, user: str) -> int | None:
        """Bytes of a file of that user's job; None if there is no file."""

    def tail(self, path: str, size: int, user: str) -> str:
        """The last `size` bytes of a log of that user's job, as text (core.logtext)."""


class JobHands(JobView, Hands, Protocol):
    """Changes jobs. The methods return what happened, and never raise."""

    def evidence(self, job_id: str) -> Reply:
        """Take the stacks of all ranks of the job and keep them. The reply says what was found, and
        where it is."""

    def create(self, path: str, line: str, user: str, *, literal: bool) -> Reply:
        """Create a file of one line for a job of that user; an existing file is never replaced.
        `literal`: no name of a job is part of the path."""


class AuditLog(Logbook, Protocol):
    """The audit log of actions and the ledger of nodes.

    Services and commands by hand write them alike: no leadership is needed, each method is one
    transaction, and those of several processes come one after another. Raises StoreError.
    """

    def read_past_actions(self, target: str) -> ActionHistory:
        """The stored facts by which a request about this target is judged."""

    def record_intent(
        self, target: str, decide: Callable[[ActionHistory], GuardDecision]
    ) -> GuardDecision:
        """Decide and write in one transaction, so that nobody else can decide at the same time."""

    def record_outcome(self, record: ActionRecord) -> bool:
        """Replace an open record of the same id. Returns False, and writes nothing, if there is
        none."""

    def read_unresolved(self) -> list[ActionRecord]:
        """Every open record, the oldest first."""

    def record_readings(
        self, nodes: Sequence[Node], now: Instant, *, whole: bool = True
    ) -> list[NodeReading]:
        """Add what is new about these nodes to the ledger, and return it. `whole`: they are all
        nodes. `now`: when Slurm was asked for them."""

    def set_switch(self, name: str, switch: ActionSwitch | None) -> None:
        """Set a switch (maintenance, breaker), or remove it with None."""

    def prune(self, now: Instant) -> None:
        """Forget records that are older than the state keeps, but never those on which caps may
        depend."""

    def close(self) -> None: ...
