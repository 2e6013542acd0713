"""How fast a number advances, against how fast it usually does. Pure.

Measured over whole spans without a phase, so that a checkpoint is no slowness; usual is the
median of the last two days of training. What has been so for a day is the new usual.
"""

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import Instant, elapsed

SPAN = 900.0  # seconds
KEPT = 192  # spans: two days
ENOUGH = 8  # spans before anything is called usual


class Speed(Struct, frozen=True, kw_only=True):
    """A span that has begun at `value`, and the rates per second of the last two whole ones."""

    began: Instant
    value: float
    spoiled: bool = False
    rate: float | None = None
    before: float | None = None

    @property
    def lately(self) -> float | None:
        """The better of the last two: one slow span may have held a pause nobody announced."""
        if self.rate is None or self.before is None:
            return None
        return max(self.rate, self.before)


def measured(speed: Speed | None, now: Instant, value: float, phase: bool) -> tuple[Speed, bool]:
    """After one look; True when a span has ended whose rate counts."""
    if speed is None:
        return Speed(began=now, value=value), False
    if value < speed.value:
        return _anew(speed, now, value), False
    spoiled = speed.spoiled or phase
    seconds = elapsed(speed.began, now)
    if seconds < SPAN:
        return replace(speed, spoiled=spoiled), False
    if spoiled or seconds >= 2 * SPAN:
        return replace(_anew(speed, now, value), spoiled=phase), False
    rate = (value - speed.value) / seconds
    return replace(_anew(speed, now, value), rate=rate, before=speed.rate), True


def _anew(speed: Speed, now: Instant, value: float) -> Speed:
    return replace(speed, began=now, value=value, spoiled=False)


def usual(rates: tuple[float, ...]) -> float | None:
    """The median; None while too few are known."""
    return sorted(rates)[len(rates) // 2] if len(rates) >= ENOUGH else None


def kept(rates: tuple[float, ...], rate: float) -> tuple[float, ...]:
    """With one more span."""
    return (*rates, rate)[-KEPT:]
