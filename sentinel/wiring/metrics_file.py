"""Writes the metrics file that node_exporter reads."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from sentinel.core.errors import StoreError
from sentinel.proc import threads
from sentinel.status.collect import read_status_inputs
from sentinel.status.run_reader import RunReader
from sentinel.status.types import Vitals
from sentinel.status.view_model import build_facts
from sentinel.web.textfile import write_textfile
from sentinel.wiring.status import (
    build_engine_surroundings,
    count_slurm_requests,
    open_logbook,
)

if TYPE_CHECKING:
    from sentinel.clock import SystemClock
    from sentinel.config.settings import Settings
    from sentinel.core.ports import Logbook
    from sentinel.engine.engine import Engine

_LOG = logging.getLogger("sentinel")
METRICS_INTERVAL_S = 15.0
"""Seconds between two metrics files of a service: the usual interval of Prometheus."""


async def write_metrics_forever(engine: Engine, settings: Settings, clock: SystemClock) -> None:
    """Write the metrics file again and again, as `write_metrics`, with the numbers of the service
    itself."""
    log, runs = open_logbook(settings), RunReader()
    while True:
        await asyncio.sleep(METRICS_INTERVAL_S)
        try:
            await write_metrics(
                engine, settings, clock, log, Vitals(slurm=count_slurm_requests(engine)), runs
            )
        except Exception:
            _LOG.exception("internal error; the metrics of the next round may come again")


async def write_metrics(
    engine: Engine,
    settings: Settings,
    clock: SystemClock,
    log: Logbook | None = None,
    vitals: Vitals | None = None,
    runs: RunReader | None = None,
) -> None:
    """Write the metrics file if it is configured. If it cannot be written, a warning is logged and
    checks go on; node_exporter reports the age of the file."""
    if settings.metrics is None:
        return
    around = build_engine_surroundings(engine.world, log or open_logbook(settings))
    try:
        material = await engine.read(
            lambda store: read_status_inputs(store, around, clock.now(), runs)
        )
        found, path = build_facts(material, vitals), settings.metrics.textfile
        # In a thread, so that a file system that hangs stops only the metrics.
        await asyncio.wrap_future(
            threads.run_in_thread("metrics", lambda: write_textfile(path, found))
        )
    except (OSError, StoreError) as error:
        why = getattr(error, "strerror", None) or error
        _LOG.warning("metrics: %s: not written: %s", settings.metrics.textfile, why)
