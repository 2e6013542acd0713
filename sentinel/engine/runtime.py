"""What a configuration turns into."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING

from msgspec import Struct

from sentinel.actions.service import ActionService
from sentinel.alerting.processor import NotificationPlan
from sentinel.core.kinds import Channel
from sentinel.core.node_answers import Remote
from sentinel.core.ports import Calendar, Pulse, Slurm
from sentinel.core.settings import ChannelCommon, CheckConfig
from sentinel.engine.cluster_snapshot import ClusterPoller
from sentinel.engine.peer_check import PeerWatch

if TYPE_CHECKING:
    from sentinel.core.gpu_ledger import GpuLedger


class RuntimeConfig(Struct, kw_only=True):
    """All that a configuration turns into; a reload replaces it as a whole. `invalid`: what is wrong
    with the file, while this is of the last one that was valid; nothing is done then. `clusters`: those beside `slurm`'s, by name."""

    checks: Mapping[str, CheckConfig]
    channels: Mapping[str, Channel]
    plan: NotificationPlan
    slurm: Slurm
    clusters: Mapping[str, Slurm] = {}
    zone: tzinfo
    common: Mapping[str, ChannelCommon] = {}
    pulse: Pulse | None = None
    pulse_every: float = 300.0
    remote: Remote | None = None
    deeds: ActionService | None = None
    calendar: Calendar | None = None
    peer: PeerWatch | None = None
    gpus: GpuLedger | None = None
    sight: ClusterPoller | None = None
    invalid: str = ""
