"""Makes the port to Slurm from the settings."""

from __future__ import annotations

from collections.abc import Collection

from sentinel.core.ports import Clock
from sentinel.core.settings import ClusterSettings, SlurmSettings
from sentinel.slurm.controllers import ControllerProbe, connect_controllers
from sentinel.slurm.snapshot import SlurmSnapshot


def connect_slurm(
    settings: SlurmSettings | ClusterSettings,
    users: Collection[str] | None,
    max_age: float,
    clock: Clock,
    controllers: ControllerProbe | None = None,
) -> SlurmSnapshot:
    """Make the port to Slurm, without asking Slurm yet. `users`: whose jobs are requested. None:
    everybody's. `controllers`: the probe of these settings, if there is one already."""
    probe = controllers or connect_controllers(settings, clock)
    racks = {} if isinstance(settings, ClusterSettings) else settings.racks
    return SlurmSnapshot(
        probe.client, clock, users=users, max_age=max_age, racks=racks, controllers=probe
    )
