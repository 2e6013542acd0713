"""The wiring of a configuration to the world that an engine works with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.settings import CheckConfig
from sentinel.wiring import app
from sentinel.wiring.lazy import LazyRemote, LazySlurm

if TYPE_CHECKING:
    from sentinel.actions.service import ActionService
    from sentinel.core.gpu_ledger import GpuLedger
    from sentinel.core.ports import Pulse
    from sentinel.engine.peer_check import PeerWatch
    from sentinel.engine.runtime import RuntimeConfig


def build_runtime_config(
    settings: Settings, clock: SystemClock, dry_run: bool, cluster: str = "", invalid: str = ""
) -> RuntimeConfig:
    """Everything a configuration turns into. `cluster`: its name so far, if Slurm does not say;
    `invalid`: why its file is not this one."""
    from sentinel.alerting.processor import NotificationPlan
    from sentinel.engine import housekeeping
    from sentinel.engine.cluster_snapshot import ClusterPoller
    from sentinel.engine.runtime import RuntimeConfig

    slurm = LazySlurm(settings, settings.checks, clock)
    policies = {c.name: _build_policy(c, settings) for c in settings.checks}
    policies[housekeeping.SELF_CHECK_NAME] = housekeeping.SELF_CHECK_POLICY
    plan = NotificationPlan(
        cluster=settings.cluster or app.find_cluster_name(slurm, cluster),
        policies=policies,
        channels=[c.name for c in settings.channels],
        personal=[c.name for c in settings.channels if c.plugin.personal],
        routes=settings.routes,
        inhibit=settings.inhibit,
        windows=settings.silences,
        zone=app.get_time_zone(settings),
        dry_run=dry_run,
    )
    return RuntimeConfig(
        checks={c.name: c for c in settings.checks},
        channels={c.name: c.plugin for c in settings.channels},
        plan=plan,
        slurm=slurm,
        clusters={n: LazySlurm(settings, settings.checks, clock, n) for n in settings.clusters},
        zone=plan.zone,
        common={c.name: c.common for c in settings.channels},
        pulse=_make_pulse(settings),
        remote=LazyRemote(settings),
        deeds=None if invalid else _make_actions_if_used(settings, slurm, clock, dry_run),
        invalid=invalid,
        calendar=slurm if settings.slurm.maintenance else None,
        peer=_make_peer_watch(settings),
        gpus=_open_gpus_if_kept(settings),
        sight=ClusterPoller(slurm, asks=_needs_all_nodes(settings)),
        pulse_every=settings.heartbeat.every if settings.heartbeat else 300.0,
    )


def _build_policy(check: CheckConfig, settings: Settings) -> Any:
    from sentinel.alerting.state_machine import AlertPolicy, FlapPolicy

    common, flapping = check.common, settings.flapping
    return AlertPolicy(
        kind=common.kind,
        for_=common.for_,
        keep_firing_for=common.keep_firing_for,
        blind_after=common.blind_after,
        runbook=common.runbook,
        labels=common.labels,
        cluster=common.cluster,
        before=settings.clusters[common.cluster].command_start if common.cluster else "",
        flap=FlapPolicy(changes=flapping.changes, window=flapping.window),
    )


def _make_actions_if_used(
    settings: Settings, slurm: LazySlurm, clock: SystemClock, dry_run: bool
) -> ActionService | None:
    """Only where a check may ask for something: nobody else needs a log of actions kept."""
    from sentinel.actions.service import may_request_actions

    if not any(may_request_actions(check) for check in settings.checks):
        return None
    from sentinel.wiring import actions

    return actions.make_action_service(settings, slurm.get_snapshot(), clock, dry_run=dry_run)


def _open_gpus_if_kept(settings: Settings) -> GpuLedger | None:
    """Only where a check keeps it."""
    kept = any(check.plugin.KEEPS_GPUS for check in settings.checks)
    return app.open_gpu_ledger(settings, later=True) if kept else None


def _needs_all_nodes(settings: Settings) -> bool:
    """Whether somebody looks at all nodes: then Slurm is asked for them, where there is one."""
    page = settings.web is not None and bool(settings.web.listen)
    return (page or settings.metrics is not None) and bool(
        settings.slurm.command_prefix or app.has_slurm()
    )


def _make_pulse(settings: Settings) -> Pulse | None:
    if settings.heartbeat is None:
        return None
    from sentinel.channels.heartbeat import make_pulse

    return make_pulse(settings.heartbeat)


def _make_peer_watch(settings: Settings) -> PeerWatch | None:
    heartbeat = settings.heartbeat
    if heartbeat is None or not heartbeat.peer:
        return None
    from sentinel.engine.peer_check import PeerWatch

    return PeerWatch(heartbeat.peer, float(heartbeat.peer_after))
