"""The wiring of what runs: a service, one pass, a round of sending."""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from sentinel.clock import SystemClock
from sentinel.config.problems import ConfigError
from sentinel.config.settings import Settings
from sentinel.core.errors import Fenced, SentinelError, StoreBusy, StoreError
from sentinel.wiring import app, last_good
from sentinel.wiring.runtime import world

if TYPE_CHECKING:
    from asyncio import Future

    from sentinel.alerting.state import Store
    from sentinel.core.model import Run
    from sentinel.engine.engine import Engine
    from sentinel.engine.runtime import World
    from sentinel.web.server import Server


Answer = TypeVar("Answer")


class NeedsRestart(SentinelError):
    """A new file asks for what a reload cannot do."""


def serve(path: str | None, *, dry_run: bool, standby: bool = False) -> None:
    """Run the service until it is told to stop. `standby`: where another leads, wait to take over
    (always so with a state whose lease expires, which is there for that)."""
    import asyncio

    from sentinel.engine.leader_election import take_over
    from sentinel.engine.service import Service

    settings, invalid = last_good.settings(path, default=True)
    clock = SystemClock()
    store, notices = _opened(settings, clock)
    _welcome(settings)

    async def main() -> None:
        engine = _engine(settings, store, clock, notices, dry_run, invalid)
        service = Service(engine, lambda: _anew(path, settings, engine.world, clock, dry_run))
        service.listen()
        if not (standby or store.term):
            await _begun(engine, settings, store)
        elif not await _telling(
            settings,
            take_over(lambda: _started(engine, settings), service.stopped_within, store.term),
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

    settings, invalid = last_good.settings(path)
    clock = SystemClock()
    store, notices = _opened(settings, clock)

    async def main() -> bool:
        engine = _engine(settings, store, clock, notices, False, invalid)
        await _begun(engine, settings, store)
        try:
            return await send(engine)
        finally:
            await engine.close()

    return asyncio.run(main())


def tick(
    path: str | None, *, dry_run: bool, everything: bool, delivering: bool = True, spacing: int = 0
) -> tuple[list[Run], bool, str]:
    """One pass; the runs made, whether all notifications were delivered, and why what it saw could
    not be kept, neither in the state nor in a journal. `spacing`: of passes that
    several hosts make; see told_elsewhere."""
    import asyncio

    from sentinel.engine.tick import tick as one_pass
    from sentinel.wiring import status

    settings, invalid = last_good.settings(path)
    clock = SystemClock()
    store, notices = _opened(settings, clock)

    async def main() -> tuple[list[Run], bool]:
        engine = _engine(settings, store, clock, notices, dry_run, invalid)
        await _begun(engine, settings, store)
        try:
            done = await one_pass(
                engine,
                clock.now(),
                everything=everything,
                delivering=delivering,
                spacing=spacing,
            )
            await status.write_metrics(engine, settings, clock)
            return done
        finally:
            await engine.close()

    runs, delivered = asyncio.run(main())
    return runs, delivered, lost(store)


def lost(store: Store) -> str:
    """Why what was written ends with this process; empty where it does not."""
    trouble = store.trouble
    return "" if trouble is None or store.safe else trouble.why


def _opened(settings: Settings, clock: SystemClock) -> tuple[Store, list[str]]:
    """The state; what keeps it from being opened is told first."""
    try:
        return app.open_state(settings, clock)
    except StoreError as error:
        import asyncio

        from sentinel.wiring import cannot_start

        asyncio.run(cannot_start.say(settings, error))
        raise


async def _started(engine: Engine, settings: Settings) -> None:
    """Leading; that it could not be, where that was told, is over."""
    from sentinel.wiring import cannot_start

    await engine.start(holder())
    await cannot_start.mended(settings, engine)


async def _begun(engine: Engine, settings: Settings, store: Store) -> None:
    """Leading; what keeps it from that is told first, also a leader that hangs."""

    async def start() -> None:
        try:
            await _started(engine, settings)
        except StoreBusy as error:
            from sentinel.wiring import cannot_start

            raise (
                cannot_start.silent(settings, store, error, SystemClock().now()) or error
            ) from None

    await _telling(settings, start())


async def _telling(settings: Settings, beginning: Coroutine[Any, Any, Answer]) -> Answer:
    """What keeps it from beginning is told first."""
    try:
        return await beginning
    except (StoreBusy, Fenced):
        raise
    except StoreError as error:
        from sentinel.wiring import cannot_start

        await cannot_start.say(settings, error)
        raise


def holder() -> str:
    """How this process names itself to others that want to lead."""
    job = os.environ.get("SLURM_JOB_ID", "")
    return f"{os.uname().nodename} pid {os.getpid()}" + (f" of job {job}" if job else "")


def _engine(
    settings: Settings,
    store: Store,
    clock: SystemClock,
    notices: list[str],
    dry: bool,
    invalid: str,
) -> Engine:
    from sentinel.engine.engine import Engine

    return Engine(world(settings, clock, dry, _cluster(store), invalid), store, clock, notices)


def _cluster(store: Store) -> str:
    """What it was called before; empty where nothing is known."""
    from sentinel.engine.pipeline import CLUSTER

    try:
        return str(store.memory(CLUSTER).get("name", ""))
    except StoreError:
        return ""


def _anew(
    path: str | None, begun: Settings, before: World, clock: SystemClock, dry_run: bool
) -> World:
    """The world of the file as it is now; raises SentinelError. What the process was `begun` with
    holds until it ends: its state, which the log of actions must not leave, and what it serves. A
    file with errors leaves the world as it is, but for actions."""
    try:
        settings = app.load_settings(path)
    except ConfigError as error:
        return replace(before, invalid=str(error), deeds=None)
    if app.state_of(settings) != app.state_of(begun):
        raise NeedsRestart("state: another one is taken up by a restart, not by a reload")
    last_good.keep(settings)
    if (settings.web, settings.metrics) != (begun.web, begun.metrics):
        print("sentinel: web, metrics: what is new is taken up by a restart", file=sys.stderr)
    return world(settings, clock, dry_run, before.plan.cluster)


async def _page(engine: Engine, settings: Settings, clock: SystemClock) -> Server | None:
    """Served where it is asked for. That it cannot be is no reason not to watch."""
    web = settings.web
    if web is None or not web.listen:
        return None
    from sentinel.alerting.signed_links import Signer
    from sentinel.wiring import status

    try:
        from sentinel.web.server import CannotListen, Server
    except ModuleNotFoundError as error:
        print(f"sentinel: web: {error}; the service watches without it", file=sys.stderr)
        return None

    key = web.secret.reveal().encode() if web.secret else b""
    signer = Signer(web.url, key, float(web.links_last)) if key else None
    server = Server(engine, clock, signer, status.site(engine, settings, clock))
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

    from sentinel.wiring import status

    return asyncio.ensure_future(status.keep_metrics(engine, settings, clock))


def _welcome(settings: Settings) -> None:
    count = len(settings.checks)
    known = f"{count} check{'s' * (count != 1)}; state in {app.state_shown(settings)}"
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
        "sentinel: set everything up with: sentinel init (a file alone: sentinel config init)",
        file=sys.stderr,
    )
