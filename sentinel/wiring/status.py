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
    from sentinel.core.gpu_ledger import GpuLedger
    from sentinel.core.ports import Logbook
    from sentinel.engine.engine import Engine, RuntimeConfig
    from sentinel.status.collect import StatusSettings
    from sentinel.status.types import Facts, RequestStats, Vitals
    from sentinel.web.site import Site

_LOG = logging.getLogger("sentinel")
METRICS_INTERVAL_S = 15.0
"""Seconds between two text files of a service: as Prometheus usually scrapes."""


def read_state_facts(
    store: Store, around: StatusSettings, now: Instant, notices: tuple[str, ...]
) -> Facts:
    """The facts of the state alone, whether a service is at work or not. Raises StoreError."""
    from msgspec.structs import replace

    from sentinel.status.collect import read_status_inputs
    from sentinel.status.view_model import build_facts

    return build_facts(replace(read_status_inputs(store, around, now), notices=notices))


def build_file_surroundings(settings: Settings) -> StatusSettings:
    """What the file says of what is shown; Slurm is not asked for the cluster's name, and no
    state is made where there is none."""
    from sentinel.core.due import get_next_run
    from sentinel.status.collect import StatusSettings
    from sentinel.wiring import actions

    return StatusSettings(
        checks=settings.checks,
        cluster=settings.cluster,
        zone=app.get_time_zone(settings),
        next_run=get_next_run,
        windows=settings.silences,
        logbook=actions.open_audit_log(settings, dry_run=True),
        gpus=_open_gpus_if_kept(settings) if app.has_state(settings) else None,
        pass_every=_read_pass_interval(settings),
    )


def _read_pass_interval(settings: Settings) -> float:
    """Seconds between the passes of the chain that is installed; 0 where none is."""
    from sentinel.chain.folder import ChainFolder
    from sentinel.core.errors import SentinelError

    try:
        return float(ChainFolder(app.get_chain_folder(settings)).read_chain().every)
    except SentinelError:
        return 0.0


def build_engine_surroundings(
    world: RuntimeConfig, log: Logbook, evidence: str = ""
) -> StatusSettings:
    """As a running engine has it, after every reload."""
    from sentinel.core.due import get_next_run
    from sentinel.status.collect import StatusSettings

    return StatusSettings(
        checks=tuple(world.checks.values()),
        cluster=world.plan.cluster,
        zone=world.zone,
        next_run=get_next_run,
        windows=tuple(world.plan.windows),
        logbook=log,
        gpus=world.gpus,
        evidence=evidence,
    )


def open_logbook(settings: Settings) -> Logbook:
    """The log of actions in the state."""
    from sentinel.store.opening import open_sql_audit_log

    return open_sql_audit_log(app.get_state_location(settings), later=True)


def build_site(engine: Engine, settings: Settings, clock: SystemClock) -> Site:
    """The status page with its API, for a server."""
    from msgspec.structs import replace

    from sentinel.web.auth import Gate
    from sentinel.web.other_clusters import OtherClusters
    from sentinel.web.site import Site
    from sentinel.web.snapshot_cache import LiveFacts

    log, web, kept = open_logbook(settings), settings.web, app.get_evidence_folder(settings)
    others = OtherClusters(web.others if web else {}, clock)

    def build_surroundings() -> StatusSettings:
        return replace(
            build_engine_surroundings(engine.world, log, kept), clusters=others.list_cluster_facts()
        )

    live = LiveFacts(engine, clock, build_surroundings, lambda: _count_slurm_requests(engine))
    if web is None:
        return Site(live, Gate())
    token = web.token.reveal() if web.token else ""
    names = (os.uname().nodename, *web.hosts)
    rulers = frozenset(web.administrators)
    gate = Gate(token, web.url, web.user_header, names, rulers)
    return Site(live, gate, others=others)


async def write_metrics_forever(engine: Engine, settings: Settings, clock: SystemClock) -> None:
    """For ever: the text file, as `write_metrics`, with what only a service knows."""
    import asyncio

    from sentinel.status.types import Vitals

    log = open_logbook(settings)
    while True:
        await asyncio.sleep(METRICS_INTERVAL_S)
        try:
            await write_metrics(
                engine, settings, clock, log, Vitals(slurm=_count_slurm_requests(engine))
            )
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
    from sentinel.status.collect import read_status_inputs
    from sentinel.status.view_model import build_facts
    from sentinel.web.textfile import write_textfile

    around = build_engine_surroundings(engine.world, log or open_logbook(settings))
    try:
        material = await engine.read(lambda store: read_status_inputs(store, around, clock.now()))
        found, path = build_facts(material, vitals), settings.metrics.textfile
        # In a thread: a file system that hangs must stop the metrics, and nothing else.
        await asyncio.wrap_future(
            threads.run_in_thread("metrics", lambda: write_textfile(path, found))
        )
    except (OSError, StoreError) as error:
        why = getattr(error, "strerror", None) or error
        _LOG.warning("metrics: %s: not written: %s", settings.metrics.textfile, why)


def _count_slurm_requests(engine: Engine) -> dict[str, RequestStats]:
    """How often Slurm was asked since the start, by command."""
    from sentinel.status.types import RequestStats

    told: Callable[[], Mapping[str, Any]] = getattr(engine.world.slurm, "counts", dict)
    asked = told()
    return {
        name: RequestStats(requests=c.requests, failures=c.failures, seconds=c.seconds)
        for name, c in asked.items()
    }


def _open_gpus_if_kept(settings: Settings) -> GpuLedger | None:
    """The ledger, where a check keeps it."""
    kept = any(check.plugin.KEEPS_GPUS for check in settings.checks)
    return app.open_gpu_ledger(settings) if kept else None
