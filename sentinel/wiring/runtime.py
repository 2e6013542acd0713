"""The wiring of a configuration to the world that an engine works with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.settings import CheckConfig
from sentinel.wiring import app
from sentinel.wiring.lazy import LazyRemote, LazySlurm

if TYPE_CHECKING:
    from sentinel.actions.service import Deeds
    from sentinel.core.gpu_ledger import Gpus
    from sentinel.core.ports import Pulse
    from sentinel.engine.peer_check import PeerWatch
    from sentinel.engine.runtime import World


def world(
    settings: Settings, clock: SystemClock, dry_run: bool, cluster: str = "", invalid: str = ""
) -> World:
    """Everything a configuration turns into. `cluster`: its name so far, if Slurm does not say;
    `invalid`: why its file is not this one."""
    from sentinel.alerting.processor import Plan
    from sentinel.engine import housekeeping
    from sentinel.engine.cluster_snapshot import Sight
    from sentinel.engine.runtime import World

    slurm = LazySlurm(settings, settings.checks, clock)
    policies = {c.name: _policy(c, settings) for c in settings.checks}
    policies[housekeeping.NAME] = housekeeping.POLICY
    plan = Plan(
        cluster=settings.cluster or app.cluster_name(slurm, cluster),
        policies=policies,
        channels=[c.name for c in settings.channels],
        personal=[c.name for c in settings.channels if c.plugin.personal],
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
        clusters={n: LazySlurm(settings, settings.checks, clock, n) for n in settings.clusters},
        zone=plan.zone,
        common={c.name: c.common for c in settings.channels},
        pulse=_pulse(settings),
        remote=LazyRemote(settings),
        deeds=None if invalid else _deeds(settings, slurm, clock, dry_run),
        invalid=invalid,
        calendar=slurm if settings.slurm.maintenance else None,
        peer=_peer(settings),
        gpus=_gpus(settings),
        sight=Sight(slurm, asks=_shown(settings)),
        pulse_every=settings.heartbeat.every if settings.heartbeat else 300.0,
    )


def _policy(check: CheckConfig, settings: Settings) -> Any:
    from sentinel.alerting.state_machine import FlapPolicy, Policy

    common, flapping = check.common, settings.flapping
    return Policy(
        kind=common.kind,
        for_=common.for_,
        keep_firing_for=common.keep_firing_for,
        blind_after=common.blind_after,
        runbook=common.runbook,
        labels=common.labels,
        cluster=common.cluster,
        before=settings.clusters[common.cluster].before if common.cluster else "",
        flap=FlapPolicy(changes=flapping.changes, window=flapping.window),
    )


def _deeds(settings: Settings, slurm: LazySlurm, clock: SystemClock, dry_run: bool) -> Deeds | None:
    """Only where a check may ask for something: nobody else needs a log of actions kept."""
    from sentinel.actions.service import concerned

    if not any(concerned(check) for check in settings.checks):
        return None
    from sentinel.wiring import actions

    return actions.deeds(settings, slurm.snapshot(), clock, dry_run=dry_run)


def _gpus(settings: Settings) -> Gpus | None:
    """Only where a check keeps it."""
    kept = any(check.plugin.KEEPS_GPUS for check in settings.checks)
    return app.open_gpus(settings, later=True) if kept else None


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
    from sentinel.engine.peer_check import PeerWatch

    return PeerWatch(heartbeat.peer, float(heartbeat.peer_after))
