"""What the configuration file means, as typed classes; kinds bring their own beside these.

Field types with a meaning of their own: Duration, Size and Share (core.values), Secret,
FilePath, and re.Pattern for regular expressions. The loader in config/ knows them all.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from msgspec import Struct, field

from sentinel.core.errors import Invalid
from sentinel.core.values import Duration


class Secret:
    """A string whose text is shown only by `reveal()`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret itself. Only the code that sends it to the other side may call this."""
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


class CheckCommon(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys every check takes. None: the kind's own default.

    kind: Which kind of check it is.
    every: The time between two runs; unset, the kind's own.
    cron: When it runs, as crontab(5) has it, in place of `every`.
    for: So long something has to be bad before it is told; unset, as the kind says: most at once.
    keep_firing_for: So long it has to be good before its end is told.
    timeout: How long a run may take; unset, the kind's own.
    severity: How bad its alerts are at most.
    blind_after: After so many runs that could not see an alert says so.
    labels: What is added to its alerts, for routes and silences.
    runbook: What to do, or where that is written: it stands in every message.
    cluster: One of `clusters`, which it asks and whose name its alerts bear; unset, the one at hand.
    """

    kind: str
    every: Duration | None = None
    cron: str | None = None
    for_: Duration | None = field(default=None, name="for")
    keep_firing_for: Duration = Duration(0)
    timeout: Duration | None = None
    severity: Literal["warning", "critical"] = "critical"
    blind_after: int = 3
    labels: Mapping[str, str] = {}
    runbook: str = ""
    cluster: str = ""


class CheckConfig(Struct, frozen=True, kw_only=True):
    """A configured check: its name, the common keys, and the kind's own settings object."""

    name: str  # Its name in the file.
    common: CheckCommon  # The keys that every check takes.
    plugin: Any  # The kind's own settings.
    before: str = ""  # What a person types to ask its cluster; empty for the one at hand.

    @property
    def timeout_s(self) -> float:
        """Seconds one run may take, as configured or else the kind's own default."""
        own: float = self.plugin.TIMEOUT
        return float(own if self.common.timeout is None else self.common.timeout)


class ChannelCommon(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys every channel takes. `fallback`: the channel that gets what this one does not
    deliver. `per_hour`: at most so many messages, the last of them with all that is left."""

    kind: str  # The kind of the channel.
    fallback: str = ""
    per_hour: int = 0


class ExpectedAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An HTTP answer that says that a message was taken. A key that is not set allows anything.

    status: The status code, from 200 to 299.
    type: The media type, e.g. application/json.
    body: A regular expression that is found in the text; ^ and $ mean lines.
    json: Members of the JSON object in the body, with their values; null: any value but null.
    """

    status: int | None = None
    type: str = ""
    body: re.Pattern[str] | None = None
    json: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.status is not None and not 200 <= self.status < 300:
            raise Invalid("is no status of success: 200 to 299", "status")


class ChannelConfig(Struct, frozen=True, kw_only=True):
    """A configured channel: its name, kind, common keys and the kind's own settings object."""

    name: str  # Its name in the file.
    kind: str  # The kind of the channel.
    plugin: Any  # The kind's own settings.
    common: ChannelCommon = ChannelCommon(kind="")  # The keys that every channel takes.


class SlurmSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How Slurm is asked. `command_prefix` lets another host ask, e.g. [ssh, login1];
    `change_prefix` stands before commands that change something, e.g. [sudo, -n].
    `maintenance`: its maintenance reservations silence alerts about their nodes. `racks`: host lists by
    what they have in common (a switch, a power supply), in place of Slurm's topology. `readyz`: how
    slurmctld's own /readyz is asked (25.11 on) where it does not answer scontrol."""

    timeout: Duration = Duration(20)  # How long one command of Slurm may take.
    command_prefix: list[str] = []
    readyz: Literal["", "http", "https"] = ""
    change_prefix: list[str] = []
    maintenance: bool = False
    racks: dict[str, str] = {}

    def __post_init__(self) -> None:
        if not self.racks:
            return
        from sentinel.core import hostlist

        of = dict[str, str]()
        for name, nodes in self.racks.items():
            try:
                for node in hostlist.expand_hostlist(nodes):
                    if of.setdefault(node, name) != name:
                        raise Invalid(f"{node} is in {of[node]} too", "racks", name)
            except Invalid as error:
                raise Invalid(str(error), "racks", name) from None


class ClusterSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one cluster more is asked: by its slurm.conf (`conf`), by commands on another host
    (`command_prefix`, e.g. [ssh, login2]), or both: then `conf` is a path there. `readyz` as in
    SlurmSettings."""

    conf: str = ""
    timeout: Duration = Duration(20)  # How long one command of Slurm may take.
    command_prefix: list[str] = []
    readyz: Literal["", "http", "https"] = ""

    def __post_init__(self) -> None:
        if not self.conf and not self.command_prefix:
            raise Invalid("needs `conf`, its slurm.conf, or `command_prefix`, e.g. [ssh, login2]")
        if self.conf and not self.conf.startswith("/"):
            raise Invalid("write it from / on, e.g. /etc/slurm/b.conf", "conf")

    @property
    def command_start(self) -> str:
        """The beginning of a Slurm command that a person types to ask this cluster."""
        from shlex import join  # slow to import, and needed only for a named cluster

        there = ["env"] if self.command_prefix and self.conf else []
        conf = [f"SLURM_CONF={self.conf}"] if self.conf else []
        return f"{join([*self.command_prefix, *there, *conf])} "


def is_web_address(text: str) -> bool:
    """Whether the text is an http(s) address with a host and, if any, a valid port."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return good and text.isprintable() and " " not in text


def is_this_machine(host: str) -> bool:
    """Whether the host of an address is this machine. A proxy on another one would connect to
    itself (https://pkg.go.dev/golang.org/x/net/http/httpproxy), and no secret leaves it."""
    from ipaddress import ip_address

    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def refuse_reversed(
    warn: Struct, crit: Struct, upwards: Sequence[str], downwards: Sequence[str] = ()
) -> None:
    """Raise Invalid if a warning would come after the critical. `upwards`: numbers that get worse
    as they rise; `downwards`: as they fall."""
    for name in (*upwards, *downwards):
        early, late = getattr(warn, name), getattr(crit, name)
        lower, higher = (early, late) if name in upwards else (late, early)
        if early is not None and late is not None and lower > higher:
            raise Invalid(
                f"warns at {early} but is critical at {late} already: "
                f"{name} has to be {'lower' if name in upwards else 'higher'} in warn than in crit",
                "warn",
                name,
            )
