"""The nouns of sentinel, as plain immutable data."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from sentinel.core.clock import Instant
from sentinel.core.text import shortened, visible

Value = float | int | str | bool | None


class Status(str, Enum):
    """The three answers: good, bad (in two degrees), and cannot tell."""

    OK = "ok"
    WARNING = "warning"
    UNKNOWN = "unknown"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """critical > unknown > warning > ok, as Nagios plugins rank them."""
        return _STATUS_RANKS[self]

    @property
    def bad(self) -> bool:
        """Whether something was seen to be wrong; unknown is not seen."""
        return self in (Status.WARNING, Status.CRITICAL)


_STATUS_RANKS = {Status.OK: 0, Status.WARNING: 1, Status.UNKNOWN: 2, Status.CRITICAL: 3}


def get_worst_status(statuses: Iterable[Status]) -> Status:
    """The worst of several; ok when there is none."""
    return max(statuses, key=lambda s: s.rank, default=Status.OK)


class Key(Struct, frozen=True, order=True):
    """What an alert is about. Measured values and job ids are never part of it."""

    cluster: str
    check: str
    subject: str = ""


class Finding(Struct, frozen=True, kw_only=True):
    """One answer about one subject.

    `summary` is one line without the subject; `details` are further lines (a log's tail);
    `commands` are what a person would run next; `labels` (node, user, partition, job) route.
    `patience`: seconds that it has to last before anybody is told, where the file has no `for` for
    the check. 0: it is decisive, and told at once. `began`: when it began, epoch seconds, where
    that is known better than by the first sight of it. `tell_once`: it is for information, and neither
    repeated nor escalated.
    """

    subject: str
    status: Status
    summary: str
    values: Mapping[str, Value] = {}
    details: str = ""
    commands: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    patience: float = 0.0
    began: int | None = None
    tell_once: bool = False

    def samples(self, names: Iterable[str]) -> "tuple[Sample, ...]":
        """The numbers of these names among its values, for the history."""
        found = ((name, self.values.get(name)) for name in names)
        return tuple(
            Sample(self.subject, name, float(value))
            for name, value in found
            if isinstance(value, int | float) and not isinstance(value, bool)
        )


class Sample(Struct, frozen=True):
    """A number worth keeping a history of; its time is that of the run."""

    subject: str
    name: str
    value: float


class ActionRequest(Struct, frozen=True, kw_only=True):
    """A wish of a check; the guard decides whether it is carried out.

    `params` are the action's own; `evidence` is what the wish rests on, kept in the log.
    `subject` is the alert's where that is not the target: people hear of both together.
    """

    action: str
    target: str
    reason: str
    subject: str = ""
    params: Mapping[str, str] = {}
    evidence: Mapping[str, str] = {}


class Coverage(Struct, frozen=True, kw_only=True):
    """How much of what a run was to look at it saw. Not what it found wrong with it.

    `of` says what is counted (`nodes`, `paths`), `meant` how many were to be looked at, `unseen`
    names those that were not seen. `excused`: why it is right that these were not, or that there
    was nothing to look at (no such job runs). A run that saw none of some is never excused.
    """

    of: str
    meant: int
    unseen: tuple[str, ...] = ()
    excused: str = ""

    def __post_init__(self) -> None:
        if not len(self.unseen) <= self.meant:
            raise ValueError(f"{len(self.unseen)} of {self.meant} {self.of} cannot be unseen")

    @property
    def seen(self) -> int:
        """How many of those meant were seen."""
        return self.meant - len(self.unseen)

    @property
    def whole(self) -> bool:
        """Whether there was something to look at and all of it was seen."""
        return self.seen == self.meant > 0

    @property
    def status(self) -> Status:
        """Ok where all was seen, or all that had to be; else nobody can tell."""
        none_of_some = self.meant > 0 and self.seen == 0
        fine = self.whole or (self.excused and not none_of_some)
        return Status.OK if fine else Status.UNKNOWN

    @property
    def words(self) -> str:
        """`saw 3 of 8 nodes: not node-[4-8] (Slurm does not hear from them)`."""
        if not self.meant:
            why = f": {self.excused}" if self.excused else ""
            return f"there are no {self.of} to look at{why}"
        why = f" ({self.excused})" if self.excused and self.unseen else ""
        missing = f": not {self._names()}" if self.unseen else ""
        return f"saw {self.seen} of {self.meant} {self.of}{missing}{why}"

    def _names(self) -> str:
        if self.of == "nodes":
            from sentinel.core import hostlist

            return shortened(hostlist.fold_for_people(self.unseen), MAX_UNSEEN_CHARS)
        return shortened(visible(", ".join(self.unseen)), MAX_UNSEEN_CHARS)


MAX_UNSEEN_CHARS = 200
"""Letters of the names of what was not seen, where people read them."""


def covered(
    of: str, meant: Iterable[str], seen: Iterable[str] | None = None, excused: str = ""
) -> Coverage:
    """By names: those that were to be looked at, and those of them that were seen (None: all)."""
    names = tuple(dict.fromkeys(meant))
    there = set(names if seen is None else seen)
    return Coverage(
        of=of, meant=len(names), unseen=tuple(n for n in names if n not in there), excused=excused
    )


class Report(Struct, frozen=True, kw_only=True):
    """What one run of a check saw, and how much that is of what it was to look at: without
    `coverage` nothing can be ok. `memory` None keeps what was remembered before. `again`: seconds until
    another run may decide what this one could not; within a minute it is made, else the next comes
    in its time."""

    findings: tuple[Finding, ...]
    coverage: Coverage
    requests: tuple[ActionRequest, ...] = ()
    samples: tuple[Sample, ...] = ()
    memory: Mapping[str, Any] | None = None
    again: float | None = None

    @property
    def status(self) -> Status:
        """The worst of the findings; unknown at least where something was not seen."""
        return get_worst_status([self.coverage.status, *(f.status for f in self.findings)])


class LastNotified(Struct, frozen=True):
    """What a channel was last given about an alert: when, and how bad it was said to be."""

    at: Instant
    severity: Status


class Alert(Struct, frozen=True, kw_only=True):
    """A trouble from its first sight to its end; `id` names this episode of it.

    `began`: when the trouble began, where a finding said so; people are shown that. `rose`: when it became as bad as `status` says. `told` holds what each channel knows: only they hear of its end, and repeats count from
    there. `held` says why somebody is not told just now. `changes` are the wall clocks of its
    last firings and ends; while there are many it is `flapping`. `over`: it has ended and is
    kept only to notice flapping. `acked`: those who know of it have heard that somebody has it.
    `incident`: the id of the alert that is its cause, or its own. `freed`: since when its cause is over,
    while nobody has been told of it. `tell_once`: as the finding says.
    """

    key: Key
    id: str
    kind: str
    status: Status
    summary: str
    since: Instant
    last: Instant
    firing: bool = False
    severity: Status = Status.WARNING
    fired: Instant | None = None
    clear_since: Instant | None = None
    rose: Instant | None = None
    began: Instant | None = None
    runs: int = 1
    count: int = 0
    details: str = ""
    commands: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    values: Mapping[str, Value] = {}
    runbook: str = ""
    told: Mapping[str, LastNotified] = {}
    held: str = ""
    changes: tuple[int, ...] = ()
    flapping: bool = False
    over: bool = False
    acked: bool = False
    incident: str = ""
    freed: Instant | None = None
    tell_once: bool = False

    @property
    def shown_since(self) -> Instant:
        """Since when it is bad, as people are shown it."""
        return self.began or self.since


class Transition(Struct, frozen=True, kw_only=True):
    """A change of an alert that people may hear of. `since`: its beginning.

    `reason`: firing, worse, repeat, resolved, gone; further ones may come.
    `id` is unique and stable: a message about it that is sent twice carries it twice.
    """

    id: str
    alert: str
    key: Key
    kind: str
    reason: str
    status: Status
    severity: Status
    summary: str
    at: Instant
    since: Instant
    incident: str = ""


class Notification(Struct, frozen=True, kw_only=True):
    """What a channel is given: one object per alert, times ISO 8601 with offset.

    The fields up to `key` are the documented line of the `file` channel and the body of
    `webhook`; the rest is what a person needs at three in the morning. `links`: what they may
    do from a phone, by the word for it; keys to that deed, given to channels for people only.
    `page`: the address of the alert's page, where one is served.
    `incident`: what alerts of one cause have in common. `picture`: a PNG of how it went, given
    to channels that show one, and never stored.
    """

    at: str
    cluster: str
    check: str
    kind: str
    subject: str
    severity: Status
    status: Status
    reason: str
    summary: str
    since: str
    key: str
    alert: str = ""
    details: str = ""
    commands: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    values: Mapping[str, Value] = {}
    runbook: str = ""
    note: str = ""
    dry_run: bool = False
    links: Mapping[str, str] = {}
    page: str = ""
    incident: str = ""
    picture: bytes | UnsetType = UNSET


class Receipt(Struct, frozen=True):
    """What a channel's other side answered; `refused` names recipients it did not take."""

    text: str
    refused: tuple[str, ...] = ()


class Outgoing(Struct, frozen=True, kw_only=True):
    """An outbox row: one transition for one channel, unsent until `sent`.

    `seq` orders rows. It is due when `wait` seconds have passed since `tried`, and not before
    `hold` seconds after `created`, so that others of its `group` can join it in one message;
    nor within `interval` seconds of the last message about that group.
    """

    seq: int = 0
    channel: str
    notification: Notification
    created: Instant
    group: str = ""
    hold: float = 0.0
    interval: float = 0.0
    attempts: int = 0
    tried: Instant | None = None
    wait: float = 0.0
    permanent: bool = False
    error: str = ""


class Sending(Struct, frozen=True):
    """A row that its channel took: rows of one message have the same `message`."""

    channel: str
    group: str
    at: Instant
    message: int


class CheckRun(Struct, frozen=True, kw_only=True):
    """The last run of a check, as `status` shows it and `tick` judges what is due.

    `blind`: it could not see all that it should have looked at. `after`: seconds into its pass at
    which it began; 0: it was the first of that check.
    """

    check: str
    kind: str
    at: Instant
    status: Status
    summary: str
    duration: float
    after: float = 0.0
    blind: bool = False


class Batch(Struct, frozen=True, kw_only=True):
    """What one transaction writes: all of it or nothing."""

    at: Instant
    alerts: tuple[Alert, ...] = ()
    closed: tuple[Key, ...] = ()
    transitions: tuple[Transition, ...] = ()
    outbox: tuple[Outgoing, ...] = ()
    memory: Mapping[str, Mapping[str, Any]] = {}
    samples: Mapping[str, tuple[Sample, ...]] = {}
    runs: tuple[CheckRun, ...] = ()
