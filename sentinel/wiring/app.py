"""The wiring: the configuration that applies, the kinds that there are, one-shots, the state."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sentinel import actions, channels, checks
from sentinel.clock import SystemClock
from sentinel.config.registry import Registry, UnknownKind
from sentinel.config.settings import Settings
from sentinel.core.errors import ChannelError, SentinelError
from sentinel.core.kinds import Action, Channel
from sentinel.core.settings import CheckConfig, Common
from sentinel.core.text import visible
from sentinel.homes import own_folder
from sentinel.wiring.lazy import LazyRemote, LazySettings, LazySlurm

if TYPE_CHECKING:
    from datetime import tzinfo

    from sentinel.alerting.observations import Outcome
    from sentinel.alerting.state import Store
    from sentinel.core.gpu_ledger import Gpus
    from sentinel.core.model import Receipt
    from sentinel.core.ports import Slurm
    from sentinel.slurm.snapshot import Snapshot

CHECKS = Registry(checks.KINDS, checks.GROUP)
CHANNELS = Registry(channels.KINDS, channels.GROUP, Channel)
ACTIONS = Registry(actions.KINDS, actions.GROUP, Action)

__all__ = ["CHANNELS", "CHECKS", "ChannelError"]


SLURM_CONFS = (
    "/etc/slurm/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    "/run/slurm/conf/slurm.conf",
    "/usr/local/etc/slurm.conf",
)
"""Where distributions, configless clusters (slurm.conf(5)) and source builds have it."""


PATIENCE = 5.0
"""Seconds for a look beside the state, whose file system may hang."""


class BadCall(SentinelError):
    """The command line asks for what there is not."""

    exit_code = 64


class Unreadable(SentinelError):
    """The state may be there and cannot be read: nothing is known of what it holds."""

    exit_code = 3


class NoConfig(SentinelError):
    """No configuration file where one is needed."""

    exit_code = 78


def load_settings(path: str | None) -> Settings:
    """The configuration file that applies; raises NoConfig, ConfigError or Distrusted."""
    from sentinel.config.places import Hidden, searched

    try:
        settings = find_settings(path)
    except Hidden as error:
        raise NoConfig(str(error)) from error
    if settings is None:
        raise NoConfig(searched(os.environ))
    return settings


def settings_or_default(path: str | None, *, quiet: bool = False, sending: bool = True) -> Settings:
    """For what needs no configuration: the built-in default also in place of one that this user
    may not read, which is said."""
    found = readable_settings(path, quiet=quiet, sending=sending)
    return found or embedded(sending=sending)


def readable_settings(
    path: str | None, *, quiet: bool = False, sending: bool = True
) -> Settings | None:
    """The same, but None in place of the built-in default."""
    from sentinel.config.places import Hidden

    try:
        return find_settings(path, quiet=quiet, sending=sending)
    except Hidden as error:
        if not quiet:
            print(f"sentinel: going by the built-in default: {error}", file=sys.stderr)
        return None


def find_settings(
    path: str | None, *, quiet: bool = False, sending: bool = True
) -> Settings | None:
    """As load_settings, but None where there is no file, and raises Hidden. A file that was not
    named on the command line is named on stderr, so that nobody takes it for another (`quiet`:
    not so). Where nothing is sent the channels are left out: their modules are not imported."""
    from sentinel.config.places import find

    found = find(path, os.environ)
    if found is None:
        return None
    if not path and not quiet:
        print(f"sentinel: configuration: {visible(found)}", file=sys.stderr)
    return settings_from(found, sending=sending)


def settings_from(path: str, text: bytes | None = None, *, sending: bool = True) -> Settings:
    """Those of that file, or of a text in its place; raises ConfigError."""
    from sentinel.config.loader import load

    loaded = load(path, CHECKS, CHANNELS if sending else None, actions=ACTIONS, text=text)
    for warning in loaded.warnings:
        print(f"sentinel: {warning}", file=sys.stderr)
    return with_chain(loaded.settings)


def find_kinds(path: str | None = None) -> None:
    """Let the registry know the kinds of the `checks_from` of the file that applies, if one does,
    whatever else is wrong with it."""
    from sentinel.config.loader import load
    from sentinel.config.places import find

    with suppress(SentinelError, OSError):
        if found := find(path, os.environ):
            load(found, CHECKS, CHANNELS)


def chain_folder(settings: Settings) -> str:
    """Where `sentinel cron install` keeps its chain: beside a state on disk."""
    state = state_of(settings)
    return os.path.join(state_of(Settings()) if "://" in state else state, "chain")


def with_chain(settings: Settings) -> Settings:
    """With a check of the chain that runs in place of cron, where one is installed: what is
    missed while nothing runs is told without being configured."""
    folder = chain_folder(settings)
    if any(c.common.kind == "chain" for c in settings.checks) or not _is_there(
        os.path.join(folder, "chain.json")
    ):
        return settings
    from msgspec.structs import replace

    name = "chain" if all(c.name != "chain" for c in settings.checks) else "sentinel-chain"
    plugin = CHECKS.load("chain")(dir=folder)
    chain = CheckConfig(name=name, common=Common(kind="chain"), plugin=plugin)
    return replace(settings, checks=(*settings.checks, chain))


def _is_there(path: str) -> bool:
    """False too where its file system does not answer in time."""
    from sentinel.proc import threads

    with suppress(OSError):
        return threads.within(PATIENCE, "chain", lambda: os.path.exists(path))
    return False


def one_shot(kind: str, options: Mapping[str, list[str]], names: Sequence[str] = ()) -> CheckConfig:
    """A check of that kind with settings from the command line; raises BadOptions or BadCall."""
    from sentinel.config.options import one_shot as convert

    plugin = convert(_kind(kind, names), options)
    return CheckConfig(name=kind, common=Common(kind=kind), plugin=plugin)


def describe_options(kind: str, width: int = 100) -> list[str]:
    """Help lines for the options of a kind."""
    from textwrap import wrap

    from sentinel.config.options import help_lines

    cls = _kind(kind, ())
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


def look(check: CheckConfig, settings: Settings | None) -> Outcome:
    """One run of one check, without state."""
    from sentinel.core.ports import Context
    from sentinel.engine.runner import Runner

    clock = SystemClock()
    surroundings = LazySettings(lambda: settings or readable_settings(None, quiet=True))
    ctx = Context(
        name=check.name,
        now=clock.now(),
        limit=check.limit,
        slurm=LazySlurm(surroundings, [check], clock, check.common.cluster),
        remote=None if check.common.cluster else LazyRemote(surroundings),
        one_shot=True,
    )
    return Runner().run(check, ctx)


def zone(settings: Settings) -> tzinfo:
    """The configured time zone, or the host's."""
    if settings.timezone:
        from zoneinfo import ZoneInfo

        return ZoneInfo(settings.timezone)
    from sentinel.zones import here

    return here()


def why_utc(settings: Settings) -> str:
    """Why times are in UTC although nobody chose it; empty where they are not."""
    from sentinel import zones

    return "" if settings.timezone else zones.why_utc()


def open_state(
    settings: Settings, clock: SystemClock, *, mending: bool = True
) -> tuple[Store, list[str]]:
    """The store and what has to be told about it (a damaged file kept aside, where `mending`)."""
    from sentinel.store.opening import open_store

    opened = open_store(
        state_of(settings), clock.now(), mending=mending, spare=settings.spare_state
    )
    return opened.store, list(opened.notices)


def state_of(settings: Settings) -> str:
    """Where the state lies: as configured, else below $XDG_STATE_HOME."""
    return settings.state or os.path.join(
        own_folder("XDG_STATE_HOME", "~/.local/state"), "sentinel"
    )


def state_shown(settings: Settings) -> str:
    """The same for people: of a server without the password, and without the query, which may
    hold one too."""
    scheme, server, rest = state_of(settings).partition("://")
    if not server:
        return scheme
    user, at, host = rest.partition("?")[0].rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{host}"


def by_what(settings: Settings) -> str:
    """The configuration's file, for people."""
    return visible(settings.path) if settings.path else "the built-in default"


def evidence(settings: Settings) -> str:
    """Where bundles of evidence are kept: as configured, else below the state, or where it would lie if
    it is elsewhere."""
    if settings.evidence:
        return str(settings.evidence)
    state = state_of(settings)
    return os.path.join(state_of(Settings()) if "://" in state else state, "evidence")


def has_state(settings: Settings) -> bool:
    """Whether a service or tick has made the state already; of a server nobody can say so. Raises
    Unreadable where it cannot be seen: that is no state that is empty."""
    state = state_of(settings)
    if "://" in state:
        return True
    try:
        os.stat(os.path.join(state, "sentinel.db"))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unreadable(state, str(error.strerror)) from error
    return True


@contextmanager
def looking(settings: Settings) -> Iterator[None]:
    """Around what only looks at the state: Unreadable in place of what a service would wait for.
    A damaged state stays what it is."""
    from sentinel.store.errors import Refused, Unavailable

    try:
        yield
    except Refused as error:
        raise _unreadable(state_of(settings), str(error)) from error
    except Unavailable as error:
        raise Unreadable(str(error)) from error


def _unreadable(state: str, why: str) -> Unreadable:
    """With who may read it: whose the directory is that is in the way."""
    from sentinel.trust import asking_as, user_name

    place = os.path.join(os.path.abspath(state), "sentinel.db")
    while True:
        try:
            owner = os.stat(place).st_uid
        except OSError:
            place = os.path.dirname(place)
            continue
        break
    return Unreadable(
        f"the state {visible(state)} cannot be read: {why}; {visible(place)} belongs to "
        f"{visible(user_name(owner))}, who can: {asking_as(owner)}"
    )


def embedded(*, sending: bool = True) -> Settings:
    """What sentinel does without any file: local disks, Slurm if there, the terminal."""
    from sentinel.config.default import embedded_default

    return embedded_default(
        CHECKS, CHANNELS if sending else None, hostname=os.uname().nodename, slurm=slurm_here()
    )


def slurm_here() -> bool:
    """Whether this machine belongs to a Slurm cluster: client commands and a way to a slurm.conf."""
    from shutil import which

    if which("scontrol") is None:
        return False
    named = os.environ.get("SLURM_CONF") or os.environ.get("SLURM_CONF_SERVER")
    return bool(named) or any(os.path.exists(path) for path in SLURM_CONFS)


def _caller() -> str:
    """Who tests a channel: nobody else's mail is used for that."""
    import getpass

    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return str(os.geteuid())


async def send_test(channel: Any, settings: Settings) -> Receipt:
    """One message that says it is a test."""
    from sentinel.alerting.processor import iso
    from sentinel.core.model import Notification, Status

    clock = SystemClock()
    now = clock.now()
    at = iso(now, zone(settings))
    cluster = settings.cluster or cluster_name(LazySlurm(settings, [], clock))
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
                labels={"user": _caller()} if channel.personal else {},
            )
        ]
    )
    return receipt


def snapshot(settings: Settings, cluster: str = "") -> Snapshot:
    """Slurm as the configured checks would see it; nothing is asked yet."""
    return LazySlurm(settings, settings.checks, SystemClock(), cluster).snapshot()


def open_gpus(settings: Settings, *, later: bool = False) -> Gpus:
    """The ledger of GPUs in the state; `later` as in store.opening."""
    from sentinel.store.opening import open_gpus as opened

    return opened(state_of(settings), settings.lemons, later=later)


def cluster_name(slurm: Slurm, before: str = "") -> str:
    """What Slurm calls this cluster; where it does not say, its name `before`, or this host's."""
    from sentinel.core.errors import CannotTell

    name = ""
    with suppress(CannotTell):
        name = slurm.controller().cluster
    return name or before or os.uname().nodename


def _kind(kind: str, names: Sequence[str]) -> Any:
    from sentinel.config.problems import near

    try:
        return CHECKS.load(kind)
    except UnknownKind as error:
        known = f"; configured checks: {', '.join(names)}" if names else ""
        kinds = ", ".join(CHECKS.names())
        close = near(kind, [*CHECKS.names(), *names])
        hint = f" (did you mean {close!r}?)" if close else ""
        text = (
            str(error)
            if kind in CHECKS.names()
            else f"no check or kind {kind!r}; kinds: {kinds}{known}{hint}. "
            "A kind of your own is known from the file that has `checks_from`: -c FILE"
        )
        raise BadCall(text) from error
