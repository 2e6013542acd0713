"""Whether a GPU computes or waits, by its utilization and its power. Pure.

A collective that waits spins: the GPU is 100% busy and draws little.
"""

from __future__ import annotations

from msgspec import Struct

BUSY_PERCENT = 80.0
"""Percent of GPU time from which on it is busy."""
WAITING_POWER_PERCENT = 45.0
"""Percent of the power limit below which a busy GPU computes little."""
COMPUTING_POWER_PERCENT = 55.0
"""And from which on it computes; between the two nobody knows."""
IDLE_PERCENT = 5.0
"""Percent of GPU time below which nothing runs on it."""


class GpuLoad(Struct, frozen=True):
    """Percent of time busy, and watts drawn of those allowed; None where it does not tell."""

    busy: float
    watts: float | None
    limit: float | None

    @property
    def power_percent(self) -> float | None:
        """Percent of the limit."""
        return 100 * self.watts / self.limit if self.watts is not None and self.limit else None

    @property
    def is_waiting(self) -> bool:
        """Busy at little power: it spins."""
        return (
            self.busy >= BUSY_PERCENT
            and self.power_percent is not None
            and self.power_percent < WAITING_POWER_PERCENT
        )

    @property
    def is_computing(self) -> bool:
        """Busy at much power."""
        return (
            self.busy >= BUSY_PERCENT
            and self.power_percent is not None
            and self.power_percent >= COMPUTING_POWER_PERCENT
        )
