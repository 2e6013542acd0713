"""The real clock: wall time with the boot's own clock beside it."""

import time

from sentinel.core.clock import Instant
from sentinel.proc import boot_id


class SystemClock:
    """CLOCK_BOOTTIME goes on while a machine sleeps, unlike CLOCK_MONOTONIC (clock_gettime(2))."""

    def __init__(self) -> None:
        self._boot = boot_id()

    def now(self) -> Instant:
        return Instant(
            wall=time.time_ns() // 1000,
            boot=self._boot,
            mono=time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000,
        )
