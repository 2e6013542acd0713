"""Who leads, in words."""

import os
import socket
import time
from datetime import datetime, timezone

from msgspec import Struct

from sentinel.core.clock import SECOND
from sentinel.core.text import visible

TERM = 30.0
"""Seconds for which a leader without a lock of the kernel may go on unseen."""

TRUSTED = 0.9
"""How much of the term its holder counts on: clocks of two hosts differ a little in speed."""


class Lease(Struct, frozen=True):
    """The holder of a state and since when (µs UTC)."""

    holder: str = ""
    since: int = 0

    def __str__(self) -> str:
        return f"{visible(self.holder)} since {iso(self.since)}" if self.holder else ""


def boot_clock() -> float:
    """Seconds that also go on while the machine or this process sleeps (clock_gettime(2))."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def this_process(command: str) -> str:
    """How a process names itself as holder: `sentinel run, pid 4711 on login1`."""
    return f"{command}, pid {os.getpid()} on {socket.gethostname()}"


def iso(wall: int) -> str:
    """Microseconds UTC as `2026-10-18T03:15:00Z`."""
    moment = datetime.fromtimestamp(wall // SECOND, tz=timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
