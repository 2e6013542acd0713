"""The base classes of every kind of check, channel and action, with everything that sentinel asks
of a kind.

A kind is a class with one of these as its base; its fields are its settings. A hook that the kind
does not define has the default here, so sentinel never has to find out whether a kind has it. Third
parties find these classes, and everything else they need, in `sentinel.plugin`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from sentinel.core.declared import Metric, Panel
from sentinel.core.shown import Column

if TYPE_CHECKING:  # a command that runs once does not need these
    from sentinel.core.action_limits import Limits
    from sentinel.core.actions import Look, Reply
    from sentinel.core.clock import Instant
    from sentinel.core.cluster import ControllerLogEntry
    from sentinel.core.model import ActionRequest, Notification, Receipt, Report, Status
    from sentinel.core.ports import Context


class Check(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all kinds of checks: only `run` has to be written.

    `EVERY` and `TIMEOUT`: seconds between runs, and those that one run may take, where the
    configuration says nothing. `FOLLOW`: seconds between the runs in which a check that has work
    under way follows it beside its `cron` (`Context.due` is false then); None: there are none.
    `KEEPS_GPUS`: it reads and writes the ledger of GPUs (`Context.gpus`). `TELLS_HOST`: what it finds
    is true of the host that looks, so messages name that host.

    What page, metrics, `top` and help read, so that none of them has to guess: `METRICS`, the
    numbers of its findings that are exported; `PANEL`, where its findings are shown; `SOURCES`,
    what is asked of whom, a sentence each; `RUNBOOK`, the page that says what to do. `COLUMNS`: the
    table of `sentinel check` on a terminal, a row a finding; `ROW_COLUMNS`: the table of what one
    subject consists of (`Report.shown`). `LIMIT_SAMPLES`: the samples that `judge_samples` reads; the
    first of them is always there.
    """

    EVERY: ClassVar[float] = 60.0
    TIMEOUT: ClassVar[float] = 30.0
    LIMIT_SAMPLES: ClassVar[tuple[str, ...]] = ()
    FOLLOW: ClassVar[float | None] = None
    KEEPS_GPUS: ClassVar[bool] = False
    TELLS_HOST: ClassVar[bool] = False
    METRICS: ClassVar[tuple[Metric, ...]] = ()
    PANEL: ClassVar[Panel] = "none"
    SOURCES: ClassVar[tuple[str, ...]] = ()
    RUNBOOK: ClassVar[str] = ""
    COLUMNS: ClassVar[tuple[Column, ...]] = ()
    ROW_COLUMNS: ClassVar[tuple[Column, ...]] = ()

    def run(self, ctx: Context) -> Report:
        """Look once. Returns a finding for each subject, also for those without problems, and how
        much was seen.

        A finding that may pass by itself says by its `patience` how long it has to last before
        people are notified; without one they are notified at once. Raises CannotTell if nothing can
        be said."""
        raise NotImplementedError

    def judge_samples(self, numbers: Mapping[str, float]) -> Status:
        """The status of a subject by the limits alone, from its stored samples (LIMIT_SAMPLES) of
        one moment. `config check --since` asks it about the past."""
        raise NotImplementedError

    def without_sampled_limits(self) -> Check:
        """The same settings without the limits that `judge_samples` knows. Two checks for which
        this is equal differ in those limits alone."""
        return self

    def jobs_of(self) -> frozenset[str] | None:
        """The users whose jobs `ctx.slurm.jobs()` has to hold for this check. None: everybody's. By
        default no user's. May raise CannotTell."""
        return frozenset()

    def grants(self) -> Mapping[str, Limits | None]:
        """The actions that the check's own settings allow, with its own limits for each (None: the
        action's). A kind that may request actions defines this."""
        return {}

    @property
    def may_ask(self) -> bool:
        """Whether the check may request actions as it is configured; else no log of actions is kept
        for it. By default: whether its class defines `grants`."""
        return type(self).grants is not Check.grants

    @property
    def looks_into_nodes(self) -> bool:
        """Whether, as it is configured, the check looks at nodes only through `remote`, which
        reaches the nodes of this cluster only."""
        return self.KEEPS_GPUS

    def conflicts(self, others: Mapping[str, Check]) -> Iterable[tuple[str, str]]:
        """Errors that depend on the other checks of the file (by name): a key (`a.b` for one within
        another) and the message for each."""
        return ()

    def unused(self) -> Iterable[tuple[str, str]]:
        """Keys that have no effect as the check is configured, each with the reason. A person who
        sets one of them, in the file or on the command line, is told."""
        return ()

    def watched_logs(self) -> Sequence[str]:
        """Paths, with Slurm's `%x` and `%j`, of files whose growth counts as a sign of life:
        nothing else may be configured to write there."""
        return ()

    def trusted_paths(self) -> Sequence[str]:
        """Files and directories that the settings name, and from which sentinel runs something,
        takes something for true, or into which it writes: people are told if others could change
        them."""
        return ()

    def doubts(self) -> Iterable[str]:
        """What works now and is refused from the next release on, each with its remedy."""
        return ()

    def controller_log(self) -> str:
        """The path of slurmctld's log on this host. Empty if the settings name none."""
        return ""

    def pulse(self, report: Report, now: Instant) -> tuple[str, str] | None:
        """A file, and the line to append to it after each run; None: no line is written."""
        return None


class Channel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all ways to people and machines: only `send` has to be written.

    `groups`: it takes several notifications in one message. `links`: it is read by people, who
    may answer by a link (`Notification.links`). `pictures`: it shows `Notification.picture`.
    `messages_at_once`: a call of `send` may hold so many notifications that are a message each.
    `reaches`: somebody hears of what it takes; a file is only read later.
    """

    groups: ClassVar[bool] = False
    messages_at_once: ClassVar[int] = 1
    links: ClassVar[bool] = False
    pictures: ClassVar[bool] = False
    reaches: ClassVar[bool] = True

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Deliver the notifications. Returns what the other side answered, or raises ChannelError.
        It neither retries nor waits longer than its own limit. It gets one notification at a time,
        unless `groups` or `messages_at_once` says otherwise."""
        raise NotImplementedError

    @property
    def personal(self) -> bool:
        """Whether it notifies each user of their own jobs (the label `user`), so that each message
        is for one user."""
        return False

    @property
    def per_day(self) -> int:
        """For a personal channel: how many messages each user gets per day at most. 0: any number."""
        return 0

    @property
    def listens(self) -> bool:
        """Whether `acknowledged` may be called."""
        return False

    async def acknowledged(self, alerts: Sequence[str]) -> Mapping[str, str]:
        """Who has acknowledged which of these alerts (by id) on the other side. Raises
        ChannelError."""
        return {}

    async def reach(self) -> str:
        """The other side's answer to a test without a message; empty if the channel has no such
        test. Raises ChannelError."""
        return ""

    def unused(self) -> Iterable[tuple[str, str]]:
        """Keys that have no effect as the channel is configured, each with the reason. A person who
        sets one of them, in the file or on the command line, is told."""
        return ()

    def trusted_paths(self) -> Sequence[str]:
        """Files and directories that the settings name, and from which sentinel runs something,
        takes something for true, or into which it writes: people are told if others could change
        them."""
        return ()

    def judge_repeat(self, seconds: float) -> str:
        """The objection to repeating an alert every `seconds` seconds; empty if there is none."""
        return ""

    def preview(self, notifications: Sequence[Notification]) -> Sequence[tuple[str, str]]:
        """The parts of the message by name, as they would be sent; empty for a channel that sends
        the JSON object of each alert."""
        return ()


class Action(Struct, frozen=True):
    """Base of all kinds of changes: `limits`, `look` and `commands` have to be written.

    `limits`: its caps where the configuration names none. `asks_anew`: its target is no node, and
    is looked at anew each time, through JobHands. `apart`: it has nothing to do with Slurm, whose
    illness does not hold it up. `leaves_no_trace`: nothing of it can be seen afterwards, so the
    reply counts. `replaces_reason`: it takes the place of a node's reason, and has `logged`.
    `returns`: it gives its node back to jobs; its caps count every node that came back to service,
    whoever returned it.
    """

    limits: ClassVar[Limits]
    asks_anew: ClassVar[bool] = False
    apart: ClassVar[bool] = False
    leaves_no_trace: ClassVar[bool] = False
    replaces_reason: ClassVar[bool] = False
    returns: ClassVar[bool] = False

    def look(self, request: ActionRequest, view: Any) -> Look:
        """Look at the target: its state, and whether the request makes sense. Changes nothing.
        `view` is a View, or with `asks_anew` a JobView. Raises CannotTell."""
        raise NotImplementedError

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        """The commands that do the action, in order: a dry run shows them, a real one runs them."""
        raise NotImplementedError

    def perform(self, request: ActionRequest, hands: Any) -> Reply | None:
        """Do the action in another way than by Slurm's commands. `hands` are Hands, or with
        `asks_anew` JobHands. Returns None if the commands have to be run; else they are only for
        people to read. Raises nothing but CannotAsk, which says that nothing was begun."""
        return None

    def logged(self, request: ActionRequest, entry: ControllerLogEntry) -> bool:
        """Whether an entry of slurmctld's log is about this change."""
        return False

    def takes_back(self, request: ActionRequest) -> Sequence[tuple[str, ...]]:
        """Commands that stop what the action began."""
        return ()
