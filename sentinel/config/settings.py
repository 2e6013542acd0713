"""The whole file, checked: its sections as typed classes. Kinds bring their own settings."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from sentinel.alerting.settings import Flapping, Inhibit, ReportSettings, Route, SilenceWindow
from sentinel.core.action_limits import ActionSettings, GuardSettings
from sentinel.core.errors import Invalid
from sentinel.core.lemon_policy import LemonPolicy
from sentinel.core.settings import (
    ChannelConfig,
    CheckConfig,
    ClusterSettings,
    ExpectedAnswer,
    FilePath,
    Secret,
    SlurmSettings,
    is_web_address,
)
from sentinel.core.values import Duration
from sentinel.nodes.settings import RemoteSettings


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
    expect: list[ExpectedAnswer] = []

    def __post_init__(self) -> None:
        if self.url is None and not self.file and not self.peer:
            raise Invalid("needs `url`, or `file` and `peer` on shared storage", "url")
        if self.url and not is_web_address(self.url.reveal()):
            raise Invalid("is no address; it begins with https:// or http://", "url")
        if self.peer and self.peer == self.file:
            raise Invalid("is this sentinel's own file; name the other one's", "peer")
        if self.peer_after < 60:
            raise Invalid("must be 1m or longer", "peer_after")
        if self.every < 1:
            raise Invalid("must be 1s or longer", "every")


class OtherClusterSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where another sentinel's page is. `token`: its own, needed where it has `user_header`."""

    url: str  # Address of the page.
    token: Secret | None = None
    ca_file: FilePath = FilePath("")  # PEM file of the only CA to trust.

    def __post_init__(self) -> None:
        if not is_web_address(self.url):
            raise Invalid("is no address; it begins with https:// or http://", "url")
        if "@" in self.url:
            raise Invalid("is shown on the page: no user or password in it; give `token`", "url")


class WebSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The page that `sentinel run` serves. With `url` (how people reach it) and `secret` the
    messages to people hold links to acknowledge and silence, for as long as `links_last`. With
    `token` those who know it may do so on the page and by the API; without one both only show.
    `user_header`: where a reverse proxy puts the name of who is logged in, e.g. X-Remote-User; it
    proves itself with `token`. People then see logs, paths and stacks of their own jobs only;
    `administrators` see all.
    `hosts`: further names under which people reach it. `others`: other sentinels, by their cluster's
    name, whose state the overview shows too."""

    listen: str = ""  # Host and port. Empty: nothing is served.
    url: str = ""
    secret: Secret | None = None
    links_last: Duration = Duration(86400)
    token: Secret | None = None
    user_header: str = ""
    administrators: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    others: dict[str, OtherClusterSettings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.listen_address()
        if bool(self.url) != (self.secret is not None):
            missing = "secret" if self.url else "url"
            raise Invalid("is missing: links in messages need both url and secret", missing)
        if self.url and not is_web_address(self.url):
            raise Invalid("is no address; it begins with https:// or http://", "url")
        if self.secret is not None and len(self.secret.reveal()) < 16:
            raise Invalid("needs 16 characters or more, e.g. of: openssl rand -hex 32", "secret")
        if self.token is not None and len(self.token.reveal()) < 16:
            raise Invalid("needs 16 characters or more, e.g. of: openssl rand -hex 32", "token")
        if self.user_header and self.token is None:
            raise Invalid(
                "is missing: the proxy that names the user proves itself with it", "token"
            )
        if self.administrators and not self.user_header:
            raise Invalid("is missing: the header in which the proxy names the user", "user_header")
        if self.url and not self.listen:
            raise Invalid("name where to listen, e.g. 127.0.0.1:9650", "listen")
        if not 60 <= self.links_last <= 30 * 86400:
            raise Invalid("from 1m to 30d", "links_last")

    def listen_address(self) -> tuple[str, int]:
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

    textfile: FilePath = FilePath("")  # Path of the file.

    def __post_init__(self) -> None:
        if not self.textfile.endswith(".prom"):
            raise Invalid(
                "name a file that ends in .prom: node_exporter reads no other", "textfile"
            )


class Settings(Struct, frozen=True, kw_only=True):
    """A whole configuration, checked. `cluster` empty: ask Slurm; `timezone` empty: the host's.
    `checks_from`: directories with kinds of checks in files of their own. `spare_state`: a
    directory for what cannot be written to the state. `clusters`: those that are asked beside the one
    at hand, by the name that their alerts bear. `evidence`: where that of jobs is kept; empty:
    below the state, where its owner alone gets. `trust`, `trust_groups`: users and groups, besides
    root and who runs sentinel, that may change what it runs and believes."""

    path: str = ""  # Path of the file.
    cluster: str = ""
    state: str = ""  # Directory or URL of the state.
    spare_state: FilePath = FilePath("")
    evidence: FilePath = FilePath("")
    trust: tuple[str, ...] = ()
    trust_groups: tuple[str, ...] = ()
    timezone: str = ""
    checks_from: list[FilePath] = field(default_factory=list)
    slurm: SlurmSettings = SlurmSettings()  # How Slurm is asked.
    clusters: Mapping[str, ClusterSettings] = {}
    remote: RemoteSettings = RemoteSettings()  # How nodes are reached.
    checks: tuple[CheckConfig, ...] = ()  # Configured checks.
    channels: tuple[ChannelConfig, ...] = ()  # Who is notified of what.
    routes: tuple[Route, ...] = ()  # Who hears of what.
    inhibit: tuple[Inhibit, ...] = ()  # Which alerts mute which.
    flapping: Flapping = Flapping()  # When an alert changes too often.
    heartbeat: HeartbeatSettings | None = None  # The dead man's switch.
    web: WebSettings | None = None  # The page.
    metrics: MetricsSettings | None = None  # Metrics as a file.
    report: ReportSettings | None = None  # The weekly report of trainings.
    silences: tuple[SilenceWindow, ...] = ()  # Standing silences.
    actions: Mapping[str, ActionSettings] = {}  # What may be done, by kind of action.
    guard: GuardSettings = GuardSettings()  # Settings for all actions.
    lemons: LemonPolicy = LemonPolicy()  # When a GPU or node counts as a suspect.
