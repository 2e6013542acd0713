"""The objects that are made from a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from sentinel.actions.service import ActionService
    from sentinel.alerting.notifications import NotificationPlan
    from sentinel.core.gpu_ledger import GpuLedger
    from sentinel.core.kinds import Channel
    from sentinel.core.node_answers import Remote
    from sentinel.core.ports import Calendar, Pulse, Slurm
    from sentinel.core.settings import ChannelCommon, CheckConfig
    from sentinel.engine.cluster_snapshot import ClusterPoller
    from sentinel.engine.peer_check import PeerWatch
    from sentinel.slurm.script_reading import ScriptSource


class RuntimeConfig(Struct, kw_only=True):
    """All objects that are made from a configuration. A reload replaces them together.

    `invalid`: the errors in the file, if these objects are from the last valid one. Then no action
    is done. `unloaded`: why a part cannot be imported, by `check NAME` or `channel NAME`
    (None: nobody has tried). `clusters`: other clusters besides `slurm`, by name.
    """

    checks: Mapping[str, CheckConfig]  # Configured checks, by name.
    channels: Mapping[str, Channel]  # Configured channels, by name.
    plan: NotificationPlan  # Whom to notify of what.
    slurm: Slurm
    clusters: Mapping[str, Slurm] = {}
    zone: tzinfo  # Time zone of the file.
    common: Mapping[str, ChannelCommon] = {}  # The common keys of each channel, by name.
    pulse: Pulse | None = None  # Sends the heartbeat, if one is configured.
    pulse_every: float = 300.0  # Seconds between two heartbeats.
    remote: Remote | None = None  # The connection to nodes.
    action_service: ActionService | None = None  # Carries out the actions that checks request.
    calendar: Calendar | None = None  # Maintenance reservations of Slurm.
    peer: PeerWatch | None = None  # Watches the peer sentinel.
    gpus: GpuLedger | None = None  # The ledger of GPUs.
    # Asks Slurm for nodes and jobs, for the web page and the metrics.
    sight: ClusterPoller | None = None
    scripts: Mapping[str, ScriptSource] = {}  # Whose batch scripts are read, by cluster.
    invalid: str = ""
    unloaded: Mapping[str, str] | None = None
    # What others could change of that which the configuration names. May take some seconds.
    doubts: Callable[[], Sequence[str]] | None = None
