"""The wiring of what runs: a configuration to a world, an engine, a service or one pass."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from sentinel import app
from sentinel.clock import SystemClock
from sentinel.core.settings import CheckConfig, Settings
from sentinel.lazy import LazyRemote, LazySlurm

if TYPE_CHECKING:
    from asyncio import Future

    from sentinel.core.gpus import Gpus
    from sentinel.core.model import Run
    from sentinel.core.ports import Pulse, Store
    from sentinel.engine.deeds import Deeds
    from sentinel.engine.engine import Engine, World
    from sentinel.engine.peer import PeerWatch
    from sentinel.web.server import Server


def serve(path: str | None, *, dry_run: bool, standby: bool = False) -> None:
    """Run the service until it is told to stop. `standby`: where another leads, wait to take over
    (always so with a state whose lease expires, which is there for that)."""
    import asyncio

    from sentinel.engine.service import Service
    from sentinel.engine.standby import take_over

    settings = app.find_settings(path) or app.embedded()
    clock = SystemClock()
    store, notices = app.open_state(settings, clock)
    _welcome(settings)

    async def main() -> None:
        engine = _engine(settings, store, clock, notices, dry_run)
        service = Service(engine, lambda: world(app.load_settings(path), clock, dry_run))
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

    settings = app.load_settings(path)
    clock = SystemClock()
    store, notices = app.open_state(settings, clock)

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

    settings = app.load_settings(path)
    clock = SystemClock()
    store, notices = app.open_state(settings, clock)

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
        cluster=settings.cluster or app.cluster_name(slurm),
        policies=policies,
        channels=[c.name for c in settings.channels],
        routes=settings.routes,
        inhibit=settings.inhibit,
        windows=settings.silences,
        zone=app.zone(settings),
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


def holder() -> str:
    """How this process names itself to others that want to lead."""
    job = os.environ.get("SLURM_JOB_ID", "")
    return f"{os.uname().nodename} pid {os.getpid()}" + (f" of job {job}" if job else "")


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


def _gpus(settings: Settings) -> Gpus | None:
    """Only where a check keeps it."""
    kept = any(getattr(check.plugin, "KEEPS_GPUS", False) for check in settings.checks)
    return app.open_gpus(settings) if kept else None


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
        settings.slurm.command_prefix or app.slurm_here()
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


def _welcome(settings: Settings) -> None:
    count = len(settings.checks)
    known = f"{count} check{'s' * (count != 1)}; state in {app.state_of(settings)}"
    if settings.path:
        print(f"sentinel: {settings.path}: {known}", file=sys.stderr)
        return
    slurm = (
        "its Slurm"
        if app.slurm_here()
        else "no Slurm found here (no slurm.conf), so none is watched"
    )
    print(
        f"sentinel: no configuration file: watching this machine's disks; {slurm}; "
        f"alerts on the terminal; {known}\n"
        "sentinel: write a configuration with: sentinel config init",
        file=sys.stderr,
    )
