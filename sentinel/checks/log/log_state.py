"""What a check remembers of one log, and what it observes of it now."""

from collections.abc import Mapping

from msgspec import Struct

from sentinel.checks.log.file_offset import FileStat, ReadPosition
from sentinel.checks.log.joined_ranks import JoinedRanks
from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.progress_speed import ProgressSpeed
from sentinel.checks.log.recognition import LogRecognition
from sentinel.checks.log.rows import RowKind
from sentinel.checks.log.scan import LogEvent
from sentinel.checks.log.wish_number import WishNumber
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job
from sentinel.user_files.whose import Whose

GROWTH_NAME = ""
"""The name under which the growth of a log without `progress` is stored."""


class ProgressMark(Struct, frozen=True, kw_only=True):
    """A number that has to advance."""

    value: float  # The number.
    since: Instant  # Since when it has this value.
    moves: int = 0  # How often it has moved.
    grain: float = 0.0  # How far it moved the last time.
    jump: float = 0.0  # The farthest recent jump from one run to the next.


class OpenPhase(Struct, frozen=True, kw_only=True):
    """A phase that has begun and not ended. `advances` counts the advances of a number since then."""

    name: str  # Name of the phase.
    since: Instant  # When it began.
    advances: int = 0


class WishState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is remembered about a wish about one run of a job. It says nothing about another pattern.

    since: Since when the number has this value, or the pattern is watched.
    stale: When the author's limit was passed; None: it is not.
    paused: When the pattern had used up its author's time.
    refused: Why the pattern cannot be used.
    """

    pattern: str = ""  # The pattern of the wish.
    value: float | None = None  # The last number.
    since: Instant
    stale: Instant | None = None
    paused: Instant | None = None
    refused: str = ""


class LogState(Struct, frozen=True, kw_only=True):
    """The memory of the log of one run of a job. A requeued job has another `started`, because the
    former log says nothing about it.

    started: When the run started.
    looked: When the log was last seen.
    spacing: The usual number of seconds between two runs of the check.
    grown: When the file last changed.
    steady: Since when every attempt to read it has succeeded.
    settled: Advances since the last error.
    asked: When actions were last requested.
    nodes: Where the job runs, as Slurm lists the nodes.
    reading: The trainer and number of the log, if they are found out.
    done: Whether the trainer has said that it is done.
    wish: What is remembered of its owner's own wish.
    rows: The kinds of its rows that carry a number.
    counts: The highest count of each other total since the number moved, by kind; of the last MAX_KINDS.
    """

    path: str  # Path of the log, maybe a pattern.
    first: Instant  # When it was first read.
    looked: Instant
    grown: Instant
    started: int | None = None
    spacing: float = 60.0
    places: dict[str, ReadPosition] = {}  # Where reading stopped, by file.
    marks: dict[str, ProgressMark] = {}  # Each number that has to advance, by name.
    phase: OpenPhase | None = None  # The phase that is open.
    world: JoinedRanks = JoinedRanks()  # Ranks that have announced themselves.
    ready: bool = False  # Whether the log says that all ranks have joined.
    losses: dict[str, int] = {}  # Losses that were bad in a row, by name.
    troubles: tuple[LogTrouble, ...] = ()  # Errors that count.
    troubled: Instant | None = None  # When the last error was seen.
    settled: int = 0
    speed: ProgressSpeed | None = None  # Speed of the number.
    asked: Instant | None = None
    steady: Instant | None = None
    nodes: str = ""
    reading: LogRecognition | None = None
    done: bool = False
    wish: WishState | None = None
    rows: dict[str, RowKind] = {}
    counts: dict[str, float] = {}

    @property
    def has_advanced(self) -> bool:
        """Whether it was ever seen to advance."""
        return any(mark.moves for mark in self.marks.values())

    @property
    def step(self) -> float | None:
        """The first number that has to advance. None if only the file has to grow."""
        return next((m.value for name, m in self.marks.items() if name != GROWTH_NAME), None)

    @property
    def run_key(self) -> str:
        """Identifies this run of the job among others of its name."""
        return str(self.started or "")

    @property
    def size_bytes(self) -> int:
        """Bytes when it was last seen. -1 if it never was."""
        return sum(p.size for p in self.places.values()) if self.places else -1


class LogObservation(Struct, frozen=True, kw_only=True):
    """The observation of one log in this run.

    path: As it is remembered. It may be a pattern.
    meant: Its files.
    looks: The files as they were found. Empty if there is none.
    error: Why nothing could be seen.
    unread: Why a file was found, but could not be read.
    whose: With whose rights it was read.
    cut_lines: How many new lines were too long to be read whole.
    metrics: Those of `looks` that are files of metrics, and no text for people.
    """

    path: str
    at: Instant  # When it was observed.
    job: Job | None = None  # The job whose log it is.
    meant: tuple[str, ...] = ()
    looks: Mapping[str, FileStat] = {}
    places: Mapping[str, ReadPosition] = {}  # Where reading stopped this time, by file.
    events: tuple[LogEvent, ...] = ()  # The events in the new lines.
    error: str = ""
    unread: str = ""
    whose: Whose = Whose(literal=True)
    cut_lines: int = 0
    metrics: tuple[str, ...] = ()
    reading: LogRecognition | None = None  # The format that was recognised.
    wished: WishNumber = WishNumber()  # What the owner's own pattern found.

    @property
    def shown_path(self) -> str:
        """The path for people: the file itself. If there are several files or none, the pattern."""
        return next(iter(self.texts)) if len(self.texts) == 1 else self.path

    @property
    def texts(self) -> dict[str, FileStat]:
        """The files that hold lines for people."""
        return {path: look for path, look in self.looks.items() if path not in self.metrics}

    @property
    def job_age_s(self) -> float:
        """Seconds since the job started. Infinite without a job."""
        started = self.job.started if self.job else None
        return float("inf") if started is None else max(0.0, self.at.wall / SECOND - started)

    @property
    def size_bytes(self) -> int | None:
        """Bytes of all its files. None if there are none."""
        return sum(look.size for look in self.looks.values()) if self.looks else None

    @property
    def modified_at_s(self) -> float:
        """When the newest of its files was written, by the file server's clock."""
        return max((look.mtime for look in self.looks.values()), default=0.0)
