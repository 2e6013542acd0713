"""How long a training is quiet while it is well: learned, and turned into a limit. Pure.

Watched time is cut into windows of which only the longest quiet is kept. One window may be an
accident (a file system that stood still); what belongs to the training is in two. Longer pauses
are kept one by one (pauses.py), phases by their name. As far as an earlier job of the same name
got, its quiets are believed from the first minute: of 3,600 real runs (benchmarks/real) nearly
all paused as the run before them did.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log import pauses
from sentinel.checks.log.pauses import PauseRhythm, TrainingPause
from sentinel.checks.log.slowdown import StepTimeTrend
from sentinel.core.values import duration_text

WINDOW_S = 3 * 3600.0  # seconds watched
KEPT_WINDOWS = 16  # windows: two days
UNKNOWN_LIMIT_S = 1200.0  # seconds of quiet while nothing is known: what people write by hand
CAREFUL_LIMIT_S = UNKNOWN_LIMIT_S / 2  # seconds below which no limit goes before it is sure
MIN_KNOWN_WINDOWS = 2  # whole windows before anything is concluded without an earlier job
MIN_SURE_WINDOWS = 8  # windows before it is sure
MAX_KEPT_JOBS = 8  # jobs of which it is kept how far they got
MIN_OUTLIER_WINDOWS = 8  # windows from which on the very longest quiet may have been an accident
OUTLIER_FACTOR = 2.5  # times the second longest that it then has to be
MAX_LOOK_SPACING_S = 300.0  # seconds between two looks that count as watched, at most
BROAD_MARGIN_S = 300.0  # seconds of margin, beyond which a quarter of the usual quiet is enough
MIN_OCCASIONS = 3  # times a phase was seen before it may be short
MIN_TRUSTED_OCCASIONS = 8  # times a phase was seen before its lengths are believed
SPREAD_FACTOR = 3  # times the difference between the longest and an ordinary one
PAUSE_SPACING_FACTOR = 1.5  # looks without a change from which on a quiet is a pause
BRIEF_QUIET_S = 90.0  # seconds for which a quiet is none, however often one looks
MAX_WINDOW_PAUSES = 8  # pauses in a window that are none: the training is simply that slow


class Cadence(Struct, frozen=True, kw_only=True):
    """Quiet of one number, in seconds: the longest short one of each window (the newest last
    and still open), and the pauses with the rhythms in them; up to `bar` a quiet is short.
    `watched`: in the open window; `total`: ever.
    """

    longest: tuple[float, ...] = (0.0,)
    watched: float = 0.0
    total: float = 0.0
    bar: float = 0.0
    pauses: tuple[TrainingPause, ...] = ()
    rhythms: tuple[PauseRhythm, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether it was watched for long enough."""
        return self.total >= MIN_KNOWN_WINDOWS * WINDOW_S

    @property
    def usual_quiet_s(self) -> float:
        """Seconds of quiet that may come at any time to a training that is well."""
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
        """Seconds of the longest quiet of an ordinary window: half of the windows had a longer."""
        whole = sorted(self.longest[:-1] or self.longest)
        return whole[len(whole) // 2]

    def find_due_pause_s(self, number: float) -> float:
        """Seconds of the pause that is due at this number; 0: none is."""
        return max((r.longest for r in self.rhythms if r.is_pause_due(number)), default=0.0)


class QuietObservation(Struct, frozen=True, kw_only=True):
    """A look at a number: the quiet that has ended with it (0: none), the number before, the
    seconds since the last look, how exactly the number is known (0: not)."""

    seconds: float
    at: float
    spacing: float
    blur: float = 0.0


def add_quiet(cadence: Cadence, quiet: QuietObservation) -> Cadence:
    """After one more look."""
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
    """Where pauses are many, most of them are how the training goes."""
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
    """What is kept of a training from job to job: quiets by name of the number, the lengths of
    phases by name, and rates (see speed) by name of the number. `starts`: seconds from a job's
    start to its first advance; `jobs`: seconds from each one's first advance to its last;
    `pace`: its step times.
    """

    quiets: dict[str, Cadence] = {}
    phases: dict[str, tuple[float, ...]] = {}
    rates: dict[str, tuple[float, ...]] = {}
    starts: tuple[float, ...] = ()
    jobs: dict[str, float] = {}
    pace: StepTimeTrend = StepTimeTrend()

    def has_job_as_far(self, job: str) -> bool:
        """Whether another job got as far as this one has."""
        reached = self.jobs.get(job, 0.0)
        return any(far >= reached for other, far in self.jobs.items() if other != job)


def record_quiet(learned: TrainingBaseline, name: str, quiet: QuietObservation) -> TrainingBaseline:
    """One look at one number."""
    cadence = add_quiet(learned.quiets.get(name, Cadence()), quiet)
    return replace(learned, quiets={**learned.quiets, name: cadence})


def record_phase(learned: TrainingBaseline, name: str, seconds: float) -> TrainingBaseline:
    """A phase that has ended."""
    seen = (*learned.phases.get(name, ()), seconds)[-KEPT_WINDOWS:]
    return replace(learned, phases={**learned.phases, name: seen})


def record_job_advance(learned: TrainingBaseline, job: str, seconds: float) -> TrainingBaseline:
    """The job has advanced once more, so many seconds after the time before."""
    far = learned.jobs.get(job, 0.0) + seconds
    others = [(other, got) for other, got in learned.jobs.items() if other != job]
    return replace(learned, jobs=dict([*others, (job, far)][-MAX_KEPT_JOBS:]))


def record_start(learned: TrainingBaseline, seconds: float) -> TrainingBaseline:
    """A job's number has advanced for the first time, so long after the job's start."""
    return replace(learned, starts=(*learned.starts, seconds)[-KEPT_WINDOWS:])


class QuietLimit(Struct, frozen=True):
    """Seconds of quiet from which on it is a hang, and what that rests on, for people."""

    seconds: float
    why: str


class LimitBounds(Struct, frozen=True, kw_only=True):
    """`auto` never goes below the floor nor above the ceiling."""

    floor: float
    ceiling: float

    def compute_limit_s(self, usual: float, margin: float, spacing: float) -> float:
        """The longest usual quiet, a margin of at least half of it and at least a look, and the
        look between; three looks at least. Half a look earlier, so that the look itself does not
        come a second too soon. Long quiets vary less: a quarter is enough beyond ten minutes (in
        MLPerf's training results v4.0 none beyond two was longer than 1.14 times those before)."""
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
    """For a number outside all phases, in this job."""
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
    none = f"auto: {hours} watched, and no earlier job got as far"
    return QuietLimit(_clamp_limit_s(seconds, UNKNOWN_LIMIT_S, bounds), none)


def compute_start_limit(
    learned: TrainingBaseline, startup: float, spacing: float, bounds: LimitBounds
) -> QuietLimit | None:
    """From a job's start to its first advance; None: no earlier job has shown it. A cold cache
    or a new image makes the same start slow: until several were seen it is `startup` at least."""
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
    """Within a phase nobody gave an allowance; no shorter than outside of it, since its end may
    wait in a buffer. Evaluations of Stable Diffusion (MLPerf training v5.0) take 18 minutes, a few seconds
    more or less, and are most of a run: twice as long was too much."""
    seen = learned.phases.get(name, ())
    longest = max(seen, default=0.0)
    seconds = bounds.compute_limit_s(longest, _compute_margin_s(seen), spacing)
    if len(seen) < MIN_OCCASIONS:
        seen_so_far = f"auto: {name} seen {len(seen)} times so far"
        return QuietLimit(_clamp_limit_s(seconds, UNKNOWN_LIMIT_S, bounds), seen_so_far)
    told = f"auto: {name} took {duration_text(longest)} at most, {len(seen)} times"
    return QuietLimit(seconds, told)


def _compute_margin_s(seen: Sequence[float]) -> float:
    """Seconds that it may last longer than ever: as long again. Once it was seen often only where it is
    brief, or where its lengths differ that much."""
    longest = max(seen, default=0.0)
    differs = (
        longest - sorted(seen)[len(seen) // 2] if len(seen) >= MIN_TRUSTED_OCCASIONS else longest
    )
    return min(longest, max(SPREAD_FACTOR * differs, BROAD_MARGIN_S))


def _clamp_limit_s(seconds: float, least: float, bounds: LimitBounds) -> float:
    return min(bounds.ceiling, max(least, seconds))
