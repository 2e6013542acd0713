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
from sentinel.checks.log.pauses import Pause, Rhythm
from sentinel.checks.log.slowdown import Pace
from sentinel.core.values import duration_text

WINDOW = 3 * 3600.0  # seconds watched
KEPT = 16  # windows: two days
UNKNOWN = 1200.0  # seconds of quiet while nothing is known: what people write by hand
CAREFUL = UNKNOWN / 2  # seconds below which no limit goes before it is sure
ENOUGH = 2  # whole windows before anything is concluded without an earlier job
SURE = 8  # windows before it is sure
JOBS = 8  # jobs of which it is kept how far they got
ROBUST = 8  # windows from which on the very longest quiet may have been an accident
OUTLIER = 2.5  # times the second longest that it then has to be
LONGEST_LOOK = 300.0  # seconds between two looks that count as watched, at most
BROAD = 300.0  # seconds of margin, beyond which a quarter of the usual quiet is enough
OCCASIONS = 3  # times a phase was seen before it may be short
OFTEN = 8  # times a phase was seen before its lengths are believed
VARIES = 3  # times the difference between the longest and an ordinary one
LONG = 1.5  # looks without a change from which on a quiet is a pause
BRIEF = 90.0  # seconds for which a quiet is none, however often one looks
FREQUENT = 8  # pauses in a window that are none: the training is simply that slow


class Cadence(Struct, frozen=True, kw_only=True):
    """Quiet of one number, in seconds: the longest short one of each window (the newest last
    and still open), and the pauses with the rhythms in them; up to `bar` a quiet is short.
    `watched`: in the open window; `total`: ever.
    """

    longest: tuple[float, ...] = (0.0,)
    watched: float = 0.0
    total: float = 0.0
    bar: float = 0.0
    pauses: tuple[Pause, ...] = ()
    rhythms: tuple[Rhythm, ...] = ()

    @property
    def known(self) -> bool:
        """Whether it was watched for long enough."""
        return self.total >= ENOUGH * WINDOW

    @property
    def usual(self) -> float:
        """Seconds of quiet that may come at any time to a training that is well."""
        short = sorted(self.longest, reverse=True)
        recent = pauses.recent(self.pauses, self.total)
        odd = pauses.unexplained(recent, self.rhythms)
        longest = max(short[0], *odd[:1], 0.0)
        if len(short) < ROBUST:
            return longest
        second = max(short[1], *odd[1:2], 0.0)
        return longest if longest <= OUTLIER * second else second

    @property
    def ordinary(self) -> float:
        """Seconds of the longest quiet of an ordinary window: half of the windows had a longer."""
        whole = sorted(self.longest[:-1] or self.longest)
        return whole[len(whole) // 2]

    def due(self, number: float) -> float:
        """Seconds of the pause that is due at this number; 0: none is."""
        return max((r.longest for r in self.rhythms if r.due(number)), default=0.0)


class Quiet(Struct, frozen=True, kw_only=True):
    """A look at a number: the quiet that has ended with it (0: none), the number before, the
    seconds since the last look, how exactly the number is known (0: not)."""

    seconds: float
    at: float
    spacing: float
    blur: float = 0.0


def noted(cadence: Cadence, quiet: Quiet) -> Cadence:
    """After one more look."""
    seconds = min(quiet.spacing, LONGEST_LOOK)
    long = quiet.seconds > max(cadence.bar, LONG * quiet.spacing, BRIEF)
    longest = cadence.longest if long else _higher(cadence.longest, quiet.seconds)
    watched = cadence.watched + seconds
    if watched >= WINDOW:
        longest, watched = (*longest, 0.0)[-KEPT:], 0.0
    after = replace(cadence, longest=longest, watched=watched, total=cadence.total + seconds)
    return _paused(after, quiet) if long else after


def _higher(longest: tuple[float, ...], quiet: float) -> tuple[float, ...]:
    return (*longest[:-1], max(longest[-1], quiet))


def _paused(cadence: Cadence, quiet: Quiet) -> Cadence:
    pause = Pause(quiet.at, quiet.seconds, cadence.total)
    cadence = _raised(replace(cadence, pauses=pauses.added(cadence.pauses, pause)))
    return replace(cadence, rhythms=pauses.rhythms(cadence.pauses, quiet.blur))


def _raised(cadence: Cadence) -> Cadence:
    """Where pauses are many, most of them are how the training goes."""
    recent = [p.seconds for p in cadence.pauses if cadence.total - p.watched < WINDOW]
    if len(recent) <= FREQUENT:
        return cadence
    bar = 1.25 * sorted(recent)[len(recent) // 2]
    short = [p.seconds for p in cadence.pauses if p.seconds <= bar]
    return replace(
        cadence,
        bar=bar,
        pauses=tuple(p for p in cadence.pauses if p.seconds > bar),
        longest=_higher(cadence.longest, max(short)),
    )


class Learned(Struct, frozen=True, kw_only=True):
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
    pace: Pace = Pace()

    def shown(self, job: str) -> bool:
        """Whether another job got as far as this one has."""
        reached = self.jobs.get(job, 0.0)
        return any(far >= reached for other, far in self.jobs.items() if other != job)


def with_quiet(learned: Learned, name: str, quiet: Quiet) -> Learned:
    """One look at one number."""
    cadence = noted(learned.quiets.get(name, Cadence()), quiet)
    return replace(learned, quiets={**learned.quiets, name: cadence})


def with_phase(learned: Learned, name: str, seconds: float) -> Learned:
    """A phase that has ended."""
    seen = (*learned.phases.get(name, ()), seconds)[-KEPT:]
    return replace(learned, phases={**learned.phases, name: seen})


def with_job(learned: Learned, job: str, seconds: float) -> Learned:
    """The job has advanced once more, so many seconds after the time before."""
    far = learned.jobs.get(job, 0.0) + seconds
    others = [(other, got) for other, got in learned.jobs.items() if other != job]
    return replace(learned, jobs=dict([*others, (job, far)][-JOBS:]))


def with_start(learned: Learned, seconds: float) -> Learned:
    """A job's number has advanced for the first time, so long after the job's start."""
    return replace(learned, starts=(*learned.starts, seconds)[-KEPT:])


class Limit(Struct, frozen=True):
    """Seconds of quiet from which on it is a hang, and what that rests on, for people."""

    seconds: float
    why: str


class Bounds(Struct, frozen=True, kw_only=True):
    """`auto` never goes below the floor nor above the ceiling."""

    floor: float
    ceiling: float

    def limit(self, usual: float, margin: float, spacing: float) -> float:
        """The longest usual quiet, a margin of at least half of it and at least a look, and the
        look between; three looks at least. Half a look earlier, so that the look itself does not
        come a second too soon. Long quiets vary less: a quarter is enough beyond ten minutes (in
        MLPerf's training results v4.0 none beyond two was longer than 1.14 times those before)."""
        margin = max(margin, min(usual / 2, BROAD), usual / 4, spacing)
        wished = max(3 * spacing, usual + margin + spacing) - spacing / 2
        return min(self.ceiling, max(self.floor, wished))


def quiet_limit(
    learned: Learned, name: str, number: float, spacing: float, bounds: Bounds, job: str = ""
) -> Limit:
    """For a number outside all phases, in this job."""
    cadence = learned.quiets.get(name, Cadence())
    due, usual = cadence.due(number), cadence.usual
    hours = duration_text(cadence.total)
    sure = cadence.total >= SURE * WINDOW
    told = f"auto: usually quiet for {duration_text(usual)} at most, over {hours}"
    margin = cadence.ordinary if sure else 0.0
    if due > usual:
        told = f"auto: a pause of {duration_text(due)} is usual at this number"
        margin = 0.0
    seconds = bounds.limit(max(due, usual), margin, spacing)
    if cadence.known or learned.shown(job):
        return Limit(seconds if sure else _careful(seconds, CAREFUL, bounds), told)
    none = f"auto: {hours} watched, and no earlier job got as far"
    return Limit(_careful(seconds, UNKNOWN, bounds), none)


def start_limit(learned: Learned, startup: float, spacing: float, bounds: Bounds) -> Limit | None:
    """From a job's start to its first advance; None: no earlier job has shown it. A cold cache
    or a new image makes the same start slow: until several were seen it is `startup` at least."""
    if not learned.starts:
        return None
    longest, times = max(learned.starts), len(learned.starts)
    told = f"auto: earlier jobs took {duration_text(longest)} at most to begin"
    least = CAREFUL if times >= OCCASIONS else startup
    margin = _margin(learned.starts)
    return Limit(_careful(bounds.limit(longest, margin, spacing), least, bounds), told)


def phase_limit(learned: Learned, name: str, spacing: float, bounds: Bounds) -> Limit:
    """Within a phase nobody gave an allowance; no shorter than outside of it, since its end may
    wait in a buffer. Evaluations of Stable Diffusion (MLPerf training v5.0) take 18 minutes, a few seconds
    more or less, and are most of a run: twice as long was too much."""
    seen = learned.phases.get(name, ())
    longest = max(seen, default=0.0)
    seconds = bounds.limit(longest, _margin(seen), spacing)
    if len(seen) < OCCASIONS:
        seen_so_far = f"auto: {name} seen {len(seen)} times so far"
        return Limit(_careful(seconds, UNKNOWN, bounds), seen_so_far)
    told = f"auto: {name} took {duration_text(longest)} at most, {len(seen)} times"
    return Limit(seconds, told)


def _margin(seen: Sequence[float]) -> float:
    """Seconds that it may last longer than ever: as long again. Once it was seen often only where it is
    brief, or where its lengths differ that much."""
    longest = max(seen, default=0.0)
    differs = longest - sorted(seen)[len(seen) // 2] if len(seen) >= OFTEN else longest
    return min(longest, max(VARIES * differs, BROAD))


def _careful(seconds: float, least: float, bounds: Bounds) -> float:
    return min(bounds.ceiling, max(least, seconds))
