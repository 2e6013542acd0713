"""The wiring of what is shown: the state, the configuration and a running engine to facts."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sentinel.wiring import app

if TYPE_CHECKING:
    from sentinel.alerting.state import Store
    from sentinel.clock import SystemClock
    from sentinel.config.settings import Settings
    from sentinel.core.clock import Instant
    from sentinel.core.gpu_ledger import Gpus
    from sentinel.core.ports import Logbook
    from sentinel.engine.engine import Engine, World
    from sentinel.status.collect import Surroundings
    from sentinel.status.types import Count, Facts, Vitals
    from sentinel.web.site import Site

_LOG = logging.getLogger("sentinel")
WRITTEN = 15.0
"""Seconds between two text files of a service: as Prometheus usually scrapes."""


def seen(store: Store, around: Surroundings, now: Instant, notices: tuple[str, ...]) -> Facts:
    """The facts of the state alone, whether a service is at work or not. Raises StoreError."""
    from msgspec.structs import replace

    from sentinel.status.collect import gather
    from sentinel.status.view_model import facts

    return facts(replace(gather(store, around, now), notices=notices))


def of_settings(settings: Settings) -> Surroundings:
    """What the file says of what is shown; Slurm is not asked for the cluster's name, and no
    state is made where there is none."""
    from sentinel.core.due import next_run
    from sentinel.status.collect import Surroundings
    from sentinel.wiring import actions

    return Surroundings(
        checks=settings.checks,
        cluster=settings.cluster,
        zone=app.zone(settings),
        next_run=next_run,
        windows=settings.silences,
        logbook=actions.books(settings, dry_run=True),
        gpus=_gpus(settings) if app.has_state(settings) else None,
        pass_every=_pass_every(settings),
    )


def _pass_every(settings: Settings) -> float:
    """Seconds between the passes of the chain that is installed; 0 where none is."""
    from sentinel.chain.folder import Place
    from sentinel.core.errors import SentinelError

    try:
        return float(Place(app.chain_folder(settings)).chain().every)
    except SentinelError:
        return 0.0


def of_world(world: World, log: Logbook, evidence: str = "") -> Surroundings:
    """As a running engine has it, after every reload."""
    from sentinel.core.due import next_run
    from sentinel.status.collect import Surroundings

    return Surroundings(
        checks=tuple(world.checks.values()),
        cluster=world.plan.cluster,
        zone=world.zone,
        next_run=next_run,
        windows=tuple(world.plan.windows),
        logbook=log,
        gpus=world.gpus,
        evidence=evidence,
    )


def books(settings: Settings) -> Logbook:
    """The log of actions in the state."""
    from sentinel.store.opening import open_books

    return open_books(app.state_of(settings), later=True)


def site(engine: Engine, settings: Settings, clock: SystemClock) -> Site:
    """The status page with its API, for a server."""
    from msgspec.structs import replace

    from sentinel.web.auth import Gate
    from sentinel.web.others import Others
    from sentinel.web.site import Site
    from sentinel.web.snapshot_cache import Live

    log, web, kept = books(settings), settings.web, app.evidence(settings)
    others = Others(web.others if web else {}, clock)

    def around() -> Surroundings:
        return replace(of_world(engine.world, log, kept), clusters=others.facts())

    live = Live(engine, clock, around, lambda: _counts(engine))
    if web is None:
        return Site(live, Gate())
    token = web.token.reveal() if web.token else ""
    names = (os.uname().nodename, *web.hosts)
    rulers = frozenset(web.administrators)
    gate = Gate(token, web.url, web.user_header, names, rulers)
    return Site(live, gate, others=others)


async def keep_metrics(engine: Engine, settings: Settings, clock: SystemClock) -> None:
    """For ever: the text file, as `write_metrics`, with what only a service knows."""
    import asyncio

    from sentinel.status.types import Vitals

    log = books(settings)
    while True:
        await asyncio.sleep(WRITTEN)
        try:
            await write_metrics(engine, settings, clock, log, Vitals(slurm=_counts(engine)))
        except Exception:
            _LOG.exception("internal error; the metrics of the next round may come again")


async def write_metrics(
    engine: Engine,
    settings: Settings,
    clock: SystemClock,
    log: Logbook | None = None,
    vitals: Vitals | None = None,
) -> None:
    """The text file for node_exporter, where one is asked for. That it cannot be written is no
    reason not to watch: it is said, and node_exporter tells how old the file is."""
    if settings.metrics is None:
        return
    import asyncio

    from sentinel.core.errors import StoreError
    from sentinel.proc import threads
    from sentinel.status.collect import gather
    from sentinel.status.view_model import facts
    from sentinel.web.textfile import write

    around = of_world(engine.world, log or books(settings))
    try:
        material = await engine.read(lambda store: gather(store, around, clock.now()))
        found, path = facts(material, vitals), settings.metrics.textfile
        # In a thread: a file system that hangs must stop the metrics, and nothing else.
        await asyncio.wrap_future(threads.start("metrics", lambda: write(path, found)))
    except (OSError, StoreError) as error:
        why = getattr(error, "strerror", None) or error
        _LOG.warning("metrics: %s: not written: %s", settings.metrics.textfile, why)


def _counts(engine: Engine) -> dict[str, Count]:
    """How often Slurm was asked since the start, by command."""
    from sentinel.status.types import Count

    told: Callable[[], Mapping[str, Any]] = getattr(engine.world.slurm, "counts", dict)
    asked = told()
    return {
        name: Count(requests=c.requests, failures=c.failures, seconds=c.seconds)
        for name, c in asked.items()
    }


def _gpus(settings: Settings) -> Gpus | None:
    """The ledger, where a check keeps it."""
    kept = any(check.plugin.KEEPS_GPUS for check in settings.checks)
    return app.open_gpus(settings) if kept else None
