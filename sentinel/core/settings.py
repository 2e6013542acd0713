"""What the configuration file means, as typed classes; kinds bring their own beside these.

Field types with a meaning of their own: Duration, Size and Share (core.values), Secret,
FilePath, and re.Pattern for regular expressions. The loader in config/ knows them all.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from sentinel.core.values import Duration


class Secret:
    """A string that shows itself only when asked to."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret itself; for the one line that hands it to the other side."""
        return self._value

    def __repr__(self) -> str:
        return "'***'"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


class FilePath(str):
    """A path in which `~` and `$VARIABLES` were expanded when the file was read."""

    __slots__ = ()


class Common(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys every check takes. None: the kind's own default."""

    kind: str
    every: Duration | None = None
    cron: str | None = None
    for_: Duration = field(default=Duration(0), name="for")
    keep_firing_for: Duration = Duration(0)
    timeout: Duration | None = None
    severity: Literal["warning", "critical"] = "critical"
    blind_after: int = 3
    labels: Mapping[str, str] = {}
    runbook: str = ""


class CheckConfig(Struct, frozen=True, kw_only=True):
    """A configured check: its name, the common keys, and the kind's own settings object."""

    name: str
    common: Common
    plugin: Any


class ChannelConfig(Struct, frozen=True, kw_only=True):
    """A configured channel: its name, kind and the kind's own settings object."""

    name: str
    kind: str
    plugin: Any


class Match(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which alerts a route, silence or inhibition is about; every key given must fit.

    A value may be one word or a list of alternatives.
    """

    severity: str | list[str] | None = None
    status: str | list[str] | None = None
    check: str | list[str] | None = None
    kind: str | list[str] | None = None
    cluster: str | list[str] | None = None
    subject: str | list[str] | None = None
    node: str | list[str] | None = None
    user: str | list[str] | None = None
    partition: str | list[str] | None = None
    job: str | list[str] | None = None
    labels: Mapping[str, str] = {}


class Route(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who hears of what: the first route that matches decides, unless it says continue."""

    to: list[str]
    match: Match = Match()
    repeat: Duration | None = None
    continue_: bool = field(default=False, name="continue")


class SlurmSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How Slurm is asked. `command_prefix` lets another host ask, e.g. [ssh, login1]."""

    timeout: Duration = Duration(20)
    command_prefix: list[str] = []


class Settings(Struct, frozen=True, kw_only=True):
    """A whole configuration, checked. `cluster` empty: ask Slurm; `timezone` empty: the host's."""

    path: str = ""
    cluster: str = ""
    state: str = ""
    timezone: str = ""
    slurm: SlurmSettings = SlurmSettings()
    checks: tuple[CheckConfig, ...] = ()
    channels: tuple[ChannelConfig, ...] = ()
    routes: tuple[Route, ...] = ()
