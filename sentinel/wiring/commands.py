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
from sentinel.wiring.runtime import build_runtime_config

if TYPE_CHECKING:
    from asyncio import Future

    from sentinel.alerting.state import Store
    from sentinel.core.model import CheckRun
    from sentinel.engine.engine import Engine
    from sentinel.engine.runtime import RuntimeConfig
    from sentinel.web.server import WebServer


Answer = TypeVar("Answer")


class NeedsRestart(SentinelError):
    """A new file asks for what a reload cannot do."""


def run_service(path: str | None, *, dry_run: bool, standby: bool = False) -> None:
    """Run the service until it is told to stop. `standby`: where another leads, wait to take over
    (always so with a state whose lease expires, which is there for that)."""
    import asyncio

    from sentinel.engine.leader_election import wait_for_lead
    from sentinel.engine.service import SentinelService

    settings, invalid = last_good.load_or_last_good(path, default=True)
    clock = SystemClock()
    store, notices = _open_state_or_report(settings, clock)
    _print_welcome(settings)

    async def serve_until_stopped() -> None:
        engine = _make_engine(settings, store, clock, notices, dry_run, invalid)
        service = SentinelService(
            engine, lambda: _reload_config(path, settings, engine.world, clock, dry_run)
        )
        service.install_signal_handlers()
        if not (standby or store.term):
            await _lead_or_report(engine, settings, store)
        elif not await _report_start_errors(
            settings,
            wait_for_lead(
                lambda: _start_leading(engine, settings), service.is_stopped_within, store.term
            ),
        ):
            return
        page = await _start_web_server(engine, settings, clock)
        written = _start_metrics_writer(engine, settings, clock)
        try:
            await service.run()
        finally:
            if written is not None:
                written.cancel()
            if page is not None:
                await page.stop_server()

    asyncio.run(serve_until_stopped())


def deliver_outbox(path: str | None) -> bool:
    """Send what waits in the outbox; whether nothing is left. Raises StoreBusy where a service or
    tick is at work, which sends by itself."""
    import asyncio

    from sentinel.engine.tick import send_waiting as send

    settings, invalid = last_good.load_or_last_good(path)
    clock = SystemClock()
    store, notices = _open_state_or_report(settings, clock)

    async def deliver_once() -> bool:
        engine = _make_engine(settings, store, clock, notices, False, invalid)
        await _lead_or_report(engine, settings, store)
        try:
            return await send(engine)
        finally:
            await engine.close()

    return asyncio.run(deliver_once())


def run_tick(
    path: str | None, *, dry_run: bool, everything: bool, delivering: bool = True, spacing: int = 0
) -> tuple[list[CheckRun], bool, str]:
    """One pass; the runs made, whether all notifications were delivered, and why what it saw could
    not be kept, neither in the state nor in a journal. `spacing`: of passes that
    several hosts make; see told_elsewhere."""
    import asyncio

    from sentinel.engine.tick import run_pass as one_pass
    from sentinel.wiring import status

    settings, invalid = last_good.load_or_last_good(path)
    clock = SystemClock()
    store, notices = _open_state_or_report(settings, clock)

    async def run_single_pass() -> tuple[list[CheckRun], bool]:
        engine = _make_engine(settings, store, clock, notices, dry_run, invalid)
        await _lead_or_report(engine, settings, store)
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

    runs, delivered = asyncio.run(run_single_pass())
    return runs, delivered, describe_lost_state(store)


def describe_lost_state(store: Store) -> str:
    """Why what was written ends with this process; empty where it does not."""
    trouble = store.trouble
    return "" if trouble is None or store.is_durable else trouble.why


def _open_state_or_report(settings: Settings, clock: SystemClock) -> tuple[Store, list[str]]:
    """The state; what keeps it from being opened is told first."""
    try:
        return app.open_state(settings, clock)
    except StoreError as error:
        import asyncio

        from sentinel.wiring import cannot_start

        asyncio.run(cannot_start.report_start_failure(settings, error))
        raise


async def _start_leading(engine: Engine, settings: Settings) -> None:
    """Leading; that it could not be, where that was told, is over."""
    from sentinel.wiring import cannot_start

    await engine.start_leading(name_lease_holder())
    await cannot_start.report_recovery(settings, engine)


async def _lead_or_report(engine: Engine, settings: Settings, store: Store) -> None:
    """Leading; what keeps it from that is told first, also a leader that hangs."""

    async def start_or_find_silent() -> None:
        try:
            await _start_leading(engine, settings)
        except StoreBusy as error:
            from sentinel.wiring import cannot_start

            raise (
                cannot_start.find_silent_leader(settings, store, error, SystemClock().now())
                or error
            ) from None

    await _report_start_errors(settings, start_or_find_silent())


async def _report_start_errors(
    settings: Settings, beginning: Coroutine[Any, Any, Answer]
) -> Answer:
    """What keeps it from beginning is told first."""
    try:
        return await beginning
    except (StoreBusy, Fenced):
        raise
    except StoreError as error:
        from sentinel.wiring import cannot_start

        await cannot_start.report_start_failure(settings, error)
        raise


def name_lease_holder() -> str:
    """How this process names itself to others that want to lead."""
    job = os.environ.get("SLURM_JOB_ID", "")
    return f"{os.uname().nodename} pid {os.getpid()}" + (f" of job {job}" if job else "")


def _make_engine(
    settings: Settings,
    store: Store,
    clock: SystemClock,
    notices: list[str],
    dry: bool,
    invalid: str,
) -> Engine:
    from sentinel.engine.engine import Engine

    return Engine(
        build_runtime_config(settings, clock, dry, _read_cluster_name(store), invalid),
        store,
        clock,
        notices,
    )


def _read_cluster_name(store: Store) -> str:
    """What it was called before; empty where nothing is known."""
    from sentinel.engine.pipeline import CLUSTER_KEY

    try:
        return str(store.read_memory(CLUSTER_KEY).get("name", ""))
    except StoreError:
        return ""


def _reload_config(
    path: str | None, begun: Settings, before: RuntimeConfig, clock: SystemClock, dry_run: bool
) -> RuntimeConfig:
    """The world of the file as it is now; raises SentinelError. What the process was `begun` with
    holds until it ends: its state, which the log of actions must not leave, and what it serves. A
    file with errors leaves the world as it is, but for actions."""
    try:
        settings = app.load_settings(path)
    except ConfigError as error:
        return replace(before, invalid=str(error), deeds=None)
    if app.get_state_location(settings) != app.get_state_location(begun):
        raise NeedsRestart("state: another one is taken up by a restart, not by a reload")
    last_good.store_last_good(settings)
    if (settings.web, settings.metrics) != (begun.web, begun.metrics):
        print("sentinel: web, metrics: what is new is taken up by a restart", file=sys.stderr)
    return build_runtime_config(settings, clock, dry_run, before.plan.cluster)


async def _start_web_server(
    engine: Engine, settings: Settings, clock: SystemClock
) -> WebServer | None:
    """Served where it is asked for. That it cannot be is no reason not to watch."""
    web = settings.web
    if web is None or not web.listen:
        return None
    from sentinel.alerting.signed_links import LinkSigner
    from sentinel.wiring import status

    try:
        from sentinel.web.server import CannotListen, WebServer
    except ModuleNotFoundError as error:
        print(f"sentinel: web: {error}; the service watches without it", file=sys.stderr)
        return None

    key = web.secret.reveal().encode() if web.secret else b""
    signer = LinkSigner(web.url, key, float(web.links_last)) if key else None
    server = WebServer(engine, clock, signer, status.build_site(engine, settings, clock))
    try:
        await server.start_server(*web.listen_address())
    except CannotListen as error:
        print(f"sentinel: {error}; the service watches without it", file=sys.stderr)
        return None
    if signer is not None:
        engine.set_link_signer(signer)
    return server


def _start_metrics_writer(
    engine: Engine, settings: Settings, clock: SystemClock
) -> Future[None] | None:
    """Written again and again where they are asked for."""
    if settings.metrics is None:
        return None
    import asyncio

    from sentinel.wiring import status

    return asyncio.ensure_future(status.write_metrics_forever(engine, settings, clock))


def _print_welcome(settings: Settings) -> None:
    count = len(settings.checks)
    known = f"{count} check{'s' * (count != 1)}; state in {app.describe_state_location(settings)}"
    if settings.path:
        print(f"sentinel: {settings.path}: {known}", file=sys.stderr)
        return
    slurm = (
        "its Slurm"
        if app.has_slurm()
        else "no Slurm found here (no slurm.conf), so none is watched"
    )
    print(
        f"sentinel: no configuration file: watching this machine's disks; {slurm}; "
        f"alerts on the terminal; {known}\n"
        "sentinel: set everything up with: sentinel init (a file alone: sentinel config init)",
        file=sys.stderr,
    )
