"""Learns how long a training is quiet while it is well, and derives a limit from it. Pure.

Watched time is divided into windows. Only the longest quiet time of each window is kept. If a long
quiet time is in only one window, it may be an accident, such as a file system that hung. What
belongs to the training occurs in two. Longer pauses are stored one by one (pauses.py), and phases
by their name. As far as an earlier job of the same name got, its quiet times are used from the
first minute: among 3,600 real runs (benchmarks/real), nearly all paused as the run before them did.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log import pauses
from sentinel.checks.log.pauses import PauseRhythm, TrainingPause
from sentinel.checks.log.slowdown import StepTimeTrend
from sentinel.core.values import duration_text

WINDOW_S = 3 * 3600.0  # length of a window in watched seconds
KEPT_WINDOWS = 16  # number of windows: two days
UNKNOWN_LIMIT_S = 1200.0  # limit in seconds while nothing is known, as people set it by hand
# minimum for the limit in seconds until there are MIN_SURE_WINDOWS
CAREFUL_LIMIT_S = UNKNOWN_LIMIT_S / 2
MIN_KNOWN_WINDOWS = 2  # whole windows before the quiet times are used without an earlier job
MIN_SURE_WINDOWS = 8  # windows before they count as certain
MAX_KEPT_JOBS = 8  # jobs for which the reached time is stored
# with this many windows, the longest quiet time may be taken for an accident
MIN_OUTLIER_WINDOWS = 8
OUTLIER_FACTOR = 2.5  # it must exceed the second longest by this factor
MAX_LOOK_SPACING_S = 300.0  # at most this many seconds between two runs count as watched
BROAD_MARGIN_S = 300.0  # margin in seconds; above it, a quarter of the usual quiet time is enough
MIN_OCCASIONS = 3  # a phase must occur this often before its limit may be short
MIN_TRUSTED_OCCASIONS = 8  # a phase must occur this often before its lengths are trusted
SPREAD_FACTOR = 3  # factor for the difference between the longest and the median phase
PAUSE_SPACING_FACTOR = 1.5  # runs without a change after which a quiet time is a pause
BRIEF_QUIET_S = 90.0  # a shorter time in seconds is no pause, however often the check runs
MAX_WINDOW_PAUSES = 8  # if a window has more pauses, the training is simply that slow


class Cadence(Struct, frozen=True, kw_only=True):
    """The quiet times of one number, in seconds.

    `longest` has the longest short quiet time of each window. The newest window is last and still
    open. `pauses` are the longer ones, and `rhythms` are found in them. Quiet times up to `bar`
    count as short. `watched` is the watched time of the open window, `total` that of all.
    """

    longest: tuple[float, ...] = (0.0,)  # Longest short quiet of each window, seconds.
    watched: float = 0.0
    total: float = 0.0
    bar: float = 0.0
    pauses: tuple[TrainingPause, ...] = ()  # Pauses that were seen.
    rhythms: tuple[PauseRhythm, ...] = ()  # Rhythms in these pauses.

    @property
    def is_known(self) -> bool:
        """Whether it was watched for long enough."""
        return self.total >= MIN_KNOWN_WINDOWS * WINDOW_S

    @property
    def usual_quiet_s(self) -> float:
        """The longest quiet time in seconds that a healthy training may have at any number.

        If it is far longer than all others, it may be an accident. Then the second longest is
        returned.
        """
        short = sorted(self.longest, reverse=True)
        recent = pauses.select_recent_pauses(self.pauses, self.total)
        odd = pauses.list_unexplained_pauses(recent, self.rhythms)
        longest = max(short[0], *odd[:1], 0.0)
        if len(short) < MIN_OUTLIER_WINDOWS:
            return longest
        second = max(short[1], *odd[1:2], 0.0)
        return longest if longest <= OUTLIER_FACTOR * second else second

    @property
    def median_quiet_s(self) -> float:
        """The median of the windows' longest quiet times, in seconds."""
        whole = sorted(self.longest[:-1] or self.longest)
        return whole[len(whole) // 2]

    def find_due_pause_s(self, number: float) -> float:
        """Length in seconds of the pause that is due at this number. 0 if none is due."""
        return max((r.longest for r in self.rhythms if r.is_pause_due(number)), default=0.0)


class QuietObservation(Struct, frozen=True, kw_only=True):
    """One observation of a number."""

    seconds: float  # Length in seconds of the quiet time that has ended. 0: none has.
    at: float  # The number before the quiet time.
    spacing: float  # Seconds since the last observation.
    blur: float = 0.0  # How exactly the number is known. 0: not at all.


def add_quiet(cadence: Cadence, quiet: QuietObservation) -> Cadence:
    """The quiet times after one more observation."""
    seconds = min(quiet.spacing, MAX_LOOK_SPACING_S)
    long = quiet.seconds > max(cadence.bar, PAUSE_SPACING_FACTOR * quiet.spacing, BRIEF_QUIET_S)
    longest = cadence.longest if long else _raise_last_quiet(cadence.longest, quiet.seconds)
    watched = cadence.watched + seconds
    if watched >= WINDOW_S:
        longest, watched = (*longest, 0.0)[-KEPT_WINDOWS:], 0.0
    after = replace(cadence, longest=longest, watched=watched, total=cadence.total + seconds)
    return _add_pause(after, quiet) if long else after


def _raise_last_quiet(longest: tuple[float, ...], quiet: float) -> tuple[float, ...]:
    return (*longest[:-1], max(longest[-1], quiet))


def _add_pause(cadence: Cadence, quiet: QuietObservation) -> Cadence:
    pause = TrainingPause(quiet.at, quiet.seconds, cadence.total)
    cadence = _raise_short_bar(replace(cadence, pauses=pauses.append_pause(cadence.pauses, pause)))
    return replace(cadence, rhythms=pauses.find_rhythms(cadence.pauses, quiet.blur))


def _raise_short_bar(cadence: Cadence) -> Cadence:
    """Raise `bar` if there are many pauses, because then most of them are normal for the training."""
    recent = [p.seconds for p in cadence.pauses if cadence.total - p.watched < WINDOW_S]
    if len(recent) <= MAX_WINDOW_PAUSES:
        return cadence
    bar = 1.25 * sorted(recent)[len(recent) // 2]
    short = [p.seconds for p in cadence.pauses if p.seconds <= bar]
    return replace(
        cadence,
        bar=bar,
        pauses=tuple(p for p in cadence.pauses if p.seconds > bar),
        longest=_raise_last_quiet(cadence.longest, max(short)),
    )


class TrainingBaseline(Struct, frozen=True, kw_only=True):
    """What is stored of a training from job to job.

    `quiets` and `rates` (see progress_speed) are stored by the name of the number, `phases` by
    their name. `starts` are the seconds from a job's start to its first advance. `jobs` are the
    seconds from each job's first advance to its last. `pace` are its step times.
    """

    quiets: dict[str, Cadence] = {}  # Quiet times, by name of the number.
    phases: dict[str, tuple[float, ...]] = {}  # Lengths in seconds, by name of the phase.
    rates: dict[str, tuple[float, ...]] = {}  # Rates per second, by name of the number.
    starts: tuple[float, ...] = ()
    jobs: dict[str, float] = {}
    pace: StepTimeTrend = StepTimeTrend()

    def has_job_as_far(self, job: str) -> bool:
        """Whether another job got as far as this one."""
        reached = self.jobs.get(job, 0.0)
        return any(far >= reached for other, far in self.jobs.items() if other != job)


def record_quiet(learned: TrainingBaseline, name: str, quiet: QuietObservation) -> TrainingBaseline:
    """The baseline after one observation of one number."""
    cadence = add_quiet(learned.quiets.get(name, Cadence()), quiet)
    return replace(learned, quiets={**learned.quiets, name: cadence})


def record_phase(learned: TrainingBaseline, name: str, seconds: float) -> TrainingBaseline:
    """The baseline after the end of a phase."""
    seen = (*learned.phases.get(name, ()), seconds)[-KEPT_WINDOWS:]
    return replace(learned, phases={**learned.phases, name: seen})


def record_job_advance(learned: TrainingBaseline, job: str, seconds: float) -> TrainingBaseline:
    """The baseline after the job has advanced, this many seconds after the last advance."""
    far = learned.jobs.get(job, 0.0) + seconds
    others = [(other, got) for other, got in learned.jobs.items() if other != job]
    return replace(learned, jobs=dict([*others, (job, far)][-MAX_KEPT_JOBS:]))


def record_start(learned: TrainingBaseline, seconds: float) -> TrainingBaseline:
    """The baseline after a job's first advance, this many seconds after its start."""
    return replace(learned, starts=(*learned.starts, seconds)[-KEPT_WINDOWS:])


class QuietLimit(Struct, frozen=True):
    """A training that is quiet for this many seconds counts as hung."""

    seconds: float  # Seconds of quiet.
    why: str  # Where the limit comes from, for people.


class LimitBounds(Struct, frozen=True, kw_only=True):
    """The limit of `auto` is never below `floor` and never above `ceiling`."""

    floor: float  # Seconds, at least.
    ceiling: float  # Seconds, at most.

    def compute_limit_s(self, usual: float, margin: float, spacing: float) -> float:
        """The limit for this usual quiet time, in seconds. `spacing` is the time between two runs
        of the check.

        It is the usual quiet time, plus a margin, plus `spacing`, and at least three times
        `spacing`. Half of `spacing` is subtracted, so that a run of the check does not miss the
        limit by a second. The margin is at least `spacing`, at least a quarter of the usual quiet
        time, and at least half of it or BROAD_MARGIN_S, whichever is less. Long quiet times vary
        less. In MLPerf's training results v4.0, no quiet time beyond two was longer than 1.14 times
        the earlier ones.
        """
        margin = max(margin, min(usual / 2, BROAD_MARGIN_S), usual / 4, spacing)
        wished = max(3 * spacing, usual + margin + spacing) - spacing / 2
        return min(self.ceiling, max(self.floor, wished))


def compute_quiet_limit(
    learned: TrainingBaseline,
    name: str,
    number: float,
    spacing: float,
    bounds: LimitBounds,
    job: str = "",
) -> QuietLimit:
    """The limit for a number outside of all phases, in this job."""
    cadence = learned.quiets.get(name, Cadence())
    due, usual = cadence.find_due_pause_s(number), cadence.usual_quiet_s
    hours = duration_text(cadence.total)
    sure = cadence.total >= MIN_SURE_WINDOWS * WINDOW_S
    told = f"auto: usually quiet for {duration_text(usual)} at most, over {hours}"
    margin = cadence.median_quiet_s if sure else 0.0
    if due > usual:
        told = f"auto: a pause of {duration_text(due)} is usual at this number"
        margin = 0.0
    seconds = bounds.compute_limit_s(max(due, usual), margin, spacing)
    if cadence.is_known or learned.has_job_as_far(job):
        return QuietLimit(
            seconds if sure else _clamp_limit_s(seconds, CAREFUL_LIMIT_S, bounds), told
        )
    none = f"auto: still learning, {hours} watched"
    return QuietLimit(_clamp_limit_s(seconds, UNKNOWN_LIMIT_S, bounds), none)


def compute_start_limit(
    learned: TrainingBaseline, startup: float, spacing: float, bounds: LimitBounds
) -> QuietLimit | None:
    """The limit from a job's start to its first advance. None if no earlier job was seen to start.

    A cold cache or a new image delays a start. So until several starts were seen, the limit is at
    least `startup`.
    """
    if not learned.starts:
        return None
    longest, times = max(learned.starts), len(learned.starts)
    told = f"auto: earlier jobs took {duration_text(longest)} at most to begin"
    least = CAREFUL_LIMIT_S if times >= MIN_OCCASIONS else startup
    margin = _compute_margin_s(learned.starts)
    return QuietLimit(
        _clamp_limit_s(bounds.compute_limit_s(longest, margin, spacing), least, bounds), told
    )


def compute_phase_limit(
    learned: TrainingBaseline, name: str, spacing: float, bounds: LimitBounds
) -> QuietLimit:
    """The limit within a phase that has no configured `allow`.

    If the limit outside of the phase is longer, find_quiet_limit takes that one, because the line
    that ends the phase may wait in a buffer. Evaluations of Stable Diffusion (MLPerf training v5.0)
    take 18 minutes with little variation, and are most of a run. A limit of twice that length was
    too long.
    """
    seen = learned.phases.get(name, ())
    longest = max(seen, default=0.0)
    seconds = bounds.compute_limit_s(longest, _compute_margin_s(seen), spacing)
    if len(seen) < MIN_OCCASIONS:
        seen_so_far = f"auto: {name} seen {len(seen)} times so far"
        return QuietLimit(_clamp_limit_s(seconds, UNKNOWN_LIMIT_S, bounds), seen_so_far)
    told = f"auto: {name} took {duration_text(longest)} at most, {len(seen)} times"
    return QuietLimit(seconds, told)


def _compute_margin_s(seen: Sequence[float]) -> float:
    """How many seconds longer than before a phase may take: at most as long again.

    A phase that was seen often may take that much longer only if it is short, or if its lengths
    vary that much.
    """
    longest = max(seen, default=0.0)
    differs = (
        longest - sorted(seen)[len(seen) // 2] if len(seen) >= MIN_TRUSTED_OCCASIONS else longest
    )
    return min(longest, max(SPREAD_FACTOR * differs, BROAD_MARGIN_S))


def _clamp_limit_s(seconds: float, least: float, bounds: LimitBounds) -> float:
    return min(bounds.ceiling, max(least, seconds))
