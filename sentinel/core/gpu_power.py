"""Whether a GPU computes or waits, by its utilization and its power. Pure.

A collective that waits spins: the GPU is 100% busy and draws little.
"""

from __future__ import annotations

from msgspec import Struct

BUSY_PERCENT = 80.0
"""A GPU counts as busy from this percentage of time on."""
WAITING_POWER_PERCENT = 45.0
"""Percent of the power limit below which a busy GPU computes little."""
COMPUTING_POWER_PERCENT = 55.0
"""Percent of the power limit from which on a busy GPU computes; between the two limits it is not
known."""
IDLE_PERCENT = 5.0
"""Percent of GPU time below which nothing runs on it."""


class GpuLoad(Struct, frozen=True):
    """Load of a GPU. None stands for a number that the GPU does not report."""

    busy: float  # Percent of time in which it was busy.
    watts: float | None  # Watts that it draws.
    limit: float | None  # Watts that it may draw.

    @property
    def power_percent(self) -> float | None:
        """Power as a percentage of the power limit; None if either is not known."""
        return 100 * self.watts / self.limit if self.watts is not None and self.limit else None

    @property
    def is_waiting(self) -> bool:
        """Whether the GPU is busy at little power: it spins while it waits."""
        return (
            self.busy >= BUSY_PERCENT
            and self.power_percent is not None
            and self.power_percent < WAITING_POWER_PERCENT
        )

    @property
    def is_computing(self) -> bool:
        """Whether the GPU is busy at much power."""
        return (
            self.busy >= BUSY_PERCENT
            and self.power_percent is not None
            and self.power_percent >= COMPUTING_POWER_PERCENT
        )
