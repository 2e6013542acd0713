"""Makes the runtime configuration of an engine from the settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sentinel.actions.runner import may_request_actions
from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.state_machine import AlertPolicy, FlapPolicy
from sentinel.clock import SystemClock
from sentinel.config.places import hidden_config_path
from sentinel.config.settings import Settings
from sentinel.core.settings import CheckConfig
from sentinel.engine import housekeeping
from sentinel.engine.cluster_snapshot import ClusterPoller
from sentinel.engine.runtime import RuntimeConfig
from sentinel.homes import describe_setup_place
from sentinel.wiring import app
from sentinel.wiring.lazy import LazyRemote, LazySlurm
from sentinel.wiring.trust_review import list_trust_doubts

if TYPE_CHECKING:
    from sentinel.actions.service import ActionService
    from sentinel.core.gpu_ledger import GpuLedger
    from sentinel.core.ports import Pulse
    from sentinel.engine.peer_check import PeerWatch


def build_runtime_config(
    settings: Settings, clock: SystemClock, dry_run: bool, cluster: str = "", invalid: str = ""
) -> RuntimeConfig:
    """Everything that an engine needs from a configuration. `cluster`: the cluster's name so far,
    used if Slurm does not tell it. `invalid`: the error in the file, if these settings are older
    ones."""
    slurm = LazySlurm(settings, settings.checks, clock)
    plan = build_notification_plan(
        settings, settings.cluster or app.find_cluster_name(slurm, cluster), dry_run=dry_run
    )
    clusters = {n: LazySlurm(settings, settings.checks, clock, n) for n in settings.clusters}
    return RuntimeConfig(
        checks={c.name: c for c in settings.checks},
        channels={c.name: c.plugin for c in settings.channels},
        plan=plan,
        slurm=slurm,
        clusters=clusters,
        # without a channel that tells owners, no wish can have an effect
        scripts={"": slurm, **clusters} if plan.personal else {},
        zone=plan.zone,
        common={c.name: c.common for c in settings.channels},
        pulse=_make_pulse(settings),
        remote=LazyRemote(settings),
        action_service=None if invalid else _make_actions_if_used(settings, slurm, clock, dry_run),
        invalid=invalid,
        calendar=slurm if settings.slurm.maintenance else None,
        peer=_make_peer_watch(settings),
        gpus=_open_gpus_if_kept(settings),
        sight=ClusterPoller(slurm, asks=_needs_all_nodes(settings)),
        doubts=lambda: list_trust_doubts(settings, app.get_state_location(settings)),
        pulse_every=settings.heartbeat.every if settings.heartbeat else 300.0,
    )


def build_notification_plan(
    settings: Settings, cluster: str, *, dry_run: bool = False
) -> NotificationPlan:
    """The parts of the configuration that decide whom to notify of what."""
    policies = {c.name: _build_policy(c, settings) for c in settings.checks}
    policies[housekeeping.SELF_CHECK_NAME] = housekeeping.SELF_CHECK_POLICY
    return NotificationPlan(
        cluster=cluster,
        policies=policies,
        channels=[c.name for c in settings.channels],
        personal=[c.name for c in settings.channels if c.plugin.personal],
        routes=settings.routes,
        inhibit=settings.inhibit,
        windows=settings.silences,
        zone=app.get_time_zone(settings),
        report=settings.report,
        dry_run=dry_run,
        setup_place=describe_setup_place(),
        config=hidden_config_path(settings.path, os.environ),
    )


def _build_policy(check: CheckConfig, settings: Settings) -> Any:
    common, flapping = check.common, settings.flapping
    return AlertPolicy(
        kind=common.kind,
        for_=common.for_,
        keep_firing_for=common.keep_firing_for,
        blind_after=common.blind_after,
        runbook=common.runbook,
        labels=common.labels,
        cluster=common.cluster,
        host=os.uname().nodename.partition(".")[0],
        tells_host=check.plugin.TELLS_HOST,
        flap=FlapPolicy(changes=flapping.changes, window=flapping.window),
    )


def _make_actions_if_used(
    settings: Settings, slurm: LazySlurm, clock: SystemClock, dry_run: bool
) -> ActionService | None:
    """The action service; None if no check may request actions, since nobody else needs an audit
    log."""
    if not any(may_request_actions(check) for check in settings.checks):
        return None
    from sentinel.wiring import actions  # imports much of the Slurm code

    return actions.make_action_service(settings, slurm.get_snapshot(), clock, dry_run=dry_run)


def _open_gpus_if_kept(settings: Settings) -> GpuLedger | None:
    """The ledger of GPUs. None if no check uses it."""
    kept = any(check.plugin.KEEPS_GPUS for check in settings.checks)
    return app.open_gpu_ledger(settings, later=True) if kept else None


def _needs_all_nodes(settings: Settings) -> bool:
    """Whether the page or the metrics show all nodes, so that Slurm is asked for them, if there is
    a Slurm."""
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
