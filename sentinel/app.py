"""The only wiring: configuration to ports, checks, channels and the engine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sentinel import actions, channels, checks
from sentinel.clock import SystemClock
from sentinel.core.errors import ChannelError, SentinelError
from sentinel.core.settings import CheckConfig, Common, Settings
from sentinel.lazy import LazyRemote, LazySettings, LazySlurm, users_of
from sentinel.registry import Registry, UnknownKind

if TYPE_CHECKING:
    from asyncio import Future
    from datetime import tzinfo

    from sentinel.core.gpus import Gpus
    from sentinel.core.model import Receipt, Run
    from sentinel.core.outcome import Outcome
    from sentinel.core.ports import Pulse, Slurm, Store
    from sentinel.engine.deeds import Deeds
    from sentinel.engine.engine import Engine, World
    from sentinel.engine.peer import PeerWatch
    from sentinel.slurm.snapshot import Snapshot
    from sentinel.web.server import Server

CHECKS = Registry(checks.KINDS, checks.GROUP)
CHANNELS = Registry(channels.KINDS, channels.GROUP)
ACTIONS = Registry(actions.KINDS, actions.GROUP)

__all__ = ["CHANNELS", "CHECKS", "ChannelError"]


SLURM_CONFS = (
    "/etc/slurm/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",
    "/run/slurm/conf/slurm.conf",
    "/usr/local/etc/slurm.conf",
)
"""Where distributions, configless clusters (slurm.conf(5)) and source builds have it."""


class BadCall(SentinelError):
    """The command line asks for what there is not."""

    exit_code = 64


class NoConfig(SentinelError):
    """No configuration file where one is needed."""

    exit_code = 78


def load_settings(path: str | None) -> Settings:
    """The configuration file that applies; raises NoConfig or ConfigError."""
    settings = find_settings(path)
    if settings is None:
        from sentinel.config import searched

        raise NoConfig(searched(os.environ))
    return settings


def find_settings(path: str | None) -> Settings | None:
    """As load_settings, but None where there is no file."""
    from sentinel import config

    found = config.find(path, os.environ)
    if found is None:
        return None
    loaded = config.load(found, CHECKS, CHANNELS, check_cron=_check_cron, actions=ACTIONS)
    for warning in loaded.warnings:
        print(f"sentinel: {warning}", file=sys.stderr)
    return with_chain(loaded.settings)


def chain_folder(settings: Settings) -> str:
    """Where `sentinel cron install` keeps its chain: beside a state on disk."""
    state = state_of(settings)
    return os.path.join(state_of(Settings()) if "://" in state else state, "chain")


def with_chain(settings: Settings) -> Settings:
    """With a check of the chain that runs in place of cron, where one is installed: what is
    missed while nothing runs is told without being configured."""
    folder = chain_folder(settings)
    if any(c.common.kind == "chain" for c in settings.checks) or not os.path.exists(
        os.path.join(folder, "chain.json")
    ):
        return settings
    from msgspec.structs import replace

    name = "chain" if all(c.name != "chain" for c in settings.checks) else "sentinel-chain"
    plugin = CHECKS.load("chain")(dir=folder)
    chain = CheckConfig(name=name, common=Common(kind="chain"), plugin=plugin)
    return replace(settings, checks=(*settings.checks, chain))


def one_shot(kind: str, options: Mapping[str, list[str]], names: Sequence[str] = ()) -> CheckConfig:
    """A check of that kind with settings from the command line; raises BadOptions or BadCall."""
    from sentinel.config import one_shot as convert

    plugin = convert(_kind(kind, names), options)
    return CheckConfig(name=kind, common=Common(kind=kind), plugin=plugin)


def describe_options(kind: str) -> list[str]:
    """Help lines for the options of a kind."""
    from sentinel.config import options_of

    cls = _kind(kind, ())
    lines = [f"sentinel check {kind}: {(cls.__doc__ or '').strip().splitlines()[0]}", ""]
    for option, text, repeatable in options_of(cls):
        lines.append(f"  --{option:<18} {text}{' (repeatable)' if repeatable else ''}")
    return [*lines, "", "  --json, --nagios, --timeout TIME, -c FILE"]


def look(check: CheckConfig, settings: Settings | None) -> Outcome:
    """One run of one check, without state."""
    from sentinel.core.ports import Context
    from sentinel.engine.runner import Runner, limit

    clock = SystemClock()
    surroundings = LazySettings(lambda: settings or find_settings(None))
    ctx = Context(
        name=check.name,
        now=clock.now(),
        limit=limit(check),
        slurm=LazySlurm(surroundings, [check], clock),
        remote=LazyRemote(surroundings),
        one_shot=True,
    )
    return Runner().run(check, ctx)


def serve(path: str | None, *, dry_run: bool, standby: bool = False) -> None:
    """Run the service until it is told to stop. `standby`: where another leads, wait to take over
    (always so with a state whose lease expires, which is there for that)."""
    import asyncio

    from sentinel.engine.service import Service
    from sentinel.engine.standby import take_over

    settings = find_settings(path) or embedded()
    clock = SystemClock()
    store, notices = open_state(settings, clock)
    _welcome(settings)

    async def main() -> None:
        engine = _engine(settings, store, clock, notices, dry_run)
        service = Service(engine, lambda: world(load_settings(path), clock, dry_run))
        service.listen()
        if not (standby or store.term):
            await engine.start(holder())
        elif not await take_over(
            lambda: engine.start(holder()), service.stopped_within, store.term
        ):
            return
        page = await _page(engine, settings, clock)
        written = _metrics(engine, settings, clock)
        try:
            await service.run()
        finally:
            if written is not None:
                written.cancel()
            if page is not None:
                await page.stop()

    asyncio.run(main())


def deliver(path: str | None) -> bool:
    """Send what waits in the outbox; whether nothing is left. Raises StoreBusy where a service or
    tick is at work, which sends by itself."""
    import asyncio

    from sentinel.engine.tick import deliver as send

    settings = load_settings(path)
    clock = SystemClock()
    store, notices = open_state(settings, clock)

    async def main() -> bool:
        engine = _engine(settings, store, clock, notices, False)
        await engine.start(holder())
        try:
            return await send(engine)
        finally:
            await engine.close()

    return asyncio.run(main())


def tick(
    path: str | None, *, dry_run: bool, everything: bool, delivering: bool = True
) -> tuple[list[Run], bool]:
    """One pass; the runs made and whether all notifications were delivered."""
    import asyncio

    from sentinel import show
    from sentinel.engine.tick import tick as one_pass

    settings = load_settings(path)
    clock = SystemClock()
    store, notices = open_state(settings, clock)

    async def main() -> tuple[list[Run], bool]:
        engine = _engine(settings, store, clock, notices, dry_run)
        await engine.start(holder())
        try:
            done = await one_pass(engine, clock.now(), everything=everything, delivering=delivering)
            await show.write_metrics(engine, settings, clock)
            return done
        finally:
            await engine.close()

    return asyncio.run(main())


def world(settings: Settings, clock: SystemClock, dry_run: bool) -> World:
    """Everything a configuration turns into."""
    from sentinel.core.digest import Plan
    from sentinel.engine import selfcheck
    from sentinel.engine.engine import World
    from sentinel.engine.sight import Sight

    slurm = LazySlurm(settings, settings.checks, clock)
    policies = {c.name: _policy(c, settings) for c in settings.checks}
    policies[selfcheck.NAME] = selfcheck.POLICY
    plan = Plan(
        cluster=settings.cluster or _cluster_name(slurm),
        policies=policies,
        channels=[c.name for c in settings.channels],
        routes=settings.routes,
        inhibit=settings.inhibit,
        windows=settings.silences,
        zone=zone(settings),
        dry_run=dry_run,
    )
    return World(
        checks={c.name: c for c in settings.checks},
        channels={c.name: c.plugin for c in settings.channels},
        plan=plan,
        slurm=slurm,
        zone=plan.zone,
        common={c.name: c.common for c in settings.channels},
        pulse=_pulse(settings),
        remote=LazyRemote(settings),
        deeds=_deeds(settings, slurm, clock, dry_run),
        calendar=slurm if settings.slurm.maintenance else None,
        peer=_peer(settings),
        gpus=_gpus(settings),
        sight=Sight(slurm, asks=_shown(settings)),
        pulse_every=settings.heartbeat.every if settings.heartbeat else 300.0,
    )


def zone(settings: Settings) -> tzinfo:
    """The configured time zone, or the host's."""
    if settings.timezone:
        from zoneinfo import ZoneInfo

        return ZoneInfo(settings.timezone)
    from tzlocal import get_localzone

    return get_localzone()


def open_state(settings: Settings, clock: SystemClock) -> tuple[Store, list[str]]:
    """The store and what has to be told about it (a damaged file kept aside)."""
    from sentinel.store.opening import open_store

    opened = open_store(state_of(settings), clock.now())
    return opened.store, list(opened.notices)


def state_of(settings: Settings) -> str:
    """Where the state lies: as configured, else below $XDG_STATE_HOME."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return settings.state or os.path.join(base, "sentinel")


def evidence(settings: Settings) -> str:
    """Where bundles of evidence are kept: beside the state, or where it would lie if it is elsewhere."""
    state = state_of(settings)
    return os.path.join(state_of(Settings()) if "://" in state else state, "evidence")


def has_state(settings: Settings) -> bool:
    """Whether a service or tick has made the state already; of a server nobody can say so."""
    state = state_of(settings)
    return "://" in state or os.path.exists(os.path.join(state, "sentinel.db"))


def holder() -> str:
    """How this process names itself to others that want to lead."""
    job = os.environ.get("SLURM_JOB_ID", "")
    return f"{os.uname().nodename} pid {os.getpid()}" + (f" of job {job}" if job else "")


def embedded() -> Settings:
    """What sentinel does without any file: local disks, Slurm if there, the terminal."""
    from sentinel.config import embedded_default

    return embedded_default(CHECKS, CHANNELS, hostname=os.uname().nodename, slurm=slurm_here())


def slurm_here() -> bool:
    """Whether this machine belongs to a Slurm cluster: client commands and a way to a slurm.conf."""
    from shutil import which

    if which("scontrol") is None:
        return False
    named = os.environ.get("SLURM_CONF") or os.environ.get("SLURM_CONF_SERVER")
    return bool(named) or any(os.path.exists(path) for path in SLURM_CONFS)


async def send_test(channel: Any, settings: Settings) -> Receipt:
    """One message that says it is a test."""
    from sentinel.core.digest import iso
    from sentinel.core.model import Notification, Status

    clock = SystemClock()
    now = clock.now()
    at = iso(now, zone(settings))
    cluster = settings.cluster or _cluster_name(LazySlurm(settings, [], clock))
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
            )
        ]
    )
    return receipt


def snapshot(settings: Settings) -> Snapshot:
    """Slurm as the configured checks would see it; nothing is asked yet."""
    from sentinel.slurm import connect

    return connect(settings.slurm, users_of(settings.checks), 60.0, SystemClock())


def _engine(
    settings: Settings, store: Store, clock: SystemClock, notices: list[str], dry: bool
) -> Engine:
    from sentinel.engine.engine import Engine

    return Engine(world(settings, clock, dry), store, clock, notices)


def _policy(check: CheckConfig, settings: Settings) -> Any:
    from sentinel.core.flapping import FlapPolicy
    from sentinel.core.lifecycle import Policy

    common, flapping = check.common, settings.flapping
    return Policy(
        kind=common.kind,
        for_=common.for_,
        keep_firing_for=common.keep_firing_for,
        blind_after=common.blind_after,
        runbook=common.runbook,
        labels=common.labels,
        flap=FlapPolicy(changes=flapping.changes, window=flapping.window),
    )


def _deeds(settings: Settings, slurm: LazySlurm, clock: SystemClock, dry_run: bool) -> Deeds | None:
    """Only where a check may ask for something: nobody else needs a log of actions kept."""
    from sentinel.engine.deeds import concerned

    if not any(concerned(check) for check in settings.checks):
        return None
    from sentinel import hands

    return hands.deeds(settings, slurm.snapshot(), clock, dry_run=dry_run)


def open_gpus(settings: Settings) -> Gpus:
    """The ledger of GPUs in the state."""
    from sentinel.store.opening import open_gpus as opened

    return opened(state_of(settings), settings.lemons)


def _gpus(settings: Settings) -> Gpus | None:
    """Only where a check keeps it."""
    kept = any(getattr(check.plugin, "KEEPS_GPUS", False) for check in settings.checks)
    return open_gpus(settings) if kept else None


async def _page(engine: Engine, settings: Settings, clock: SystemClock) -> Server | None:
    """Served where it is asked for. That it cannot be is no reason not to watch."""
    web = settings.web
    if web is None or not web.listen:
        return None
    from sentinel import show
    from sentinel.core.links import Signer
    from sentinel.web.server import CannotListen, Server

    key = web.secret.reveal().encode() if web.secret else b""
    signer = Signer(web.url, key, float(web.links_last)) if key else None
    server = Server(engine, clock, signer, show.site(engine, settings, clock))
    try:
        await server.start(*web.address())
    except CannotListen as error:
        print(f"sentinel: {error}; the service watches without it", file=sys.stderr)
        return None
    if signer is not None:
        engine.sign(signer)
    return server


def _metrics(engine: Engine, settings: Settings, clock: SystemClock) -> Future[None] | None:
    """Written again and again where they are asked for."""
    if settings.metrics is None:
        return None
    import asyncio

    from sentinel import show

    return asyncio.ensure_future(show.keep_metrics(engine, settings, clock))


def _shown(settings: Settings) -> bool:
    """Whether somebody looks at all nodes: then Slurm is asked for them, where there is one."""
    page = settings.web is not None and bool(settings.web.listen)
    return (page or settings.metrics is not None) and bool(
        settings.slurm.command_prefix or slurm_here()
    )


def _pulse(settings: Settings) -> Pulse | None:
    if settings.heartbeat is None:
        return None
    from sentinel.channels.heartbeat import pulse

    return pulse(settings.heartbeat)


def _peer(settings: Settings) -> PeerWatch | None:
    heartbeat = settings.heartbeat
    if heartbeat is None or not heartbeat.peer:
        return None
    from sentinel.engine.peer import PeerWatch

    return PeerWatch(heartbeat.peer, float(heartbeat.peer_after))


def _cluster_name(slurm: Slurm) -> str:
    from sentinel.core.errors import CannotTell

    try:
        return slurm.controller().cluster or os.uname().nodename
    except CannotTell:
        return os.uname().nodename


def _kind(kind: str, names: Sequence[str]) -> Any:
    try:
        return CHECKS.load(kind)
    except UnknownKind as error:
        known = f"; configured checks: {', '.join(names)}" if names else ""
        kinds = ", ".join(CHECKS.names())
        text = (
            str(error)
            if kind in CHECKS.names()
            else f"no check or kind {kind!r}; kinds: {kinds}{known}"
        )
        raise BadCall(text) from error


def _check_cron(text: str) -> None:
    from sentinel.core.cron import parse

    parse(text)


def _welcome(settings: Settings) -> None:
    count = len(settings.checks)
    known = f"{count} check{'s' * (count != 1)}; state in {state_of(settings)}"
    if settings.path:
        print(f"sentinel: {settings.path}: {known}", file=sys.stderr)
        return
    slurm = (
        "its Slurm" if slurm_here() else "no Slurm found here (no slurm.conf), so none is watched"
    )
    print(
        f"sentinel: no configuration file: watching this machine's disks; {slurm}; "
        f"alerts on the terminal; {known}\n"
        "sentinel: write a configuration with: sentinel config init",
        file=sys.stderr,
    )
