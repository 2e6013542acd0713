"""The nouns of sentinel, as plain immutable data."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import force_setattr, replace

from sentinel.core.clock import Instant
from sentinel.core.guidance import (
    NO_GUIDANCE,
    ActingCommand,
    Guidance,
    LookingCommand,
    read_plain_command,
)
from sentinel.core.holds import Held, MessageGroup
from sentinel.core.letters import Letter
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.shown import SubjectCells
from sentinel.core.text import shortened, visible

Value = float | int | str | bool | None


class Status(str, Enum):
    """The three answers: good, bad (in two degrees), and not known."""

    OK = "ok"
    WARNING = "warning"
    UNKNOWN = "unknown"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """The order: critical > unknown > warning > ok, as in Nagios plugins."""
        return _STATUS_RANKS[self]

    @property
    def bad(self) -> bool:
        """Whether a problem was seen. Unknown does not count, because nothing was seen."""
        return self in (Status.WARNING, Status.CRITICAL)


_STATUS_RANKS = {Status.OK: 0, Status.WARNING: 1, Status.UNKNOWN: 2, Status.CRITICAL: 3}


def get_worst_status(statuses: Iterable[Status]) -> Status:
    """The worst of several statuses; OK if there are none."""
    return max(statuses, key=lambda s: s.rank, default=Status.OK)


class Key(Struct, frozen=True, order=True):
    """What an alert is about. Measured values and job ids are never part of it."""

    cluster: str  # Name of the cluster.
    check: str  # Name of the check in the file.
    subject: str = ""  # The path, node or training. Empty: the check itself.


class Death(Struct, frozen=True, kw_only=True):
    """A run of a job that ended badly: no preemption, and no cancellation by its owner.

    due: From when on it is told by itself, in epoch seconds. Later than its end if a launcher is
        known to submit the next job by then.
    told: When people were told. None: not yet.
    line: The command that submitted it; empty if it is not known.
    last_lines: The last lines of its output, as far as they could be read.
    """

    job: str  # Id of the job, or of its array.
    started: int | None  # When this run started, epoch seconds.
    ended: int | None  # When it ended, epoch seconds.
    end: str  # Its state in Slurm, as `FAILED`. Empty if its end is not known.
    exit: int | None  # Its exit code.
    noticed: Instant  # When a look found it.
    due: int = 0
    told: Instant | None = None
    line: str = ""
    last_lines: str = ""

    @property
    def run(self) -> tuple[str, int | None]:
        """What identifies a run. A requeued job keeps its id, and the elements of an array that
        started together are one event."""
        return self.job, self.started


class Finding(Struct, frozen=True, kw_only=True):
    """One answer about one subject.

    summary: One line without the subject.
    details: Further lines, such as the end of a log.
    commands: Commands that a person would run next. They only look. Text of a plugin becomes one if
        a shell would only run its words; other text becomes a line of the details.
    acts: Those that change something. Plain text is refused (TypeError).
    labels: node, user, partition, job; routes match them.
    patience: Seconds that it has to last before anybody is told, if the check has no `for` in the
        file. 0: it is decisive, and told at once.
    began: When it began, epoch seconds, if that is known better than by the first sight of it.
    tell_once: It is information, and neither repeated nor escalated.
    owner_muted: The job's owner has asked for no message of it. Everybody else is told.
    deaths: Jobs that ended badly. One that was found after the last message is a new event.
    unseen: For the check itself: the users whose trainings it did not see, or the names of other
        things.
    """

    subject: str  # What the answer is about.
    status: Status  # How bad it is.
    summary: str
    values: Mapping[str, Value] = {}  # Numbers and words for the result, by name.
    details: str = ""
    commands: tuple[LookingCommand, ...] = ()
    acts: tuple[ActingCommand, ...] = ()
    labels: Mapping[str, str] = {}
    patience: float = 0.0
    began: int | None = None
    tell_once: bool = False
    owner_muted: bool = False
    guidance: Guidance = NO_GUIDANCE  # How urgent it is, and the first step.
    deaths: tuple[Death, ...] = ()
    unseen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all(isinstance(one, ActingCommand) for one in self.acts):
            raise TypeError("commands that act are ActingCommands")
        if not isinstance(self.commands, str) and any(isinstance(c, str) for c in self.commands):
            texts = [str(one) for one in self.commands if one and not read_plain_command(one)]
            told = (self.details, *(f"to look closer: {visible(text)}" for text in texts))
            force_setattr(self, "details", "\n".join(filter(None, told)))
            force_setattr(
                self, "commands", tuple(filter(None, map(read_plain_command, self.commands)))
            )

    def for_cluster(self, before: str) -> "Finding":
        """The same, whose commands ask the cluster to which `before` leads."""
        return replace(
            self,
            commands=tuple(command.for_cluster(before) for command in self.commands),
            acts=tuple(replace(command, before=before) for command in self.acts),
            guidance=self.guidance.for_cluster(before),
        )

    def samples(self, names: Iterable[str]) -> "tuple[Sample, ...]":
        """The values of these names that are numbers, for the history."""
        found = ((name, self.values.get(name)) for name in names)
        return tuple(
            Sample(self.subject, name, float(value))
            for name, value in found
            if isinstance(value, int | float) and not isinstance(value, bool)
        )


class Sample(Struct, frozen=True):
    """A number for the history. Its time is that of the run."""

    subject: str  # The thing that was measured.
    name: str  # Which number it is.
    value: float  # The number, in the unit that its name says.


class ActionRequest(Struct, frozen=True, kw_only=True):
    """An action that a check asks for; the guard decides whether it is done.

    params: The action's own parameters.
    evidence: Facts that the request rests on; they are kept in the log.
    subject: Subject of the alert, if that is not the target. People hear of both together.
    """

    action: str  # The kind of action, as `drain`.
    target: str  # The node, job or path to be changed.
    reason: str  # Why, in words.
    subject: str = ""
    params: Mapping[str, str] = {}
    evidence: Mapping[str, str] = {}


class Coverage(Struct, frozen=True, kw_only=True):
    """How much a run saw of what it had to look at. It does not count what is wrong with it.

    of: What is counted: `nodes`, `paths`.
    meant: How many it had to look at.
    unseen: Names of those that it did not see.
    excused: Why it is right not to see these, or that there was nothing to look at (no such job
        runs). A run that had some and saw none is never excused.
    calm: Where all was seen and nothing found: what is said in place of the numbers.
    """

    of: str
    meant: int
    unseen: tuple[str, ...] = ()
    excused: str = ""
    calm: str = ""

    def __post_init__(self) -> None:
        if not len(self.unseen) <= self.meant:
            raise ValueError(f"{len(self.unseen)} of {self.meant} {self.of} cannot be unseen")

    @property
    def seen(self) -> int:
        """How many of the things that it had to check were seen."""
        return self.meant - len(self.unseen)

    @property
    def whole(self) -> bool:
        """Whether there was something to check, and all of it was seen."""
        return self.seen == self.meant > 0

    @property
    def status(self) -> Status:
        """OK if everything was seen, or if the rest is excused. Otherwise UNKNOWN."""
        none_of_some = self.meant > 0 and self.seen == 0
        fine = self.whole or (self.excused and not none_of_some)
        return Status.OK if fine else Status.UNKNOWN

    @property
    def words(self) -> str:
        """In words: `saw 3 of 8 nodes: not node-[4-8] (Slurm does not hear from them)`."""
        if not self.meant:
            why = f": {self.excused}" if self.excused else ""
            return f"there are no {self.of} to look at{why}"
        if self.whole and self.calm:
            return self.calm
        why = f" ({self.excused})" if self.excused and self.unseen else ""
        missing = f": not {self._names()}" if self.unseen else ""
        return f"saw {self.seen} of {self.meant} {self.of}{missing}{why}"

    def _names(self) -> str:
        if self.of == "nodes":
            from sentinel.core import hostlist

            return shortened(hostlist.fold_for_people(self.unseen), MAX_UNSEEN_CHARS)
        return shortened(visible(", ".join(self.unseen)), MAX_UNSEEN_CHARS)


MAX_UNSEEN_CHARS = 200  # of the names of unseen things that people read


def covered(
    of: str, meant: Iterable[str], seen: Iterable[str] | None = None, excused: str = ""
) -> Coverage:
    """A coverage from names that had to be looked at, and those that were seen (None: all)."""
    names = tuple(dict.fromkeys(meant))
    there = set(names if seen is None else seen)
    return Coverage(
        of=of, meant=len(names), unseen=tuple(n for n in names if n not in there), excused=excused
    )


class Report(Struct, frozen=True, kw_only=True):
    """What one run of a check saw, and how much of it. Without `coverage` nothing can be ok.

    memory: What to remember; None keeps the former memory.
    shown: What a terminal shows beside the findings, by subject.
    again: Seconds until another run may decide what this one could not. Within a minute that run is
        made in the same pass; a later one comes in its time.
    ledger: What it saw of trainings, for the ledger of runs.
    """

    findings: tuple[Finding, ...]  # One answer for each subject.
    coverage: Coverage
    requests: tuple[ActionRequest, ...] = ()  # Actions that the check requests.
    samples: tuple[Sample, ...] = ()  # Numbers to keep.
    memory: Mapping[str, Any] | None = None
    shown: Mapping[str, SubjectCells] = {}
    again: float | None = None
    ledger: tuple[LedgerRow, ...] = ()
    letters: tuple[Letter, ...] = ()  # Messages to the authors of wishes.
    watched_jobs: tuple[str, ...] = ()  # `job_id` of the jobs whose owners' wishes count here.

    @property
    def status(self) -> Status:
        """The worst status of the findings; at least UNKNOWN if something was not seen."""
        return get_worst_status([self.coverage.status, *(f.status for f in self.findings)])


class LastNotified(Struct, frozen=True):
    """The last message about an alert that a channel accepted."""

    at: Instant  # When the channel accepted the message.
    severity: Status  # How bad the message said it was.


class Alert(Struct, frozen=True, kw_only=True):
    """A trouble from its first sight to its end.

    id: Names this episode of the trouble.
    began: When the trouble began, if a finding said so; people are shown that.
    rose: When it became as bad as `status` says.
    told: The last message of each channel: only these hear of its end, and repeats count from
        there.
    on_hold: Why somebody is not told now.
    changes: Wall clocks of its last firings and ends.
    flapping: Whether these are many.
    over: It has ended, and is kept only to notice flapping.
    acked: The people who know of it have heard that somebody has it.
    incident: The id of the alert that is its cause, or its own.
    freed: Since when its cause is over, while nobody has been told of this alert.
    tell_once, owner_muted: As the finding says.
    deaths: Jobs that ended badly, and which of them people were told of.
    death_events: Wall clocks of the last messages about further deaths, or unseen things.
    unseen: How many runs in a row did not see each of the finding's `unseen`.
    unseen_told: Those of them that people have been told of.
    """

    key: Key  # What it is about.
    id: str
    kind: str  # The kind of the check.
    status: Status
    summary: str  # One line: what is wrong now.
    since: Instant  # When it was first seen bad.
    last: Instant  # When it was last seen bad.
    firing: bool = False  # Whether it was bad for long enough to be reported.
    severity: Status = Status.WARNING  # The worst status since it fired.
    fired: Instant | None = None  # When it began to fire.
    clear_since: Instant | None = (
        None  # When it became good again; set while `keep_firing_for` runs.
    )
    rose: Instant | None = None
    began: Instant | None = None
    runs: int = 1  # How many runs in a row have seen it bad.
    count: int = 0  # Number of its last transition.
    details: str = ""  # Further lines for people.
    commands: tuple[str, ...] = ()  # Commands that a person would run next. They only look.
    labels: Mapping[str, str] = {}  # Labels that routes match: node, user, partition, job.
    values: Mapping[str, Value] = {}  # Numbers of the last answer, by name.
    runbook: str = ""  # Page with instructions.
    told: Mapping[str, LastNotified] = {}
    on_hold: Held | None = None
    changes: tuple[int, ...] = ()
    flapping: bool = False
    over: bool = False
    acked: bool = False
    incident: str = ""
    freed: Instant | None = None
    tell_once: bool = False
    owner_muted: bool = False
    guidance: Guidance = NO_GUIDANCE  # The guidance of the finding.
    deaths: tuple[Death, ...] = ()
    death_events: tuple[int, ...] = ()
    acts: tuple[str, ...] = ()  # Those that change something.
    unseen: Mapping[str, int] = {}
    unseen_told: tuple[str, ...] = ()

    @property
    def shown_since(self) -> Instant:
        """Since when the subject is bad, in the form for people."""
        return self.began or self.since

    @property
    def is_bad(self) -> bool:
        """Whether it was bad at the last look. One that flaps is kept while it is good."""
        return not self.over and (self.firing or self.runs > 0)

    @property
    def last_told(self) -> Instant | None:
        """When a channel was last given a message about it. None: no channel was."""
        return max((one.at for one in self.told.values()), key=lambda at: at.wall, default=None)


class Transition(Struct, frozen=True, kw_only=True):
    """A change of an alert that people may hear of.

    id: Unique and stable: a message that is sent twice carries it twice.
    reason: firing, worse, repeat, resolved, gone; further ones may come.
    since: When the trouble began.
    """

    id: str
    alert: str  # Id of the alert.
    key: Key  # What the alert is about.
    kind: str  # The kind of the check.
    reason: str
    status: Status  # How bad it is now.
    severity: Status  # The worst status since it fired.
    summary: str  # One line: the problem now.
    at: Instant  # When it changed.
    since: Instant
    incident: str = ""  # Id of the incident that the alert belongs to.


ACK_ALL = "Acknowledge all"
"""The word of the link that acknowledges all alerts of a message."""


class Notification(Struct, frozen=True, kw_only=True):
    """A message for a channel: one object per alert, times in ISO 8601 with offset.

    The fields up to `key` are the documented line of the `file` channel and the body of `webhook`.
    The others are for people.

    links: Addresses by which a person may answer from a phone, by the word for the action. Only
        channels for people get them.
    picture: A PNG of its course, for channels that show one; never stored.
    """

    at: str  # When it changed.
    cluster: str  # Name of the cluster.
    check: str  # Name of the check.
    kind: str  # The kind of the check.
    subject: str  # What the alert is about.
    severity: Status  # The worst status since it fired.
    status: Status  # How bad it is now.
    reason: str  # Why it is sent: firing, worse, repeat, resolved, gone, …
    summary: str  # One line: the problem now.
    since: str  # When the trouble began.
    key: str
    alert: str = ""  # Id of the alert.
    details: str = ""  # Further lines for people.
    commands: tuple[str, ...] = ()  # Commands that a person would run next. They only look.
    labels: Mapping[str, str] = {}  # Labels of the alert.
    values: Mapping[str, Value] = {}  # Numbers of the answer, by name.
    runbook: str = ""  # Page with instructions.
    note: str = ""  # A person's words beside it.
    dry_run: bool = False  # Whether the action was only simulated.
    links: Mapping[str, str] = {}
    page: str = ""  # Address of the alert's page, if one is served.
    incident: str = ""  # The same for alerts of one cause.
    noticed: str = ""  # When it was first seen; `since` is earlier where the beginning is known.
    setup_place: str = ""  # Where and as whom the commands of sentinel itself are run.
    config: str = ""  # The file that those commands name by -c; empty: they find it.
    picture: bytes | UnsetType = UNSET
    acts: tuple[str, ...] = ()  # Those that change something.
    guidance: Guidance = NO_GUIDANCE  # How urgent it is, and the first step.


class Receipt(Struct, frozen=True):
    """The answer of a channel's other side. `refused` names the recipients that it did not accept.
    `doubt`: why it may have accepted nothing, although its answer was good."""

    text: str  # The text of the answer.
    refused: tuple[str, ...] = ()
    doubt: str = ""


DOUBT_MARK = "in doubt: "
"""Stands before the doubt in the answer of a row that counts as sent, and in the error of one that
waits."""


class Outgoing(Struct, frozen=True, kw_only=True):
    """An outbox row: one transition for one channel. It is unsent until `sent`.

    A row is due when `wait` seconds have passed since `tried`, and not before `hold` seconds after
    `created`, so that others of its `bundle` can join it in one message. Two messages about a bundle
    are at least `interval` seconds apart. `seq` orders rows.
    """

    seq: int = 0
    channel: str  # Name of the channel.
    notification: Notification  # The message.
    created: Instant
    bundle: MessageGroup = MessageGroup()
    hold: float = 0.0
    interval: float = 0.0
    attempts: int = 0  # How often sending it failed.
    tried: Instant | None = None
    wait: float = 0.0
    permanent: bool = False  # Whether the channel refused it for good.
    error: str = ""  # Why the last attempt failed.


class SentNotification(Struct, frozen=True):
    """The part of a message that counts after it was sent."""

    reason: str = ""
    alert: str = ""
    status: Status = Status.UNKNOWN
    labels: Mapping[str, str] = {}


class Sending(Struct, frozen=True):
    """A row that its channel accepted. Rows of one message have the same `message`."""

    channel: str  # Name of the channel.
    bundle: MessageGroup  # The group in which the message was sent.
    at: Instant  # When it was accepted.
    message: int
    notification: SentNotification = SentNotification()  # What it was about.


class CheckRun(Struct, frozen=True, kw_only=True):
    """The last run of a check, as `status` shows it. `tick` finds by it which check is due.

    blind: It could not see all that it should have looked at.
    after: Seconds into its pass at which it began; 0: it was the first run of that check.
    """

    check: str  # Name of the check.
    kind: str  # Its kind.
    at: Instant  # When its result was written.
    status: Status
    summary: str  # One line: what the run found.
    duration: float  # Seconds that it took.
    after: float = 0.0
    blind: bool = False


class Batch(Struct, frozen=True, kw_only=True):
    """Everything that one transaction writes: all of it or nothing."""

    at: Instant  # When it is written.
    alerts: tuple[Alert, ...] = ()  # Alerts that are open now.
    closed: tuple[Key, ...] = ()  # Alerts that have ended.
    transitions: tuple[Transition, ...] = ()  # Changes to keep in the history.
    outbox: tuple[Outgoing, ...] = ()  # Messages to be sent.
    memory: Mapping[str, Mapping[str, Any]] = {}  # The new memory of each check, by its name.
    samples: Mapping[str, tuple[Sample, ...]] = {}  # Numbers to keep, by check.
    runs: tuple[CheckRun, ...] = ()  # The last run of each check.
    ledger: tuple[LedgerRow, ...] = ()  # New and changed rows of the ledger of runs.
