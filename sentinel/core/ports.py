"""What the core asks of the world, as protocols; the edges implement them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:  # a one-shot needs none of these here
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
    """The only source of the present."""

    def now(self) -> Instant: ...


class Slurm(Protocol):
    """One view of Slurm for all checks of a pass; every method raises CannotTell when blind."""

    def jobs(self) -> Sequence[Job]:
        """Pending, running, suspended and completing jobs of the users asked for."""

    def gpus(self) -> Mapping[str, int]:
        """The GPUs of these jobs by `job_id`; a further question to Slurm."""

    def sluids(self) -> Mapping[str, str]:
        """Job ids by SLUID, of all jobs that are remembered; none before Slurm 25.11."""

    def nodes(self) -> Sequence[Node]:
        """Every node Slurm knows."""

    def job_end(self, job_id: str) -> JobEnd | None:
        """How a job that left the queue ended; None when nothing remembers it."""

    def past(self, job_ids: Collection[str], names: Collection[str], since: float) -> JobPast:
        """A second look: what slurmctld has of all jobs, over or not, asked after `jobs()`; and
        what accounting has of these ids, and of these names in the last `since` seconds, where
        slurmctld has nothing."""

    def controller(self) -> Controller:
        """Whether slurmctld (and its backup) answers, and how fast; never cached."""

    def timeouts(self) -> Timeouts:
        """How long nodes may take to wake and to go to sleep."""

    def reservations(self) -> Sequence[Reservation]:
        """All reservations, those to come too."""

    def partitions(self) -> Mapping[str, int]:
        """How many nodes each partition has, one that is empty too."""

    def topology(self) -> Mapping[str, str]:
        """Leaf switches or blocks with their nodes as hostlists; empty where Slurm has none."""

    def submission(self, job_id: str) -> Submission | None:
        """How a job was submitted, over or not; None when slurmctld does not remember it."""


class NodeListing(Protocol):
    """The nodes with the age of the answer: for the ledger."""

    def nodes(self) -> Sequence[Node]:
        """As in `Slurm`."""

    def nodes_asked(self) -> Instant | None:
        """When the nodes of the last answer were asked for; None where that is this moment."""


class Calendar(Protocol):
    """What Slurm has planned; every method raises CannotTell when blind."""

    def reservations(self) -> Sequence[Reservation]:
        """All reservations, those to come too."""

    def nodes(self) -> Sequence[Node]:
        """As in `Slurm`."""


class Logbook(Protocol):
    """What was done to nodes, and which reasons they had: the reading half of `AuditLog`."""

    def records(self, target: str = "", limit: int = 100) -> Sequence[ActionRecord]:
        """The newest records first; of one target where it is given."""

    def readings(self, node: str, limit: int = 100) -> Sequence[NodeReading]:
        """The newest lines of the ledger about a node first."""


class Context(Struct, kw_only=True):
    """What a check may use while it runs: ports and what it remembered, nothing global.

    `limit`: seconds the whole run may take. `memory`: what its last Report stored.
    `one_shot`: no state exists and none is kept; judge from what is seen now.
    `remote`: the way to nodes, None where there is none; `logbook`: None without a state;
    `gpus`: the ledger of GPUs, None without one. `due` false: a run in between: one more
    of the same pass, or one of a kind with FOLLOW, whose own time (`cron`) has not come.
    `told`: when somebody was last told of a subject that is in trouble, by subject. `for_`: the
    seconds of `for` in the file. `zone`: of the times that people read; None: the host's.
    """

    name: str
    now: Instant
    limit: float
    slurm: Slurm
    memory: Mapping[str, Any] = {}
    one_shot: bool = False
    history: Callable[[str, str, float], Sequence[tuple[Instant, float]]] = lambda *_: ()
    remote: Remote | None = None
    logbook: Logbook | None = None
    gpus: GpuLedger | None = None
    due: bool = True
    told: Mapping[str, Instant] = {}
    for_: float | None = None
    zone: tzinfo | None = None


class Pulse(Protocol):
    """The dead man's switch outside. Raises ChannelError when it was not reached."""

    async def announce_start(self) -> None:
        """Say that a pass begins, where that can be said."""

    async def send_heartbeat(self, well: bool, text: str) -> None:
        """Say that all is well, or where it can be said what is not."""


class View(Protocol):
    """How an action sees its target; raises CannotTell when blind."""

    def node(self, name: str) -> Node | None:
        """The node, or None where Slurm knows none of that name."""


class Hands(View, Protocol):
    """Changing Slurm. `node` asks anew each time; the rest is as in `Slurm`."""

    def nodes(self, after: Instant | None = None) -> Sequence[Node]:
        """Every node Slurm knows, as of this pass; not asked before `after`."""

    def controller(self) -> Controller:
        """Whether slurmctld answers now."""

    def change(self, argv: Sequence[str]) -> Reply:
        """Run one command of Slurm that changes something; never raises."""

    def jobs_on(self, node: str) -> Sequence[Job]:
        """The jobs that Slurm has on a node, completing ones too; asked anew."""

    def waiting(self) -> Sequence[Job]:
        """Everybody's pending jobs; asked anew. CannotTell where not all may be seen."""

    def reservations(self) -> Sequence[Reservation]:
        """All reservations, those to come too; asked anew."""

    def ask_node(self, node: str, argv: Sequence[str], stdin: bytes = b"") -> Answer:
        """Run one command on a node; NotAsked where there is no way to nodes."""

    def log_end(self) -> str:
        """Where slurmctld's log ends now, for `log_since`; CannotTell where it cannot be read."""

    def log_since(self, end: str) -> str:
        """What slurmctld logged since; CannotTell."""

    def author(self, node: str, reason: str) -> str:
        """Who gave the node this reason a moment ago, by accounting; empty where that is silent."""


class JobView(View, Protocol):
    """How an action on a job sees it, asked anew each time; raises CannotTell when blind."""

    def jobs(self, job_id: str) -> Sequence[Job]:
        """What Slurm has of it, ended or not, a row for each element of an array it lists."""

    def size(self, path: str, user: str) -> int | None:
        """Bytes of a file of that user's job; None where nothing is."""

    def tail(self, path: str, size: int, user: str) -> str:
        """The last bytes of a log of that user's job as text (core.logtext)."""


class JobHands(JobView, Hands, Protocol):
    """Changing jobs; what these return says what became of it, they never raise."""

    def evidence(self, job_id: str) -> Reply:
        """Take the stacks of all its ranks and keep them: what was found, and where it is."""

    def create(self, path: str, line: str, user: str) -> Reply:
        """Make a file of one line where nothing is, for a job of that user."""


class AuditLog(Logbook, Protocol):
    """The audit log of actions and the ledger of nodes.

    Services and commands by hand write them alike: no leadership is needed, each method is one
    transaction, and those of several processes come one after another. Raises StoreError.
    """

    def read_past_actions(self, target: str) -> ActionHistory:
        """What a request about this target is judged by."""

    def record_intent(
        self, target: str, decide: Callable[[ActionHistory], GuardDecision]
    ) -> GuardDecision:
        """Decide and write in one transaction: nobody else can decide at the same time."""

    def record_outcome(self, record: ActionRecord) -> bool:
        """Replace an open record of the same id; False, and nothing is written, if none is."""

    def read_unresolved(self) -> list[ActionRecord]:
        """Every open record, the oldest first."""

    def record_readings(
        self, nodes: Sequence[Node], now: Instant, *, whole: bool = True
    ) -> list[NodeReading]:
        """Add to the ledger what is new about these nodes (`whole`: all there are), which were asked
        for `now`; returns it."""

    def set_switch(self, name: str, switch: ActionSwitch | None) -> None:
        """Throw a switch (maintenance, breaker), or with None undo it."""

    def prune(self, now: Instant) -> None:
        """Forget what is older than the state keeps; never what caps may rest on."""

    def close(self) -> None: ...
