"""Detects a loss that has risen far above its noise and stays there. Pure.

Losses are grouped into batches, and the median of each batch counts. The noise is measured by the
differences between neighbours (J. von Neumann et al., Annals of Mathematical Statistics 12, 1941),
by their median (Rousseeuw and Croux, JASA 88, 1993). So neither a falling loss nor a spike
increases it. A spike that goes back is not reported.
"""

from collections.abc import Iterable
from itertools import pairwise
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

BATCH_LOSSES = 10  # losses per batch
MAX_KEPT_BATCHES = 32  # batches of the reference: 320 losses
LEVEL_BATCHES = 8  # batches for the usual level, because a loss falls
MIN_KNOWN_BATCHES = 20  # batches before anything is compared
MIN_SPIKE_NOISES = 8.0  # noises above the usual loss from which a batch is high
MIN_SPIKE_SHARE = 0.1  # share of the usual loss by which it must also be higher
MIN_HIGH_BATCHES = (
    5  # high batches in a row: 50 losses (BLOOM's spike of 2022-04-12 was back after 30)
)
# turns a median absolute difference of neighbours into a standard deviation
NOISE_FACTOR = 1.4826 / 2**0.5


class LossTrend(Struct, frozen=True, kw_only=True):
    """The losses of one name in one run of a job.

    `batch` is the incomplete batch. `usual` are the medians of the reference. `high` are the
    medians of the latest consecutive batches above it. `told` means that the loss has risen.
    """

    name: str = ""
    batch: tuple[float, ...] = ()
    usual: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    told: bool = False

    @property
    def usual_loss(self) -> float:
        """The median of the last LEVEL_BATCHES medians of the reference."""
        return median(self.usual[-LEVEL_BATCHES:])

    @property
    def noise_deviation(self) -> float:
        """The standard deviation of the medians of the reference, estimated from neighbours."""
        return NOISE_FACTOR * median(abs(one - other) for one, other in pairwise(self.usual))

    @property
    def spike_limit(self) -> float:
        """The loss from which a batch is high."""
        return self.usual_loss + max(
            MIN_SPIKE_NOISES * self.noise_deviation, MIN_SPIKE_SHARE * abs(self.usual_loss)
        )


def describe_spike(course: LossTrend) -> str:
    """`loss 7.31, risen for the last 60 values; usually 2.1 with a noise of 0.03`. Empty if it has
    not risen."""
    if not course.told:
        return ""
    count = BATCH_LOSSES * len(course.high)
    usual = f"usually {course.usual_loss:.3g} with a noise of {course.noise_deviation:.2g}"
    return f"loss {course.high[-1]:.3g}, risen for the last {count} values; {usual}"


def add_losses(course: LossTrend, losses: Iterable[float]) -> LossTrend:
    """The trend after some more finite losses."""
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
