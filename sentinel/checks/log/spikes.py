"""Whether a training's loss has risen far above its noise and stays there. Pure.

Losses come in batches, of which the median counts. The noise is taken from the differences of
neighbours (J. von Neumann et al., Annals of Mathematical Statistics 12, 1941), by their median
(Rousseeuw and Croux, JASA 88, 1993): neither a falling loss nor a spike widens it. A spike that
comes back tells nothing.
"""

from collections.abc import Iterable
from itertools import pairwise
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

BATCH_LOSSES = 10  # losses
MAX_KEPT_BATCHES = 32  # batches of the reference: 320 losses
LEVEL_BATCHES = 8  # batches of the level: a loss falls
MIN_KNOWN_BATCHES = 20  # batches before anything is compared
MIN_SPIKE_NOISES = 8.0  # above the usual from which on a batch is high
MIN_SPIKE_SHARE = 0.1  # of the usual that it has to be above it besides
MIN_HIGH_BATCHES = (
    5  # high batches in a row: 50 losses (BLOOM's spike of 2022-04-12 was back after 30)
)
NOISE_FACTOR = 1.4826 / 2**0.5  # standard deviations in a median absolute difference of neighbours


class LossTrend(Struct, frozen=True, kw_only=True):
    """Losses of one run of a job, of the one `name`. `batch`: not yet a whole one; `usual`: medians of the
    reference; `high`: medians of the batches in a row that lie above it; `told`: it rose."""

    name: str = ""
    batch: tuple[float, ...] = ()
    usual: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    told: bool = False

    @property
    def usual_loss(self) -> float:
        """What is usual."""
        return median(self.usual[-LEVEL_BATCHES:])

    @property
    def noise_deviation(self) -> float:
        """The standard deviation of a batch."""
        return NOISE_FACTOR * median(abs(one - other) for one, other in pairwise(self.usual))

    @property
    def spike_limit(self) -> float:
        """The loss from which on a batch is high."""
        return self.usual_loss + max(
            MIN_SPIKE_NOISES * self.noise_deviation, MIN_SPIKE_SHARE * abs(self.usual_loss)
        )


def describe_spike(course: LossTrend) -> str:
    """`loss 7.31, risen for the last 60 values; usually 2.1 with a noise of 0.03`; empty while it
    is not told."""
    if not course.told:
        return ""
    count = BATCH_LOSSES * len(course.high)
    usual = f"usually {course.usual_loss:.3g} with a noise of {course.noise_deviation:.2g}"
    return f"loss {course.high[-1]:.3g}, risen for the last {count} values; {usual}"


def add_losses(course: LossTrend, losses: Iterable[float]) -> LossTrend:
    """After some more finite losses."""
    for one in losses:
        course = replace(course, batch=(*course.batch, one))
        if len(course.batch) >= BATCH_LOSSES:
            course = _add_loss_batch(replace(course, batch=()), median(course.batch))
    return course


def _add_loss_batch(course: LossTrend, middle: float) -> LossTrend:
    if len(course.usual) < MIN_KNOWN_BATCHES or middle <= course.spike_limit:
        return replace(
            course, usual=(*course.usual, middle)[-MAX_KEPT_BATCHES:], high=(), told=False
        )
    high = (*course.high, middle)[-MAX_KEPT_BATCHES:]
    return replace(course, high=high, told=len(high) >= MIN_HIGH_BATCHES)
