"""Whether a training has become a little slower, and since when: a change of its step time. Pure.

Step times come in batches, of which the median counts: a straggler or a checkpoint is no change.
Batches that lie above the reference add up to a sum (CUSUM: E. S. Page, Continuous inspection
schemes, Biometrika 41, 1954), which forgets what lies below; where it begins to rise for good, the
change was. What is slow does not become the reference for a week, from job to job.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core import hostlist
from sentinel.core.clock import Instant, elapsed
from sentinel.core.errors import Invalid
from sentinel.core.text import visible
from sentinel.core.values import duration_text

BATCH = 10  # step times
KEPT = 256  # batches of the reference: 2560 step times
ENOUGH = 20  # batches before anything is compared: 200 step times
LEAST = 0.03  # of the step time: below it nothing is told
MESSAGE = 0.10  # from which on it is a warning, not only shown
ALLOWED = 0.015  # by which a batch may be slower for ever: half of LEAST
USUAL = 2.0  # spreads of a batch that are noise, for however long: 95 % of Gauss
FLOOR = 0.25  # of the sum, where nothing is noisy: eight batches of 5 %
SPREADS = 10.0  # of a batch that the sum has to be, where it is noisy
BATCHES = 8  # that have to be slow: moments of four were seen in runs that are well
CLIP = 0.3  # most that one batch adds: an evaluation in it
OTHER = 1.5  # times slower or faster from one job to the next: another configuration
FORGOTTEN = 7 * 86400.0  # seconds after which slow is usual
WITHIN = 20  # batches within which a slowdown has to be told: 200 step times


class Pace(Struct, frozen=True, kw_only=True):
    """Step times of a training in seconds, from job to job.

    `batch`: not yet a whole one; `fast`: medians of the reference, `nodes`: Slurm's list of those where its last was
    measured; `total`: the sum, `slow`: medians since it left nothing, `since`: when that was;
    `told`: it is slower; `job`: whose step times came last, of which the first batch is left out.
    """

    batch: tuple[float, ...] = ()
    fast: tuple[float, ...] = ()
    slow: tuple[float, ...] = ()
    total: float = 0.0
    since: Instant | None = None
    told: bool = False
    nodes: str = ""
    job: str = ""
    fresh: int = 0

    @property
    def usual(self) -> float | None:
        """Seconds a step; None while too few are known."""
        return _median(self.fast) if len(self.fast) >= ENOUGH else None

    @property
    def spread(self) -> float:
        """Of a batch, as a share of the usual: of Gauss, 90 % lie within 1.645 of it. Not the
        median deviation, which would not see slow stretches that come and go."""
        middle = _median(self.fast)
        return (
            sorted(abs(one - middle) for one in self.fast)[-len(self.fast) // 10] / middle / 1.645
        )

    @property
    def least(self) -> float:
        """The least slowdown that is told within 200 step times, as a share."""
        return max(LEAST, self._allowed + self._limit / WITHIN)

    @property
    def share(self) -> float:
        """By how much it is slower now, as a share of the usual; 0: it is not."""
        return _median(self.slow[-WITHIN:]) / _median(self.fast) - 1 if self.told else 0.0

    @property
    def _allowed(self) -> float:
        return max(ALLOWED, USUAL * self.spread)

    @property
    def _limit(self) -> float:
        return max(FLOOR, SPREADS * self.spread)


def words(pace: Pace, now: Instant, nodes: str) -> str:
    """`step time 5.2% above its usual 4.01 s for 3h 10m; new since it was faster: node-7`; empty
    while it is not."""
    if not pace.told or pace.since is None:
        return ""
    ago = duration_text(elapsed(pace.since, now))
    told = f"step time {100 * pace.share:.1f}% above its usual {pace.usual:.3g} s for {ago}"
    return f"{told}; {_new(nodes, pace.nodes)}"


def _new(now: str, before: str) -> str:
    if not now:
        return "nothing is known of its nodes"
    try:
        new = [name for name in hostlist.printed(now) if name not in hostlist.printed(before)]
    except Invalid:
        return "its nodes cannot be compared"
    if not new or not before:
        return "on the nodes on which it was faster"
    return f"new since it was faster: {visible(hostlist.shown(new))}"


def noted(pace: Pace, seconds: Iterable[float], at: Instant, job: str, nodes: str) -> Pace:
    """After some more step times of this job."""
    if job != pace.job:
        pace = replace(pace, job=job, batch=(), fresh=0)
    for one in seconds:
        if one <= 0:
            continue
        pace = replace(pace, batch=(*pace.batch, one))
        if len(pace.batch) >= BATCH:
            pace = _batch(
                replace(pace, batch=(), fresh=pace.fresh + 1), _median(pace.batch), at, nodes
            )
    return pace


def _batch(pace: Pace, middle: float, at: Instant, nodes: str) -> Pace:
    if pace.fresh == 1:
        return pace  # the first steps compile, fill caches, and prove nothing
    if pace.usual is None:
        return replace(pace, fast=(*pace.fast, middle), nodes=nodes)
    off = middle / pace.usual - 1
    total = max(0.0, pace.total + min(off, CLIP) - pace._allowed)
    if not total or (pace.told and _over(pace, middle)):
        return _calm(pace, middle, nodes)
    pace = replace(pace, total=total, slow=(*pace.slow, middle)[-KEPT:], since=pace.since or at)
    if _another(pace):
        return replace(
            pace, fast=pace.slow, slow=(), total=0.0, since=None, told=False, nodes=nodes
        )
    if pace.told:
        old = pace.since is not None and elapsed(pace.since, at) > FORGOTTEN
        return replace(pace, fast=pace.slow, slow=(), total=0.0, told=False) if old else pace
    return replace(pace, told=_sure(pace))


def _calm(pace: Pace, middle: float, nodes: str) -> Pace:
    """What came and went is part of how it goes, be it that it was told."""
    fast = (*pace.fast, *pace.slow, middle)[-KEPT:]
    return replace(pace, fast=fast, slow=(), total=0.0, since=None, told=False, nodes=nodes)


def _sure(pace: Pace) -> bool:
    if pace.total < pace._limit or len(pace.slow) < BATCHES:
        return False
    usual = _median(pace.fast)
    return min(_median(pace.slow), _median(pace.slow[-BATCHES:])) >= (1 + LEAST) * usual


def _over(pace: Pace, middle: float) -> bool:
    """Whether a slowdown has ended: the last three lie in the lower half of it."""
    lately = [*pace.slow[-2:], middle]
    return _median(lately) < (1 + pace.share / 2) * _median(pace.fast)


def _another(pace: Pace) -> bool:
    """A job that from its beginning takes other times is another configuration."""
    begun = pace.fresh - 1 <= len(pace.slow) and len(pace.slow) >= BATCHES
    return begun and _median(pace.slow) > OTHER * _median(pace.fast)


def _median(values: "tuple[float, ...] | list[float]") -> float:
    return sorted(values)[len(values) // 2]
