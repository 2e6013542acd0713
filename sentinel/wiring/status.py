"""Makes the facts that are shown from the state, the configuration and a running engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sentinel.config.places import hidden_config_path
from sentinel.core.due import get_next_run
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible
from sentinel.status.collect import StatusSettings, read_status_inputs
from sentinel.status.run_reader import RunReader
from sentinel.status.types import RequestStats
from sentinel.store.opening import open_sql_audit_log
from sentinel.wiring import app
from sentinel.wiring.audit_log import open_audit_log

if TYPE_CHECKING:
    from sentinel.alerting.state import Store
    from sentinel.chain.folder import ChainFolder
    from sentinel.config.settings import Settings
    from sentinel.core.clock import Instant
    from sentinel.core.gpu_ledger import GpuLedger
    from sentinel.core.ports import Logbook
    from sentinel.engine.engine import Engine, RuntimeConfig
    from sentinel.status.types import Facts


def read_state_facts(
    store: Store,
    around: StatusSettings,
    now: Instant,
    notices: tuple[str, ...],
    runs: RunReader | None = None,
) -> Facts:
    """Facts from the state alone, whether a service runs or not. Raises StoreError."""
    from sentinel.status.view_model import build_facts

    return build_facts(replace(read_status_inputs(store, around, now, runs), notices=notices))


def build_file_surroundings(settings: Settings) -> StatusSettings:
    """The facts' surroundings from the configuration file. Slurm is not asked for the cluster's
    name, and no state is created."""
    return StatusSettings(
        checks=settings.checks,
        cluster=settings.cluster,
        zone=app.get_time_zone(settings),
        next_run=get_next_run,
        windows=settings.silences,
        logbook=open_audit_log(settings, dry_run=True),
        gpus=_open_gpus_if_kept(settings) if app.has_state(settings) else None,
        pass_every=read_pass_interval(settings),
        config=hidden_config_path(settings.path, os.environ),
    )


def _open_chain_folder(settings: Settings) -> ChainFolder:
    from sentinel.chain.folder import ChainFolder  # chains may be missing in this installation

    return ChainFolder(app.get_chain_folder(settings))


def read_pass_interval(settings: Settings) -> float:
    """Seconds between the passes of the installed chain; 0 if none is installed."""
    try:
        return float(_open_chain_folder(settings).read_chain().every)
    except SentinelError:
        return 0.0


def read_first_failure(settings: Settings, now: float) -> str:
    """Why the installed chain has made no pass yet, and what to do; empty if it has."""
    from sentinel.chain.journal import describe_first_failure

    place = _open_chain_folder(settings)
    try:
        why = describe_first_failure(place.read_chain(), place.read_journal(), now)
    except SentinelError:
        return ""
    return f"{visible(why)}; look at: sentinel cron status" if why else ""


def list_delivery_problems(
    settings: Settings, load_channels: Callable[[], Settings]
) -> tuple[str, ...]:
    """The channels whose messages cannot be sent from the host where the passes of the chain run.

    `load_channels` is called only if there are some; it may raise a SentinelError."""

    place = _open_chain_folder(settings)
    if not place.has_proofs():
        return ()
    from sentinel.chain.proofs import (  # most states do not need it
        channels_to_prove,
        describe_problems,
        read_problems,
        read_proofs,
    )

    problems = describe_problems(read_proofs(place))
    if problems:
        with suppress(SentinelError):
            problems = read_problems(place, channels_to_prove(load_channels()))
    return tuple(problems)


def build_engine_surroundings(
    world: RuntimeConfig, log: Logbook, evidence: str = ""
) -> StatusSettings:
    """The surroundings from a running engine; they change with every reload."""
    return StatusSettings(
        checks=tuple(world.checks.values()),
        cluster=world.plan.cluster,
        zone=world.zone,
        next_run=get_next_run,
        windows=tuple(world.plan.windows),
        logbook=log,
        gpus=world.gpus,
        evidence=evidence,
        config=world.plan.config,
    )


def open_logbook(settings: Settings) -> Logbook:
    """The audit log of actions in the state."""
    return open_sql_audit_log(app.get_state_location(settings), later=True)


def count_slurm_requests(engine: Engine) -> dict[str, RequestStats]:
    """Requests to Slurm since the start, by command."""
    told: Callable[[], Mapping[str, Any]] = getattr(engine.world.slurm, "counts", dict)
    asked = told()
    return {
        name: RequestStats(requests=c.requests, failures=c.failures, seconds=c.seconds)
        for name, c in asked.items()
    }


def _open_gpus_if_kept(settings: Settings) -> GpuLedger | None:
    """The ledger of GPUs. None if no check uses it."""
    kept = any(check.plugin.KEEPS_GPUS for check in settings.checks)
    return app.open_gpu_ledger(settings) if kept else None
