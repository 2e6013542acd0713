"""Runs sentinel as a service, with its page, until it is stopped."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sentinel.alerting.signed_links import LinkSigner
from sentinel.clock import SystemClock
from sentinel.config.problems import ConfigError
from sentinel.config.settings import Settings, WebSettings
from sentinel.core.errors import SentinelError
from sentinel.engine.leader_election import wait_for_lead
from sentinel.engine.service import SentinelService
from sentinel.proc import threads
from sentinel.wiring import app, last_good, upgrade
from sentinel.wiring.commands import (
    lead_or_report,
    load_settings_or_report,
    make_engine,
    open_state_or_report,
    report_start_errors,
    start_leading,
)
from sentinel.wiring.preload import preload
from sentinel.wiring.runtime import build_runtime_config

if TYPE_CHECKING:
    from asyncio import Future

    from sentinel.engine.engine import Engine
    from sentinel.engine.runtime import RuntimeConfig
    from sentinel.web.server import WebServer


class NeedsRestart(SentinelError):
    """The new configuration needs a restart; a reload is not enough."""


def run_service(path: str | None, *, dry_run: bool, standby: bool = False) -> None:
    """Run the service until it is stopped. `standby`: while another one leads, wait to take over
    (always so if the state has a lease that expires)."""
    settings, invalid = load_settings_or_report(path, default=True)
    clock = SystemClock()
    store, notices = open_state_or_report(settings, clock)
    _print_welcome(settings)
    package = upgrade.make_package_watch(settings)

    async def serve_until_stopped() -> None:
        engine = make_engine(settings, store, clock, notices, dry_run, invalid)
        service = SentinelService(
            engine, lambda: _reload_config(path, settings, engine.world, clock, dry_run), package
        )
        service.install_signal_handlers()
        if not (standby or store.term):
            await lead_or_report(engine, settings, store)
        elif not await report_start_errors(
            settings,
            wait_for_lead(
                lambda: start_leading(engine, settings), service.is_stopped_within, store.term
            ),
        ):
            return
        loading = asyncio.ensure_future(_load_all(engine, settings))
        page = await _start_web_server(engine, settings, clock)
        written = _start_metrics_writer(engine, settings, clock)
        try:
            await service.run()
        finally:
            loading.cancel()
            if written is not None:
                written.cancel()
            if page is not None:
                await page.stop_server()
        if service.is_outdated:
            raise upgrade.NewVersion(
                "ended to be started again as the version that is installed now"
            )

    asyncio.run(serve_until_stopped())


def _reload_config(
    path: str | None, begun: Settings, before: RuntimeConfig, clock: SystemClock, dry_run: bool
) -> RuntimeConfig:
    """The runtime configuration of the file as it is now. Raises SentinelError.

    Settings that the process `begun` with stay until it ends: the state, which must stay that of
    the audit log, and the web server. If the file has errors, the former configuration stays,
    without actions."""
    try:
        settings = app.load_settings(path)
    except ConfigError as error:
        return replace(before, invalid=str(error), action_service=None)
    if app.get_state_location(settings) != app.get_state_location(begun):
        raise NeedsRestart("state: a new place for it needs a restart; a reload keeps the old one")
    last_good.store_last_good(settings)
    if (settings.web, settings.metrics) != (begun.web, begun.metrics):
        print("sentinel: web, metrics: restart sentinel to use the new settings", file=sys.stderr)
    fresh = build_runtime_config(settings, clock, dry_run, before.plan.cluster)
    return replace(fresh, unloaded=preload(settings))


async def _load_all(engine: Engine, settings: Settings) -> None:
    """Import all that the service may need, beside its first checks."""
    missing = await asyncio.wrap_future(threads.run_in_thread("preload", lambda: preload(settings)))
    engine.note_unloaded(missing)


async def _start_web_server(
    engine: Engine, settings: Settings, clock: SystemClock
) -> WebServer | None:
    """Start the web server if it is configured. If it cannot start, checks go on without it, and
    the result is None."""
    web = settings.web
    if web is None or not web.listen:
        return None
    try:
        from sentinel.web.server import CannotListen, WebServer
        from sentinel.wiring.page import build_site
    except ModuleNotFoundError as error:
        print(f"sentinel: web: {error}; the service watches without it", file=sys.stderr)
        return None

    key = web.secret.reveal().encode() if web.secret else b""
    signer = LinkSigner(web.url, key, float(web.links_last)) if key else None
    site, config = build_site(engine, settings, clock), engine.world.plan.config
    server = WebServer(engine, clock, signer, site, config)
    try:
        await server.start_server(*web.listen_address())
    except CannotListen as error:
        print(f"sentinel: {error}; the service watches without it", file=sys.stderr)
        return None
    if signer is not None:
        engine.set_link_signer(signer)
    print(f"sentinel: page: {_name_page(web, server.listen_port)}", file=sys.stderr)
    return server


def _name_page(web: WebSettings, port: int) -> str:
    """The address of the page in a browser: the configured one, else one with this host's name."""
    if web.url:
        return web.url
    host = web.listen_address()[0]
    host = os.uname().nodename if host in ("0.0.0.0", "::") else host  # noqa: S104 - compared
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _start_metrics_writer(
    engine: Engine, settings: Settings, clock: SystemClock
) -> Future[None] | None:
    """Write the metrics file again and again, if it is configured."""
    if settings.metrics is None:
        return None
    from sentinel.wiring.metrics_file import write_metrics_forever

    return asyncio.ensure_future(write_metrics_forever(engine, settings, clock))


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
