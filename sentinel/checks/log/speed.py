"""How fast a number advances, against how fast it usually does. Pure.

Measured over whole spans without a phase, so that a checkpoint is no slowness; usual is the
median of the last two days of training. What has been so for a day is the new usual.
"""

from msgspec import Struct

from sentinel.core.clock import Instant, elapsed

SPAN = 900.0  # seconds
KEPT = 192  # spans: two days
ENOUGH = 8  # spans before anything is called usual


class Speed(Struct, frozen=True, kw_only=True):
    """A span that has begun at `value`, and the rate per second of the last whole one."""

    began: Instant
    value: float
    spoiled: bool = False
    rate: float | None = None


def measured(speed: Speed | None, now: Instant, value: float, phase: bool) -> tuple[Speed, bool]:
    """After one look; True when a span has ended whose rate counts."""
    if speed is None or value < speed.value:
        return Speed(began=now, value=value, rate=speed.rate if speed else None), False
    spoiled = speed.spoiled or phase
    seconds = elapsed(speed.began, now)
    if seconds < SPAN:
        return Speed(began=speed.began, value=speed.value, spoiled=spoiled, rate=speed.rate), False
    counts = not spoiled and seconds < 2 * SPAN
    rate = (value - speed.value) / seconds if counts else speed.rate
    return Speed(began=now, value=value, spoiled=phase, rate=rate), counts


def usual(rates: tuple[float, ...]) -> float | None:
    """The median; None while too few are known."""
    return sorted(rates)[len(rates) // 2] if len(rates) >= ENOUGH else None


def kept(rates: tuple[float, ...], rate: float) -> tuple[float, ...]:
    """With one more span."""
    return (*rates, rate)[-KEPT:]
