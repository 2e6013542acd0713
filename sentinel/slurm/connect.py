"""The port to Slurm as the settings describe it."""

from __future__ import annotations

from collections.abc import Collection

from sentinel.core.ports import Clock
from sentinel.core.settings import ClusterSettings, SlurmSettings
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot


def connect_slurm(
    settings: SlurmSettings | ClusterSettings,
    users: Collection[str] | None,
    max_age: float,
    clock: Clock,
) -> SlurmSnapshot:
    """The port to Slurm; nothing is asked yet. `users` None: everybody's jobs."""
    limit, prefix = settings.timeout, settings.command_prefix
    if isinstance(settings, ClusterSettings):
        client, racks = SlurmClient(limit=limit, prefix=prefix, conf=settings.conf), {}
    else:
        client, racks = SlurmClient(limit=limit, prefix=prefix), settings.racks
    readyz = settings.readyz
    return SlurmSnapshot(client, clock, users=users, max_age=max_age, racks=racks, readyz=readyz)
