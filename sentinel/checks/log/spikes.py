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

BATCH = 10  # losses
KEPT = 32  # batches of the reference: 320 losses
LATELY = 8  # batches of the level: a loss falls
ENOUGH = 20  # batches before anything is compared
NOISES = 8.0  # above the usual from which on a batch is high
LEAST = 0.1  # of the usual that it has to be above it besides
STAYS = 5  # high batches in a row: 50 losses (BLOOM's spike of 2022-04-12 was back after 30)
GAUSS = 1.4826 / 2**0.5  # standard deviations in a median absolute difference of neighbours


class Course(Struct, frozen=True, kw_only=True):
    """Losses of one run of a job, of the one `name`. `batch`: not yet a whole one; `usual`: medians of the
    reference; `high`: medians of the batches in a row that lie above it; `told`: it rose."""

    name: str = ""
    batch: tuple[float, ...] = ()
    usual: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    told: bool = False

    @property
    def middle(self) -> float:
        """What is usual."""
        return median(self.usual[-LATELY:])

    @property
    def noise(self) -> float:
        """The standard deviation of a batch."""
        return GAUSS * median(abs(one - other) for one, other in pairwise(self.usual))

    @property
    def limit(self) -> float:
        """The loss from which on a batch is high."""
        return self.middle + max(NOISES * self.noise, LEAST * abs(self.middle))


def words(course: Course) -> str:
    """`loss 7.31, risen for the last 60 values; usually 2.1 with a noise of 0.03`; empty while it
    is not told."""
    if not course.told:
        return ""
    count = BATCH * len(course.high)
    usual = f"usually {course.middle:.3g} with a noise of {course.noise:.2g}"
    return f"loss {course.high[-1]:.3g}, risen for the last {count} values; {usual}"


def noted(course: Course, losses: Iterable[float]) -> Course:
    """After some more finite losses."""
    for one in losses:
        course = replace(course, batch=(*course.batch, one))
        if len(course.batch) >= BATCH:
            course = _batch(replace(course, batch=()), median(course.batch))
    return course


def _batch(course: Course, middle: float) -> Course:
    if len(course.usual) < ENOUGH or middle <= course.limit:
        return replace(course, usual=(*course.usual, middle)[-KEPT:], high=(), told=False)
    high = (*course.high, middle)[-KEPT:]
    return replace(course, high=high, told=len(high) >= STAYS)
