"""Finds the configuration that applies, and makes kinds, one-shots and the state from it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sentinel import actions, channels, checks
from sentinel.clock import SystemClock
from sentinel.config.registry import KindRegistry
from sentinel.core.errors import CannotTell, ChannelError, SentinelError
from sentinel.core.kinds import Action, Channel
from sentinel.core.model import Notification, Status
from sentinel.core.settings import CheckCommon, CheckConfig
from sentinel.core.text import visible
from sentinel.homes import find_user_folder, get_invoking_user, get_user_name
from sentinel.wiring.lazy import LazySlurm

if TYPE_CHECKING:
    from datetime import tzinfo

    from sentinel.alerting.state import Store
    from sentinel.config.loader import LoadedConfig
    from sentinel.config.settings import Settings
    from sentinel.core.gpu_ledger import GpuLedger
    from sentinel.core.model import Receipt
    from sentinel.core.ports import Slurm
    from sentinel.slurm.snapshot import SlurmSnapshot

CHECKS = KindRegistry(checks.KINDS, checks.GROUP)
CHANNELS = KindRegistry(channels.KINDS, channels.GROUP, Channel)
ACTIONS = KindRegistry(actions.KINDS, actions.GROUP, Action)

__all__ = ["CHANNELS", "CHECKS", "ChannelError"]


SLURM_CONF_PATHS = (
    "/etc/slurm/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    "/run/slurm/conf/slurm.conf",
    "/usr/local/etc/slurm.conf",
)
"""Paths of slurm.conf in distributions, configless clusters (slurm.conf(5)) and source builds."""


STATE_LOOK_TIMEOUT_S = 5.0
"""Seconds for a look beside the state, whose file system may hang."""


class UsageError(SentinelError):
    """The command line names something that does not exist."""

    exit_code = 64


class StateUnreadable(SentinelError):
    """The state may exist and cannot be read, so nothing is known of its contents."""

    exit_code = 3


class ConfigMissing(SentinelError):
    """There is no configuration file, and one is needed."""

    exit_code = 78


def _load_places() -> ModuleType:
    """The module that looks for configurations; one-shots that need none do without it."""
    from sentinel.config import places

    return places


def load_settings(path: str | None, *, quiet: bool = False) -> Settings:
    """The settings of the configuration file that applies. Raises ConfigMissing, ConfigError or
    UntrustedFile."""
    try:
        settings = find_settings(path, quiet=quiet)
    except _load_places().HiddenConfig as error:
        raise ConfigMissing(str(error)) from error
    if settings is None:
        raise ConfigMissing(_load_places().searched_places(os.environ))
    return settings


def load_settings_or_default(
    path: str | None, *, quiet: bool = False, sending: bool = True
) -> Settings:
    """Settings for a command that needs no configuration: the built-in default if there is no file,
    or if this user may not read it (then a line on stderr says so)."""
    found = load_readable_settings(path, quiet=quiet, sending=sending)
    return found or load_builtin_settings(sending=sending)


def load_readable_settings(
    path: str | None, *, quiet: bool = False, sending: bool = True
) -> Settings | None:
    """As `load_settings_or_default`, but None in place of the built-in default."""
    try:
        return find_settings(path, quiet=quiet, sending=sending)
    except _load_places().HiddenConfig as error:
        if not quiet:
            print(f"sentinel: going by the built-in default: {error}", file=sys.stderr)
        return None


def find_settings(
    path: str | None, *, quiet: bool = False, sending: bool = True
) -> Settings | None:
    """As `load_settings`, but None if there is no file; raises HiddenConfig.

    If the file was not named on the command line, its path is printed on stderr, so that nobody
    takes it for another (not with `quiet`). Without `sending`, channels are left out and their
    modules are not imported."""
    found = _load_places().find_config(path, os.environ)
    if found is None:
        return None
    if not path and not quiet:
        print(f"sentinel: configuration: {visible(found)}", file=sys.stderr)
    return load_settings_from(found, sending=sending)


def load_settings_from(path: str, text: bytes | None = None, *, sending: bool = True) -> Settings:
    """The settings of that file, or of `text` in its place. Raises ConfigError."""
    loaded = _load_file(path, text, sending=sending)
    for warning in loaded.warnings:
        print(f"sentinel: {warning}", file=sys.stderr)
    return add_chain_check(loaded.settings)


def _load_file(path: str, text: bytes | None = None, *, sending: bool = True) -> LoadedConfig:
    from sentinel.config.loader import load_config

    return load_config(path, CHECKS, CHANNELS if sending else None, actions=ACTIONS, text=text)


def load_channels_from(path: str, text: bytes) -> Settings:
    """Settings with only the channels of that text, as far as they are valid. Raises
    ConfigError."""
    from sentinel.config.loader import load_channels  # imported here as in load_settings_from

    return load_channels(path, text, CHANNELS)


def load_configured_kinds(path: str | None = None) -> None:
    """Load the kinds in `checks_from` of the file that applies, if there is one, whatever else is
    wrong with it. Raises the error if the file that `path` names cannot be read."""
    try:
        if found := _load_places().find_config(path, os.environ):
            _load_file(found)
    except (SentinelError, OSError):
        if path and not os.access(path, os.R_OK):
            raise


def get_chain_folder(settings: Settings) -> str:
    """The folder where `sentinel cron install` keeps its chain: beside a state on disk."""
    state = get_state_location(settings)
    return os.path.join(_get_default_state_dir() if "://" in state else state, "chain")


def add_chain_check(settings: Settings) -> Settings:
    """The settings with a check of the chain that runs in place of cron, if one is installed and no
    such check is configured. So missed passes are noticed without any configuration."""
    folder = get_chain_folder(settings)
    if any(c.common.kind == "chain" for c in settings.checks) or not _is_path_present(
        os.path.join(folder, "chain.json")
    ):
        return settings
    name = "chain" if all(c.name != "chain" for c in settings.checks) else "sentinel-chain"
    plugin = CHECKS.load_kind("chain")(dir=folder)
    chain = CheckConfig(name=name, common=CheckCommon(kind="chain"), plugin=plugin)
    return replace(settings, checks=(*settings.checks, chain))


def _is_path_present(path: str) -> bool:
    """Whether the path exists; False if its file system does not answer in time."""
    from sentinel.proc import threads

    with suppress(OSError):
        return threads.run_within(STATE_LOOK_TIMEOUT_S, "chain", lambda: os.path.exists(path))
    return False


def get_time_zone(settings: Settings) -> tzinfo:
    """The configured time zone, or the host's."""
    from sentinel.zones import get_zone

    return get_zone(settings.timezone)


def explain_utc(settings: Settings) -> str:
    """Why times are in UTC although nobody chose it. Empty if another zone is used, or UTC was
    chosen."""
    from sentinel import zones

    return "" if settings.timezone else zones.explain_utc()


def open_state(
    settings: Settings, clock: SystemClock, *, mending: bool = True
) -> tuple[Store, list[str]]:
    """The store, and notices for people (with `mending`: that a damaged file was set aside)."""
    from sentinel.store.opening import open_store

    opened = open_store(
        get_state_location(settings), clock.now(), mending=mending, spare=settings.spare_state
    )
    return opened.store, list(opened.notices)


def get_state_location(settings: Settings) -> str:
    """The place of the state: as configured, else below $XDG_STATE_HOME."""
    return settings.state or os.path.join(
        find_user_folder("XDG_STATE_HOME", "~/.local/state"), "sentinel"
    )


def _get_default_state_dir() -> str:
    from sentinel.config.settings import Settings  # needed only with a database

    return get_state_location(Settings())


def describe_state_location(settings: Settings) -> str:
    """The place of the state for people: for a server without the password, and without the query,
    which may hold a password too."""
    scheme, server, rest = get_state_location(settings).partition("://")
    if not server:
        return scheme
    user, at, host = rest.partition("?")[0].rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{host}"


def describe_config_source(settings: Settings) -> str:
    """The path of the configuration file, or that it is the built-in default."""
    return visible(settings.path) if settings.path else "the built-in default"


def get_evidence_folder(settings: Settings) -> str:
    """The folder for evidence: as configured, else in the state's directory, or in the default one
    if the state is on a server."""
    if settings.evidence:
        return str(settings.evidence)
    state = get_state_location(settings)
    return os.path.join(_get_default_state_dir() if "://" in state else state, "evidence")


def has_state(settings: Settings) -> bool:
    """Whether a service or tick has created the state; always True for a server. Raises
    StateUnreadable if the state cannot be looked at, since that does not mean that it is empty."""
    state = get_state_location(settings)
    if "://" in state:
        return True
    try:
        os.stat(os.path.join(state, "sentinel.db"))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _make_unreadable_error(state, str(error.strerror)) from error
    return True


@contextmanager
def guard_state_reads(settings: Settings) -> Iterator[None]:
    """Wrap a command that only reads the state: StateUnreadable is raised in place of errors after
    which a service would wait. A damaged state is raised as such."""
    from sentinel.store.errors import StateRefused, StateUnavailable

    try:
        yield
    except StateRefused as error:
        raise _make_unreadable_error(get_state_location(settings), str(error)) from error
    except StateUnavailable as error:
        raise StateUnreadable(str(error)) from error


def _make_unreadable_error(state: str, why: str) -> StateUnreadable:
    """The error, which names the owner of the directory that cannot be read, and a command for that
    owner."""
    from sentinel.trust import format_sudo_command

    place = os.path.join(os.path.abspath(state), "sentinel.db")
    while True:
        try:
            owner = os.stat(place).st_uid
        except OSError:
            place = os.path.dirname(place)
            continue
        break
    return StateUnreadable(
        f"the state {visible(state)} cannot be read: {why}; {visible(place)} belongs to "
        f"{visible(get_user_name(owner))}, who can: {format_sudo_command(owner)}"
    )


def load_builtin_settings(*, sending: bool = True) -> Settings:
    """Settings without any file: local disks, Slurm if it is there, the terminal."""
    from sentinel.config.default import embedded_default

    return embedded_default(
        CHECKS, CHANNELS if sending else None, hostname=os.uname().nodename, slurm=has_slurm()
    )


def has_slurm() -> bool:
    """Whether this machine belongs to a Slurm cluster: it has client commands and a way to a
    slurm.conf."""
    from shutil import which

    if which("scontrol") is None:
        return False
    named = os.environ.get("SLURM_CONF") or os.environ.get("SLURM_CONF_SERVER")
    return bool(named) or any(os.path.exists(path) for path in SLURM_CONF_PATHS)


async def send_test(channel: Any, settings: Settings) -> Receipt:
    """Send one message which says that it is a test. Returns the receipt."""
    from sentinel.alerting.notifications import format_iso

    clock = SystemClock()
    now = clock.now()
    at = format_iso(now, get_time_zone(settings))
    cluster = settings.cluster or find_cluster_name(LazySlurm(settings, [], clock))
    receipt: Receipt = await channel.send(
        [
            Notification(
                at=at,
                cluster=cluster,
                check="test",
                kind="test",
                subject=os.uname().nodename,
                severity=Status.WARNING,
                status=Status.OK,
                reason="test",
                summary=f"a test message from sentinel on {os.uname().nodename}",
                since=at,
                key=f"test-{now.wall}",
                alert=f"test-{now.wall}",
                labels={"user": get_invoking_user()} if channel.personal else {},
            )
        ]
    )
    return receipt


def make_snapshot(settings: Settings, cluster: str = "") -> SlurmSnapshot:
    """Slurm as the configured checks would see it. It is not asked yet."""
    return LazySlurm(settings, settings.checks, SystemClock(), cluster).get_snapshot()


def open_gpu_ledger(settings: Settings, *, later: bool = False) -> GpuLedger:
    """The ledger of GPUs in the state; `later` as in store.opening."""
    from sentinel.store.opening import open_sql_gpu_ledger as opened

    return opened(get_state_location(settings), settings.lemons, later=later)


def find_cluster_name(slurm: Slurm, before: str = "") -> str:
    """The name that Slurm gives to this cluster; else its name `before`, else the name of this
    host."""
    name = ""
    with suppress(CannotTell):
        name = slurm.controller().cluster
    return name or before or os.uname().nodename
