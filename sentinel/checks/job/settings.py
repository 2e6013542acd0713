"""The keys of a `job` check and their values."""

import os
import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from sentinel.checks.users import EVERYBODY, is_meant_job, training_subject
from sentinel.core.checkpoints import CheckpointPlace
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.plugin import Check

DAY_S = 86400.0  # seconds
_RESTART_LIMIT_PATTERN = re.compile(r"([1-9]\d*)\s+in\s+(\S.*)")


class RestartLimit(Struct, frozen=True):
    """The number of restarts within a time that is too many. It is written as `3 in 1h`."""

    count: int  # Number of restarts.
    window: float  # Time in seconds.

    @classmethod
    def parse_limit(cls, text: str) -> "RestartLimit":
        """Parse a limit. Raises Invalid with the correct form."""
        match = _RESTART_LIMIT_PATTERN.fullmatch(text.strip())
        if not match:
            raise Invalid(f"{text!r} is no frequency; write it like '3 in 1h'")
        return cls(int(match[1]), Duration.parse(match[2]))


class DoneWhen(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What proves that a training has finished: one of a file, a log line, or how it ended.

    file: Finished when this file exists.
    log: Finished when a line of the last MiB of this log holds `pattern`.
    pattern: What such a line holds.
    state: Finished when the job that ran last ended COMPLETED with exit code 0.
    """

    file: FilePath | None = None
    log: FilePath | None = None
    pattern: re.Pattern[str] | None = None
    state: Literal["completed"] | None = None

    def __post_init__(self) -> None:
        given = [k for k in ("file", "log", "state") if getattr(self, k)]
        if len(given) != 1:
            raise Invalid("needs exactly one of `file`, `log` (with `pattern`) or `state`")
        if self.log and not self.pattern:
            raise Invalid("`log` needs a `pattern` to look for", "log")
        if self.pattern and not self.log:
            raise Invalid("`pattern` needs the `log` to look in", "pattern")


class JobSettings(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a `job` check; `JobCheck` adds what it does with them.

    name: The exact job name.
    match: A regular expression for the whole name, in place of `name`.
    users: Whose jobs: user names, `group:NAME`, or `*` for everybody; unset, who runs sentinel, or
        with a size alone everybody.
    partition: Only jobs of this partition, or submitted to several with this among them.
    min_gpus: Only jobs with so many GPUs or more.
    min_nodes: Only jobs on so many nodes or more.
    forget_after: With many trainings: how long one that died stays an alert.
    queued: A warning when fewer jobs wait behind the running one.
    done_when: What proves that the training has finished.
    starts_within: A warning when nothing runs and the next job is expected later than this.
    restarts: A warning when jobs were started anew that often, like `3 in 1h`.
    on_storm: `hold`: where jobs restart that often (`restarts`), also hold those that wait.
    on_death: Submit a training of your own again that has died, at most three times a day.
    checkpoints: Where they lie: a death then says how much work is at risk.
    gap: How long nothing of it may be there after an end before that is told; unset, by what is learned.
    kill_switch: A file that makes the training stop; a warning when it is there while jobs are queued.
    pulse_log: A file that gets one line per run.
    node_warnings: Whether a warning comes when a node of a running job is drained for its hardware,
        is rebooted, or is reserved before the job's end.
    hidden_reasons: Beginnings of reasons of drained nodes that users are not told.
    """

    name: str | None = None
    match: re.Pattern[str] | None = None
    users: list[str] = []
    partition: str | None = None
    min_gpus: int = 0
    min_nodes: int = 0
    forget_after: Duration = Duration(DAY_S)
    queued: int = 0
    done_when: DoneWhen | None = None
    starts_within: Duration | None = None
    restarts: str | None = None
    on_storm: list[Literal["hold"]] = []
    on_death: list[Literal["resubmit"]] = []
    checkpoints: CheckpointPlace | None = None
    gap: Duration | None = None
    kill_switch: FilePath | None = None
    pulse_log: FilePath | None = None
    node_warnings: bool = False
    hidden_reasons: list[str] = []

    def __post_init__(self) -> None:
        self._check_who()
        for index, user in enumerate(self.users):
            if user in ("", "group:"):
                raise Invalid('a user name, `group:NAME` or "*" is missing here', "users", index)
        if self.on_storm and self.restarts is None:
            raise Invalid("a storm is more `restarts` than are allowed; say how many", "on_storm")
        self._check_restarts()
        self._check_pulse_log()

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that have no effect in this configuration, with the reason."""
        if not self.many:
            yield "forget_after", "a training that is named is never forgotten"
        if not self.node_warnings:
            yield "hidden_reasons", "it hides reasons in messages of `node_warnings`, which is off"

    def _check_who(self) -> None:
        if self.name and self.match:
            raise Invalid("`name` (exact) and `match` (regex) exclude each other")
        if not (self.name or self.match or self.has_size_limit or self.users):
            raise Invalid(
                "a job check needs a `name` (exact), a `match` (regex), a size (`min_gpus`,"
                " `min_nodes`) or `users`"
            )
        for key in ("queued", "min_gpus", "min_nodes"):
            if getattr(self, key) < 0:
                raise Invalid(f"`{key}` cannot be negative", key)
        if self.forget_after < 60:
            raise Invalid("must be 1m or longer", "forget_after")

    def _check_restarts(self) -> None:
        try:
            self.parse_restarts()
        except Invalid as error:
            raise Invalid(str(error), "restarts") from None

    def _check_pulse_log(self) -> None:
        log = self.done_when.log if self.done_when else None
        if self.pulse_log and log and os.path.normpath(log) == os.path.normpath(self.pulse_log):
            raise Invalid("is also `done_when.log`: the pulse would speak for the job", "pulse_log")

    def parse_restarts(self) -> RestartLimit | None:
        """The parsed `restarts`."""
        return RestartLimit.parse_limit(self.restarts) if self.restarts is not None else None

    @property
    def has_size_limit(self) -> bool:
        """Whether only jobs of some size are watched."""
        return bool(self.min_gpus or self.min_nodes)

    @property
    def whose(self) -> list[str]:
        """`users`, or everybody if only a size says which jobs are watched."""
        return self.users if self.users or self.name or self.match else [EVERYBODY]

    @property
    def many(self) -> bool:
        """Whether each training that is found is a subject. Otherwise the one configured name is
        the subject."""
        return not self.name or EVERYBODY in self.users

    @property
    def subject(self) -> str:
        """The subject of the alert. If many trainings are watched, it is the pattern that finds
        them."""
        return self.name or (self.match.pattern if self.match else "")

    def subject_of(self, user: str, name: str) -> str:
        """The subject of a training. It is never a job id, and differs between users."""
        if not self.many:
            return self.subject
        return training_subject(self.whose, user, name)

    def is_watched_name(self, name: str) -> bool:
        """Whether a job with this name is watched. The whole name must match."""
        return is_meant_job(self.name, self.match, name)
