"""The keys of a `job` check and what they may hold."""

import os
import re
from typing import Literal

from msgspec import Struct

from sentinel.checks.checkpoint.settings import Where
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration

_OFTEN = re.compile(r"([1-9]\d*)\s+in\s+(\S.*)")


class Often(Struct, frozen=True):
    """So many times within so many seconds. Written `3 in 1h`."""

    count: int
    window: float

    @classmethod
    def parse(cls, text: str) -> "Often":
        """Raises Invalid with the form that is understood."""
        match = _OFTEN.fullmatch(text.strip())
        if not match:
            raise Invalid(f"{text!r} is no frequency; write it like '3 in 1h'")
        return cls(int(match[1]), Duration.parse(match[2]))


class DoneWhen(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What proves that a training has finished: one of a file, a log line, or how it ended.

    `file` exists; a line of the last MiB of `log` holds `pattern`; the job that ran last
    ended COMPLETED with exit code 0 (`state: completed`).
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


class JobSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a `job` check; `JobCheck` adds what it does with them.

    `users` empty: who runs sentinel; "*": everybody; `group:NAME`: all members of a group.
    """

    name: str | None = None
    match: re.Pattern[str] | None = None
    users: list[str] = []
    partition: str | None = None
    queued: int = 0
    done_when: DoneWhen | None = None
    starts_within: Duration | None = None
    restarts: str | None = None
    on_storm: list[Literal["hold"]] = []
    checkpoints: Where | None = None
    kill_switch: FilePath | None = None
    pulse_log: FilePath | None = None

    def __post_init__(self) -> None:
        if bool(self.name) == bool(self.match):
            raise Invalid("a job check needs exactly one of `name` (exact) or `match` (regex)")
        if self.queued < 0:
            raise Invalid("`queued` cannot be negative", "queued")
        for index, user in enumerate(self.users):
            if user in ("", "group:"):
                raise Invalid('a user name, `group:NAME` or "*" is missing here', "users", index)
        if self.on_storm and self.restarts is None:
            raise Invalid("a storm is more `restarts` than are allowed; say how many", "on_storm")
        self._check_restarts()
        self._check_pulse_log()

    def _check_restarts(self) -> None:
        try:
            self.often()
        except Invalid as error:
            raise Invalid(str(error), "restarts") from None

    def _check_pulse_log(self) -> None:
        log = self.done_when.log if self.done_when else None
        if self.pulse_log and log and os.path.normpath(log) == os.path.normpath(self.pulse_log):
            raise Invalid("is also `done_when.log`: the pulse would speak for the job", "pulse_log")

    def often(self) -> Often | None:
        """`restarts`, parsed."""
        return Often.parse(self.restarts) if self.restarts is not None else None

    @property
    def subject(self) -> str:
        """What the alert is about: the configured name or pattern, never a job id."""
        return self.name or (self.match.pattern if self.match else "")

    def names(self, name: str) -> bool:
        """Whether a job of that name is meant: the whole name counts."""
        return bool(self.match.fullmatch(name)) if self.match else name == self.name
