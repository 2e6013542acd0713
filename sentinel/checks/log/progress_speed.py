"""Compares how fast a number advances with its usual speed. Pure.

The speed is measured over whole spans without a phase, so that a checkpoint does not count as slow.
The usual speed is the median of the last two days of training. After a day, a new speed becomes the
usual one.
"""

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import Instant, get_elapsed_s

SPEED_SPAN_S = 900.0  # length of a span in seconds

MAX_KEPT_RATES = 192  # number of spans: two days

MIN_KNOWN_RATES = 8  # this many spans are needed for a usual speed


class ProgressSpeed(Struct, frozen=True, kw_only=True):
    """A span that began at `value`, and the rates per second of the last two complete spans."""

    began: Instant  # When the span began.
    value: float
    spoiled: bool = False  # Whether the span does not count.
    rate: float | None = None  # Rate of the last complete span. None: there was none.
    before: float | None = None  # Rate of the span before that.

    @property
    def recent_rate(self) -> float | None:
        """The better rate of the last two spans, because one slow span may contain a pause without
        a line about it."""
        if self.rate is None or self.before is None:
            return None
        return max(self.rate, self.before)


def measure_speed(
    speed: ProgressSpeed | None, now: Instant, value: float, phase: bool
) -> tuple[ProgressSpeed, bool]:
    """The speed after one more run of the check. True if a span has ended whose rate counts."""
    if speed is None:
        return ProgressSpeed(began=now, value=value), False
    if value < speed.value:
        return _restart_span(speed, now, value), False
    spoiled = speed.spoiled or phase
    seconds = get_elapsed_s(speed.began, now)
    if seconds < SPEED_SPAN_S:
        return replace(speed, spoiled=spoiled), False
    if spoiled or seconds >= 2 * SPEED_SPAN_S:
        return replace(_restart_span(speed, now, value), spoiled=phase), False
    rate = (value - speed.value) / seconds
    return replace(_restart_span(speed, now, value), rate=rate, before=speed.rate), True


def _restart_span(speed: ProgressSpeed, now: Instant, value: float) -> ProgressSpeed:
    return replace(speed, began=now, value=value, spoiled=False)


def compute_usual_rate(rates: tuple[float, ...]) -> float | None:
    """The median rate. None while too few are known."""
    return sorted(rates)[len(rates) // 2] if len(rates) >= MIN_KNOWN_RATES else None


def append_rate(rates: tuple[float, ...], rate: float) -> tuple[float, ...]:
    """The rates with those of one more span."""
    return (*rates, rate)[-MAX_KEPT_RATES:]
