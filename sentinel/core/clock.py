"""Moments that survive clock jumps, reboots and a change of host."""

from msgspec import Struct

SECOND = 1_000_000


class Instant(Struct, frozen=True):
    """A moment: wall clock (µs UTC) with the boot's own clock (µs) beside it."""

    wall: int  # Wall clock, microseconds UTC.
    boot: str = ""  # The boot's id; empty: not known.
    mono: int = 0  # The boot's own clock, microseconds.


def get_elapsed_s(earlier: Instant, later: Instant) -> float:
    """Seconds between two moments, never negative.

    Within one boot the monotonic clock decides, so a jump of the wall clock neither triggers nor
    delays anything. Across boots and hosts only the wall clock can be used.
    """
    if earlier.boot and earlier.boot == later.boot:
        return max(0, later.mono - earlier.mono) / SECOND
    return max(0, later.wall - earlier.wall) / SECOND


def shift_instant(moment: Instant, seconds: float) -> Instant:
    """The moment `seconds` later (earlier if negative), on both clocks."""
    delta = int(seconds * SECOND)
    return Instant(wall=moment.wall + delta, boot=moment.boot, mono=moment.mono + delta)
