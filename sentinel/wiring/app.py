"""The wiring: the configuration that applies, the kinds that there are, one-shots, the state."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sentinel import actions, channels, checks
from sentinel.clock import SystemClock
from sentinel.config.registry import KindRegistry, UnknownKind
from sentinel.config.settings import Settings
from sentinel.core.errors import ChannelError, SentinelError
from sentinel.core.kinds import Action, Channel
from sentinel.core.settings import CheckCommon, CheckConfig
from sentinel.core.text import visible
from sentinel.homes import find_user_folder
from sentinel.wiring.lazy import LazyRemote, LazySettings, LazySlurm

if TYPE_CHECKING:
    from datetime import tzinfo

    from sentinel.alerting.observations import RunOutcome
    from sentinel.alerting.state import Store
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
"""Where distributions, configless clusters (slurm.conf(5)) and source builds have it."""


STATE_LOOK_TIMEOUT_S = 5.0
"""Seconds for a look beside the state, whose file system may hang."""


class UsageError(SentinelError):
    """The command line asks for what there is not."""

    exit_code = 64


class StateUnreadable(SentinelError):
    """The state may be there and cannot be read: nothing is known of what it holds."""

    exit_code = 3


class ConfigMissing(SentinelError):
    """No configuration file where one is needed."""

    exit_code = 78


def load_settings(path: str | None) -> Settings:
    """The configuration file that applies; raises ConfigMissing, ConfigError or UntrustedFile."""
    from sentinel.config.places import HiddenConfig, searched_places

    try:
        settings = find_settings(path)
    except HiddenConfig as error:
        raise ConfigMissing(str(error)) from error
    if settings is None:
        raise ConfigMissing(searched_places(os.environ))
    return settings


def load_settings_or_default(
    path: str | None, *, quiet: bool = False, sending: bool = True
) -> Settings:
    """For what needs no configuration: the built-in default also in place of one that this user
    may not read, which is said."""
    found = load_readable_settings(path, quiet=quiet, sending=sending)
    return found or load_builtin_settings(sending=sending)


def load_readable_settings(
    path: str | None, *, quiet: bool = False, sending: bool = True
) -> Settings | None:
    """The same, but None in place of the built-in default."""
    from sentinel.config.places import HiddenConfig

    try:
        return find_settings(path, quiet=quiet, sending=sending)
    except HiddenConfig as error:
        if not quiet:
            print(f"sentinel: going by the built-in default: {error}", file=sys.stderr)
        return None


def find_settings(
    path: str | None, *, quiet: bool = False, sending: bool = True
) -> Settings | None:
    """As load_settings, but None where there is no file, and raises HiddenConfig. A file that was not
    named on the command line is named on stderr, so that nobody takes it for another (`quiet`:
    not so). Where nothing is sent the channels are left out: their modules are not imported."""
    from sentinel.config.places import find_config

    found = find_config(path, os.environ)
    if found is None:
        return None
    if not path and not quiet:
        print(f"sentinel: configuration: {visible(found)}", file=sys.stderr)
    return load_settings_from(found, sending=sending)


def load_settings_from(path: str, text: bytes | None = None, *, sending: bool = True) -> Settings:
    """Those of that file, or of a text in its place; raises ConfigError."""
    from sentinel.config.loader import load_config

    loaded = load_config(path, CHECKS, CHANNELS if sending else None, actions=ACTIONS, text=text)
    for warning in loaded.warnings:
        print(f"sentinel: {warning}", file=sys.stderr)
    return add_chain_check(loaded.settings)


def load_configured_kinds(path: str | None = None) -> None:
    """Let the registry know the kinds of the `checks_from` of the file that applies, if one does,
    whatever else is wrong with it."""
    from sentinel.config.loader import load_config
    from sentinel.config.places import find_config

    with suppress(SentinelError, OSError):
        if found := find_config(path, os.environ):
            load_config(found, CHECKS, CHANNELS)


def get_chain_folder(settings: Settings) -> str:
    """Where `sentinel cron install` keeps its chain: beside a state on disk."""
    state = get_state_location(settings)
    return os.path.join(get_state_location(Settings()) if "://" in state else state, "chain")


def add_chain_check(settings: Settings) -> Settings:
    """With a check of the chain that runs in place of cron, where one is installed: what is
    missed while nothing runs is told without being configured."""
    folder = get_chain_folder(settings)
    if any(c.common.kind == "chain" for c in settings.checks) or not _is_path_present(
        os.path.join(folder, "chain.json")
    ):
        return settings
    from msgspec.structs import replace

    name = "chain" if all(c.name != "chain" for c in settings.checks) else "sentinel-chain"
    plugin = CHECKS.load_kind("chain")(dir=folder)
    chain = CheckConfig(name=name, common=CheckCommon(kind="chain"), plugin=plugin)
    return replace(settings, checks=(*settings.checks, chain))


def _is_path_present(path: str) -> bool:
    """False too where its file system does not answer in time."""
    from sentinel.proc import threads

    with suppress(OSError):
        return threads.run_within(STATE_LOOK_TIMEOUT_S, "chain", lambda: os.path.exists(path))
    return False


def make_one_shot_check(
    kind: str, options: Mapping[str, list[str]], names: Sequence[str] = ()
) -> CheckConfig:
    """A check of that kind with settings from the command line; raises BadOptions or UsageError."""
    from sentinel.config.options import settings_from_options as convert

    plugin = convert(_load_check_kind(kind, names), options)
    return CheckConfig(name=kind, common=CheckCommon(kind=kind), plugin=plugin)


def describe_options(kind: str, width: int = 100) -> list[str]:
    """Help lines for the options of a kind."""
    from textwrap import wrap

    from sentinel.config.options import help_lines

    cls = _load_check_kind(kind, ())
    what = " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())
    more = [*(f"Asked: {source}" for source in cls.SOURCES)]
    more += [f"Read more: {cls.RUNBOOK}"] if cls.RUNBOOK else []
    return [
        *wrap(f"sentinel check {kind}: {what}", width),
        "",
        *help_lines(cls, width),
        "",
        *(
            row
            for line in more
            for row in wrap(line, width, initial_indent="  ", subsequent_indent="    ")
        ),
        "  --json, --nagios, --timeout TIME, -c FILE",
    ]


def run_check_once(check: CheckConfig, settings: Settings | None) -> RunOutcome:
    """One run of one check, without state."""
    from sentinel.core.ports import Context
    from sentinel.engine.runner import CheckRunner

    clock = SystemClock()
    surroundings = LazySettings(lambda: settings or load_readable_settings(None, quiet=True))
    ctx = Context(
        name=check.name,
        now=clock.now(),
        limit=check.timeout_s,
        slurm=LazySlurm(surroundings, [check], clock, check.common.cluster),
        remote=None if check.common.cluster else LazyRemote(surroundings),
        one_shot=True,
    )
    return CheckRunner().run(check, ctx)


def get_time_zone(settings: Settings) -> tzinfo:
    """The configured time zone, or the host's."""
    if settings.timezone:
        from zoneinfo import ZoneInfo

        return ZoneInfo(settings.timezone)
    from sentinel.zones import get_local_zone

    return get_local_zone()


def explain_utc(settings: Settings) -> str:
    """Why times are in UTC although nobody chose it; empty where they are not."""
    from sentinel import zones

    return "" if settings.timezone else zones.explain_utc()


def open_state(
    settings: Settings, clock: SystemClock, *, mending: bool = True
) -> tuple[Store, list[str]]:
    """The store and what has to be told about it (a damaged file kept aside, where `mending`)."""
    from sentinel.store.opening import open_store

    opened = open_store(
        get_state_location(settings), clock.now(), mending=mending, spare=settings.spare_state
    )
    return opened.store, list(opened.notices)


def get_state_location(settings: Settings) -> str:
    """Where the state lies: as configured, else below $XDG_STATE_HOME."""
    return settings.state or os.path.join(
        find_user_folder("XDG_STATE_HOME", "~/.local/state"), "sentinel"
    )


def describe_state_location(settings: Settings) -> str:
    """The same for people: of a server without the password, and without the query, which may
    hold one too."""
    scheme, server, rest = get_state_location(settings).partition("://")
    if not server:
        return scheme
    user, at, host = rest.partition("?")[0].rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{host}"


def describe_config_source(settings: Settings) -> str:
    """The configuration's file, for people."""
    return visible(settings.path) if settings.path else "the built-in default"


def get_evidence_folder(settings: Settings) -> str:
    """Where bundles of evidence are kept: as configured, else below the state, or where it would lie if
    it is elsewhere."""
    if settings.evidence:
        return str(settings.evidence)
    state = get_state_location(settings)
    return os.path.join(get_state_location(Settings()) if "://" in state else state, "evidence")


def has_state(settings: Settings) -> bool:
    """Whether a service or tick has made the state already; of a server nobody can say so. Raises
    StateUnreadable where it cannot be seen: that is no state that is empty."""
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
    """Around what only looks at the state: Unreadable in place of what a service would wait for.
    A damaged state stays what it is."""
    from sentinel.store.errors import StateRefused, StateUnavailable

    try:
        yield
    except StateRefused as error:
        raise _make_unreadable_error(get_state_location(settings), str(error)) from error
    except StateUnavailable as error:
        raise StateUnreadable(str(error)) from error


def _make_unreadable_error(state: str, why: str) -> StateUnreadable:
    """With who may read it: whose the directory is that is in the way."""
    from sentinel.trust import format_sudo_command, get_user_name

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
    """What sentinel does without any file: local disks, Slurm if there, the terminal."""
    from sentinel.config.default import embedded_default

    return embedded_default(
        CHECKS, CHANNELS if sending else None, hostname=os.uname().nodename, slurm=has_slurm()
    )


def has_slurm() -> bool:
    """Whether this machine belongs to a Slurm cluster: client commands and a way to a slurm.conf."""
    from shutil import which

    if which("scontrol") is None:
        return False
    named = os.environ.get("SLURM_CONF") or os.environ.get("SLURM_CONF_SERVER")
    return bool(named) or any(os.path.exists(path) for path in SLURM_CONF_PATHS)


def _get_tester_name() -> str:
    """Who tests a channel: nobody else's mail is used for that."""
    import getpass

    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.geteuid())


async def send_test(channel: Any, settings: Settings) -> Receipt:
    """One message that says it is a test."""
    from sentinel.alerting.processor import format_iso
    from sentinel.core.model import Notification, Status

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
                labels={"user": _get_tester_name()} if channel.personal else {},
            )
        ]
    )
    return receipt


def make_snapshot(settings: Settings, cluster: str = "") -> SlurmSnapshot:
    """Slurm as the configured checks would see it; nothing is asked yet."""
    return LazySlurm(settings, settings.checks, SystemClock(), cluster).get_snapshot()


def open_gpu_ledger(settings: Settings, *, later: bool = False) -> GpuLedger:
    """The ledger of GPUs in the state; `later` as in store.opening."""
    from sentinel.store.opening import open_sql_gpu_ledger as opened

    return opened(get_state_location(settings), settings.lemons, later=later)


def find_cluster_name(slurm: Slurm, before: str = "") -> str:
    """What Slurm calls this cluster; where it does not say, its name `before`, or this host's."""
    from sentinel.core.errors import CannotTell

    name = ""
    with suppress(CannotTell):
        name = slurm.controller().cluster
    return name or before or os.uname().nodename


def _load_check_kind(kind: str, names: Sequence[str]) -> Any:
    from sentinel.config.problems import nearest_word

    try:
        return CHECKS.load_kind(kind)
    except UnknownKind as error:
        known = f"; configured checks: {', '.join(names)}" if names else ""
        kinds = ", ".join(CHECKS.kind_names())
        close = nearest_word(kind, [*CHECKS.kind_names(), *names])
        hint = f" (did you mean {close!r}?)" if close else ""
        text = (
            str(error)
            if kind in CHECKS.kind_names()
            else f"no check or kind {kind!r}; kinds: {kinds}{known}{hint}. "
            "A kind of your own is known from the file that has `checks_from`: -c FILE"
        )
        raise UsageError(text) from error
