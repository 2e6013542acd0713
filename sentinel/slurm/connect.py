"""The port to Slurm as the settings describe it."""

from __future__ import annotations

from collections.abc import Collection

from sentinel.core.ports import Clock
from sentinel.core.settings import SlurmSettings
from sentinel.slurm.client import Client
from sentinel.slurm.snapshot import Snapshot


def connect(
    settings: SlurmSettings, users: Collection[str] | None, max_age: float, clock: Clock
) -> Snapshot:
    """The port to Slurm; nothing is asked yet. `users` None: everybody's jobs."""
    client = Client(limit=settings.timeout, prefix=settings.command_prefix)
    return Snapshot(client, clock, users=users, max_age=max_age, racks=settings.racks)
