"""Moments that survive clock jumps, reboots and a change of host."""

from msgspec import Struct

SECOND = 1_000_000


class Instant(Struct, frozen=True):
    """A moment: wall clock (µs UTC) with the boot's own clock (µs) beside it."""

    wall: int
    boot: str = ""
    mono: int = 0


def get_elapsed_s(earlier: Instant, later: Instant) -> float:
    """Seconds between two moments, never negative.

    Within one boot the monotonic clock decides, so a wall clock that jumps neither fires
    nor delays anything; across boots and hosts only the wall clock is left.
    """
    if earlier.boot and earlier.boot == later.boot:
        return max(0, later.mono - earlier.mono) / SECOND
    return max(0, later.wall - earlier.wall) / SECOND


def shift_instant(moment: Instant, seconds: float) -> Instant:
    """The moment that many seconds later (earlier where negative), on both clocks."""
    delta = int(seconds * SECOND)
    return Instant(wall=moment.wall + delta, boot=moment.boot, mono=moment.mono + delta)
