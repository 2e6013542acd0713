"""Detects whether a training has become a little slower, and since when, from its step times. Pure.

Step times are grouped into batches, and the median of each batch counts. So a straggler or a
checkpoint is no change. The excess of batches above the reference is summed up (CUSUM: E. S. Page,
Continuous inspection schemes, Biometrika 41, 1954). Batches below the reference lower the sum, down
to zero. The change is where the sum begins to rise for good. Slow batches do not become the
reference for a week, across jobs.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core import hostlist
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.errors import Invalid
from sentinel.core.text import visible
from sentinel.core.values import duration_text

BATCH_STEPS = 10  # step times per batch
MAX_KEPT_BATCHES = 256  # batches of the reference: 2560 step times
MIN_KNOWN_BATCHES = 20  # batches before anything is compared: 200 step times
MIN_SLOWDOWN_SHARE = 0.03  # share of the step time; a smaller slowdown is not reported
WARNING_SHARE = 0.10  # share from which a slowdown is a warning, not only shown
# a batch may be slower by this share for ever: half of MIN_SLOWDOWN_SHARE
MIN_ALLOWED_SHARE = 0.015
NOISE_SPREADS = 2.0  # this many spreads of a batch count as noise: 95 % of a normal distribution
MIN_SUM_LIMIT = 0.25  # limit of the sum without noise: eight batches of 5 %
SUM_LIMIT_SPREADS = 10.0  # limit of the sum with noise, in spreads of a batch
MIN_SLOW_BATCHES = 8  # batches that must be slow; healthy runs had four in a row
MAX_BATCH_SHARE = 0.3  # the most that one batch adds, if e.g. an evaluation is in it
# if a job is slower or faster by this factor, it has another configuration
OTHER_CONFIG_FACTOR = 1.5
SLOWDOWN_MEMORY_S = 7 * 86400.0  # an older slowdown counts as the normal speed
MAX_DETECT_BATCHES = 20  # a slowdown must be found within this many batches: 200 step times


class StepTimeTrend(Struct, frozen=True, kw_only=True):
    """Step times of a training in seconds, across jobs.

    `batch` is the incomplete batch. `fast` are the medians of the reference. `nodes` is Slurm's
    list of the nodes where the last of these was measured. `total` is the sum, `slow` are the
    medians since it was last zero, and `since` is the time of that. `told` means that it is slower
    now. `job` is the job of the newest step times. Its first batch is left out.
    """

    batch: tuple[float, ...] = ()
    fast: tuple[float, ...] = ()
    slow: tuple[float, ...] = ()
    total: float = 0.0
    since: Instant | None = None
    told: bool = False
    nodes: str = ""
    job: str = ""
    fresh: int = 0  # Batches of this job, including the first, which is left out.

    @property
    def usual_s(self) -> float | None:
        """Seconds per step. None while too few are known."""
        return _compute_median(self.fast) if len(self.fast) >= MIN_KNOWN_BATCHES else None

    @property
    def spread_share(self) -> float:
        """The spread of a batch, as a share of the usual step time.

        In a normal distribution, 90 % lie within 1.645 standard deviations. The median deviation is
        not used, because it would not see slow periods that come and go.
        """
        middle = _compute_median(self.fast)
        return (
            sorted(abs(one - middle) for one in self.fast)[-len(self.fast) // 10] / middle / 1.645
        )

    @property
    def least_share(self) -> float:
        """The smallest slowdown, as a share, that is found within 200 step times."""
        return max(MIN_SLOWDOWN_SHARE, self._allowed_share + self._sum_limit / MAX_DETECT_BATCHES)

    @property
    def slowdown_share(self) -> float:
        """How much slower it is now, as a share of the usual step time. 0 if it is not slower."""
        return (
            _compute_median(self.slow[-MAX_DETECT_BATCHES:]) / _compute_median(self.fast) - 1
            if self.told
            else 0.0
        )

    @property
    def _allowed_share(self) -> float:
        return max(MIN_ALLOWED_SHARE, NOISE_SPREADS * self.spread_share)

    @property
    def _sum_limit(self) -> float:
        return max(MIN_SUM_LIMIT, SUM_LIMIT_SPREADS * self.spread_share)


def describe_slowdown(pace: StepTimeTrend, now: Instant, nodes: str) -> str:
    """`step time 5.2% above its usual 4.01 s for 3h 10m; new since it was faster: node-7`. Empty if
    it is not slower."""
    if not pace.told or pace.since is None:
        return ""
    ago = duration_text(get_elapsed_s(pace.since, now))
    told = (
        f"step time {100 * pace.slowdown_share:.1f}% above its usual {pace.usual_s:.3g} s for {ago}"
    )
    return f"{told}; {_describe_new_nodes(nodes, pace.nodes)}"


def _describe_new_nodes(now: str, before: str) -> str:
    if not now:
        return "nothing is known of its nodes"
    try:
        new = [
            name
            for name in hostlist.expand_printed(now)
            if name not in hostlist.expand_printed(before)
        ]
    except Invalid:
        return "its nodes cannot be compared"
    if not new or not before:
        return "on the nodes on which it was faster"
    return f"new since it was faster: {visible(hostlist.fold_for_people(new))}"


def add_step_times(
    pace: StepTimeTrend, seconds: Iterable[float], at: Instant, job: str, nodes: str
) -> StepTimeTrend:
    """The trend after some more step times of this job."""
    if job != pace.job:
        pace = replace(pace, job=job, batch=(), fresh=0)
    for one in seconds:
        if one <= 0:
            continue
        pace = replace(pace, batch=(*pace.batch, one))
        if len(pace.batch) >= BATCH_STEPS:
            pace = _add_step_batch(
                replace(pace, batch=(), fresh=pace.fresh + 1),
                _compute_median(pace.batch),
                at,
                nodes,
            )
    return pace


def _add_step_batch(pace: StepTimeTrend, middle: float, at: Instant, nodes: str) -> StepTimeTrend:
    if pace.fresh == 1:
        return pace  # the first steps compile and fill caches, so they prove nothing
    if pace.usual_s is None:
        return replace(pace, fast=(*pace.fast, middle), nodes=nodes)
    off = middle / pace.usual_s - 1
    total = max(0.0, pace.total + min(off, MAX_BATCH_SHARE) - pace._allowed_share)
    if not total or (pace.told and _is_slowdown_over(pace, middle)):
        return _end_slowdown(pace, middle, nodes)
    pace = replace(
        pace, total=total, slow=(*pace.slow, middle)[-MAX_KEPT_BATCHES:], since=pace.since or at
    )
    if _is_other_config(pace):
        return replace(
            pace, fast=pace.slow, slow=(), total=0.0, since=None, told=False, nodes=nodes
        )
    if pace.told:
        old = pace.since is not None and get_elapsed_s(pace.since, at) > SLOWDOWN_MEMORY_S
        return replace(pace, fast=pace.slow, slow=(), total=0.0, told=False) if old else pace
    return replace(pace, told=_is_sure_slowdown(pace))


def _end_slowdown(pace: StepTimeTrend, middle: float, nodes: str) -> StepTimeTrend:
    """End a slowdown. Its batches become part of the reference, even if it was reported."""
    fast = (*pace.fast, *pace.slow, middle)[-MAX_KEPT_BATCHES:]
    return replace(pace, fast=fast, slow=(), total=0.0, since=None, told=False, nodes=nodes)


def _is_sure_slowdown(pace: StepTimeTrend) -> bool:
    if pace.total < pace._sum_limit or len(pace.slow) < MIN_SLOW_BATCHES:
        return False
    usual = _compute_median(pace.fast)
    return (
        min(_compute_median(pace.slow), _compute_median(pace.slow[-MIN_SLOW_BATCHES:]))
        >= (1 + MIN_SLOWDOWN_SHARE) * usual
    )


def _is_slowdown_over(pace: StepTimeTrend, middle: float) -> bool:
    """Whether a slowdown has ended: the last three batches are in its lower half."""
    lately = [*pace.slow[-2:], middle]
    return _compute_median(lately) < (1 + pace.slowdown_share / 2) * _compute_median(pace.fast)


def _is_other_config(pace: StepTimeTrend) -> bool:
    """Whether a job had other step times from its beginning. Then it has another configuration."""
    begun = pace.fresh - 1 <= len(pace.slow) and len(pace.slow) >= MIN_SLOW_BATCHES
    return begun and _compute_median(pace.slow) > OTHER_CONFIG_FACTOR * _compute_median(pace.fast)


def _compute_median(values: "tuple[float, ...] | list[float]") -> float:
    return sorted(values)[len(values) // 2]
