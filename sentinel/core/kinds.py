"""What every kind of check, channel and action is: the base classes, with all that sentinel asks.

A kind is a class with one of these as its base. Its fields are its settings; whatever it does not
say it has from here, so nothing guesses whether a kind has a hook. Third parties find them, with
all they need, in `sentinel.plugin`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from sentinel.core.declared import Metric, Panel

if TYPE_CHECKING:  # a one-shot needs none of these here
    from sentinel.core.action_limits import Limits
    from sentinel.core.actions import Look, Reply
    from sentinel.core.clock import Instant
    from sentinel.core.cluster import ControllerLogEntry
    from sentinel.core.model import ActionRequest, Notification, Receipt, Report
    from sentinel.core.ports import Context


class Check(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all kinds of checks: only `run` has to be written.

    `EVERY` and `TIMEOUT`: seconds between runs, and those that one run may take, where the
    configuration says nothing. `FOLLOW`: seconds between the runs in which a check that has work
    under way follows it beside its `cron` (`Context.due` is false then); None: there are none.
    `KEEPS_GPUS`: it reads and writes the ledger of GPUs (`Context.gpus`).

    What page, metrics, `top` and help read, so that none of them has to guess: `METRICS`, the
    numbers of its findings that are exported; `PANEL`, where its findings are shown; `SOURCES`,
    what is asked of whom, a sentence each; `RUNBOOK`, the page that says what to do.
    """

    EVERY: ClassVar[float] = 60.0
    TIMEOUT: ClassVar[float] = 30.0
    FOLLOW: ClassVar[float | None] = None
    KEEPS_GPUS: ClassVar[bool] = False
    METRICS: ClassVar[tuple[Metric, ...]] = ()
    PANEL: ClassVar[Panel] = "none"
    SOURCES: ClassVar[tuple[str, ...]] = ()
    RUNBOOK: ClassVar[str] = ""

    def run(self, ctx: Context) -> Report:
        """One look: a finding for each subject, the good ones too, and how much was seen. Raises
        CannotTell where nothing can be said. A finding that may pass by itself says by its
        `patience` how long it has to last before it is told; without one it is decisive."""
        raise NotImplementedError

    def jobs_of(self) -> frozenset[str] | None:
        """The users whose jobs `ctx.slurm.jobs()` is to hold for it; None: everybody's. None of
        them by default. May raise CannotTell."""
        return frozenset()

    def grants(self) -> Mapping[str, Limits | None]:
        """The actions that its own settings switch on, with its own limits for each (None: the
        action's). A kind that may ask for actions has this."""
        return {}

    @property
    def may_ask(self) -> bool:
        """Whether it may ask for actions as it is configured: else no log of them is kept for it.
        By default: whether its class has `grants` of its own."""
        return type(self).grants is not Check.grants

    @property
    def looks_into_nodes(self) -> bool:
        """Whether, as it is configured, all that it sees is on nodes that it is brought to by `remote`:
        there is a way to those of the cluster at hand alone."""
        return self.KEEPS_GPUS

    def conflicts(self, others: Mapping[str, Check]) -> Iterable[tuple[str, str]]:
        """Errors that only show beside the other checks of the file, by name: a key (`a.b` for
        one within another) and the words, each."""
        return ()

    def unused(self) -> Iterable[tuple[str, str]]:
        """Keys that change nothing as it is configured, each with the reason: whoever writes one of
        them in the file or on the command line is told."""
        return ()

    def watched_logs(self) -> Sequence[str]:
        """The paths, with Slurm's `%x` and `%j`, of files whose growth it takes for life: nothing
        else may be configured to write there."""
        return ()

    def controller_log(self) -> str:
        """The log of slurmctld on this host, where its settings name one; else empty."""
        return ""

    def pulse(self, report: Report, now: Instant) -> tuple[str, str] | None:
        """A file, and the line to append to it after each run; None: nothing is written."""
        return None


class Channel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all ways to people and machines: only `send` has to be written.

    `groups`: it takes several notifications in one message. `links`: it is read by people, who
    may answer by a link (`Notification.links`). `pictures`: it shows `Notification.picture`.
    """

    groups: ClassVar[bool] = False
    links: ClassVar[bool] = False
    pictures: ClassVar[bool] = False

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Deliver them and return what the other side answered, or raise ChannelError; it neither
        retries nor waits longer than its own limit. One at a time, unless `groups`."""
        raise NotImplementedError

    @property
    def personal(self) -> bool:
        """Whether it tells each user of their own jobs (the label `user`): each message is one
        user's."""
        return False

    @property
    def per_day(self) -> int:
        """For a personal one: at most so many messages a day go to each user; 0: any number."""
        return 0

    @property
    def listens(self) -> bool:
        """Whether `acknowledged` may be asked."""
        return False

    async def acknowledged(self, alerts: Sequence[str]) -> Mapping[str, str]:
        """Who has acknowledged which of these alerts (their ids) on the other side. Raises
        ChannelError."""
        return {}

    async def reach(self) -> str:
        """What the other side answers when it is tried without a message; empty: it cannot be
        tried so. Raises ChannelError."""
        return ""

    def unused(self) -> Iterable[tuple[str, str]]:
        """Keys that change nothing as it is configured, each with the reason: whoever writes one of
        them in the file or on the command line is told."""
        return ()

    def judge_repeat(self, seconds: float) -> str:
        """What is wrong with telling it again only so often; empty: nothing."""
        return ""

    def preview(self, notifications: Sequence[Notification]) -> Sequence[tuple[str, str]]:
        """The parts of the message, by name, as they would be sent; none for a channel that hands
        on the JSON object of each alert."""
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
        """What the target is like, and whether the wish makes sense; changes nothing. `view` is a
        View, or with `asks_anew` a JobView. Raises CannotTell."""
        raise NotImplementedError

    def commands(self, request: ActionRequest) -> tuple[tuple[str, ...], ...]:
        """The commands that fulfil the wish, in order: shown by a dry run, run by a real one."""
        raise NotImplementedError

    def perform(self, request: ActionRequest, hands: Any) -> Reply | None:
        """Fulfil the wish otherwise than by commands of Slurm; never raises. `hands` are Hands, or
        with `asks_anew` JobHands. None: run the commands; else they are for people to read."""
        return None

    def logged(self, request: ActionRequest, entry: ControllerLogEntry) -> bool:
        """Whether an entry of slurmctld's log is this change."""
        return False

    def takes_back(self, request: ActionRequest) -> Sequence[tuple[str, ...]]:
        """Commands that stop what it began."""
        return ()
