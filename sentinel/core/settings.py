"""What the configuration file means, as typed classes; kinds bring their own beside these.

Field types with a meaning of their own: Duration, Size and Share (core.values), Secret,
FilePath, and re.Pattern for regular expressions. The loader in config/ knows them all.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from sentinel.core.errors import Invalid
from sentinel.core.lemons import LemonPolicy
from sentinel.core.limits import ActionSettings, GuardSettings
from sentinel.core.remote_settings import RemoteSettings
from sentinel.core.values import Duration

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


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


class ChannelCommon(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys every channel takes. `fallback`: the channel that gets what this one does not
    deliver. `per_hour`: at most so many messages, the last of them with all that is left."""

    kind: str
    fallback: str = ""
    per_hour: int = 0


class ChannelConfig(Struct, frozen=True, kw_only=True):
    """A configured channel: its name, kind, common keys and the kind's own settings object."""

    name: str
    kind: str
    plugin: Any
    common: ChannelCommon = ChannelCommon(kind="")


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


class Hours(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When people may be told of what is not critical: `days: mon-fri, from: "08:00", until:
    "18:00"`, in the file's time zone. An end before the beginning is on the next day."""

    days: str = "mon-sun"
    from_: str = field(default="00:00", name="from")
    until: str = "24:00"

    def __post_init__(self) -> None:
        self.weekdays()
        _minutes(self.from_, "from")
        _minutes(self.until, "until")

    def minutes(self) -> tuple[int, int]:
        """Beginning and end in minutes of the day."""
        return _minutes(self.from_, "from"), _minutes(self.until, "until")

    def weekdays(self) -> frozenset[int]:
        """ISO numbers, Monday is 1; a range may run over the weekend."""
        days: set[int] = set()
        for part in self.days.lower().split(","):
            first, _, last = part.strip().partition("-")
            days |= set(_day_range(_day(first), _day(last or first)))
        return frozenset(days)


class Escalate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who else is told when nobody has acknowledged for so long."""

    after: Duration
    to: list[str]


class Route(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who hears of what: the first route that matches decides, unless it says continue.

    `group_wait`: how long others of a group are waited for; `group_interval`: the least time
    between two messages about it.
    """

    to: list[str]
    match: Match = Match()
    repeat: Duration | None = None
    continue_: bool = field(default=False, name="continue")
    group_by: list[str] | None = None
    group_wait: Duration = Duration(0)
    group_interval: Duration = Duration(0)
    escalate: Escalate | None = None
    hours: Hours | None = None


class Inhibit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """While an alert that fits `when` fires, those that fit `mute` are not told."""

    when: Match
    mute: Match


class Window(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A silence in the file: from one moment to another (ISO 8601, in the file's time zone), or
    at every `cron` for so long."""

    match: Match = Match()
    from_: str | None = field(default=None, name="from")
    until: str | None = None
    cron: str | None = None
    for_: Duration | None = field(default=None, name="for")
    reason: str = ""

    def __post_init__(self) -> None:
        fixed = self.from_ is not None and self.until is not None
        recurring = self.cron is not None and self.for_ is not None
        if fixed == recurring:
            raise Invalid("needs `from` and `until`, or `cron` and `for`: a silence always ends")


class Flapping(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An alert that changes so often within the window is told as flapping; 0: never."""

    changes: int = 6
    window: Duration = Duration(3600)


class HeartbeatSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dead man's switch: an address is pinged, and a file written, while every check runs and
    can see. `peer` is the file of another sentinel: when it has not changed for `peer_after`,
    that is an alert."""

    url: Secret | None = None
    file: FilePath = FilePath("")
    peer: FilePath = FilePath("")
    peer_after: Duration = Duration(900)
    every: Duration = Duration(300)
    style: Literal["plain", "healthchecks"] = "plain"
    timeout: Duration = Duration(20)

    def __post_init__(self) -> None:
        if self.url is None and not self.file and not self.peer:
            raise Invalid("needs `url`, or `file` and `peer` on shared storage", "url")
        if self.url and not self.url.reveal().startswith(("https://", "http://")):
            raise Invalid("is no address; it begins with https:// or http://", "url")
        if self.peer and self.peer == self.file:
            raise Invalid("is this sentinel's own file; name the other one's", "peer")
        if self.peer_after < 60:
            raise Invalid("must be 1m or longer", "peer_after")
        if self.every < 1:
            raise Invalid("must be 1s or longer", "every")


class WebSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The page that `sentinel run` serves. With `url` (how people reach it) and `secret` the
    messages to people hold links to acknowledge and silence, for as long as `links_last`. With
    `token` those who know it may do so on the page and by the API; without one both only show.
    `user_header`: where a reverse proxy puts the name of who is logged in, e.g. X-Remote-User.
    `hosts`: further names under which people reach it and may answer."""

    listen: str = ""
    url: str = ""
    secret: Secret | None = None
    links_last: Duration = Duration(86400)
    token: Secret | None = None
    user_header: str = ""
    hosts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.address()
        if bool(self.url) != (self.secret is not None):
            raise Invalid("url and secret go together", "secret" if self.url else "url")
        if self.url and not self.url.startswith(("https://", "http://")):
            raise Invalid("is no address; it begins with https:// or http://", "url")
        if self.secret is not None and len(self.secret.reveal()) < 16:
            raise Invalid("needs 16 characters or more, e.g. of: openssl rand -hex 32", "secret")
        if self.token is not None and len(self.token.reveal()) < 16:
            raise Invalid("needs 16 characters or more, e.g. of: openssl rand -hex 32", "token")
        if self.url and not self.listen:
            raise Invalid("name where to listen, e.g. 127.0.0.1:9650", "listen")
        if not 60 <= self.links_last <= 30 * 86400:
            raise Invalid("from 1m to 30d", "links_last")

    def address(self) -> tuple[str, int]:
        """Host and port to listen at; an empty host where nothing is served."""
        if not self.listen:
            return "", 0
        host, colon, port = self.listen.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not (colon and host and port.isdecimal() and 0 < int(port) < 65536):
            raise Invalid("write it like 127.0.0.1:9650", "listen")
        return host, int(port)


class MetricsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Metrics as a file for node_exporter's textfile collector, written after every pass; its
    name must end in .prom."""

    textfile: FilePath = FilePath("")

    def __post_init__(self) -> None:
        if not self.textfile.endswith(".prom"):
            raise Invalid(
                "name a file that ends in .prom: node_exporter reads no other", "textfile"
            )


class SlurmSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How Slurm is asked. `command_prefix` lets another host ask, e.g. [ssh, login1];
    `change_prefix` stands before commands that change something, e.g. [sudo, -n].
    `maintenance`: its maintenance reservations silence alerts about their nodes."""

    timeout: Duration = Duration(20)
    command_prefix: list[str] = []
    change_prefix: list[str] = []
    maintenance: bool = False


class Settings(Struct, frozen=True, kw_only=True):
    """A whole configuration, checked. `cluster` empty: ask Slurm; `timezone` empty: the host's."""

    path: str = ""
    cluster: str = ""
    state: str = ""
    timezone: str = ""
    slurm: SlurmSettings = SlurmSettings()
    remote: RemoteSettings = RemoteSettings()
    checks: tuple[CheckConfig, ...] = ()
    channels: tuple[ChannelConfig, ...] = ()
    routes: tuple[Route, ...] = ()
    inhibit: tuple[Inhibit, ...] = ()
    flapping: Flapping = Flapping()
    heartbeat: HeartbeatSettings | None = None
    web: WebSettings | None = None
    metrics: MetricsSettings | None = None
    silences: tuple[Window, ...] = ()
    actions: Mapping[str, ActionSettings] = {}
    guard: GuardSettings = GuardSettings()
    lemons: LemonPolicy = LemonPolicy()


def _minutes(text: str, key: str) -> int:
    hour, colon, minute = text.partition(":")
    if not (colon and hour.isdigit() and minute.isdigit() and len(minute) == 2):
        raise Invalid(f'{text!r} is no time of the day; write it like "08:00"', key)
    total = int(hour) * 60 + int(minute)
    if int(minute) > 59 or total > 24 * 60:
        raise Invalid(f"{text!r} is no time of the day (00:00 to 24:00)", key)
    return total


def _day(text: str) -> int:
    if text not in _DAYS:
        raise Invalid(f"{text!r} is no day; write them like mon-fri or sat,sun", "days")
    return _DAYS.index(text) + 1


def _day_range(first: int, last: int) -> list[int]:
    return [(first - 1 + n) % 7 + 1 for n in range((last - first) % 7 + 1)]
