"""How long a training is quiet while it is well: learned, and turned into a limit. Pure.

Watched time is cut into windows of which only the longest quiet is kept, so that a pause of
every few hours is remembered as well as one of every minute. One window may be an accident (a
file system that stood still); a pause that belongs to the training is in two.
"""

from msgspec import Struct
from msgspec.structs import replace

WINDOW = 3 * 3600.0  # seconds watched
KEPT = 16  # windows: two days
ENOUGH = 2  # whole windows before anything is concluded
ROBUST = 8  # windows from which on the very longest quiet is taken for an accident
LONGEST_LOOK = 300.0  # seconds between two looks that count as watched, at most
OCCASIONS = 3  # times a phase was seen before its length is known


class Cadence(Struct, frozen=True, kw_only=True):
    """The longest quiet of each window in seconds, the newest last and still open."""

    longest: tuple[float, ...] = (0.0,)
    watched: float = 0.0

    @property
    def known(self) -> bool:
        """Whether it was watched for long enough."""
        return len(self.longest) > ENOUGH

    @property
    def usual(self) -> float:
        """Seconds of quiet that happen to a training that is well."""
        ranked = sorted(self.longest, reverse=True)
        return ranked[1] if len(ranked) >= ROBUST else ranked[0]

    @property
    def hours(self) -> float:
        """For how long it was watched, as far as that is still remembered."""
        return ((len(self.longest) - 1) * WINDOW + self.watched) / 3600


def noted(cadence: Cadence, quiet: float, spacing: float) -> Cadence:
    """After one more look, `spacing` seconds after the last; `quiet`: a quiet that has ended."""
    longest = (*cadence.longest[:-1], max(cadence.longest[-1], quiet))
    watched = cadence.watched + min(spacing, LONGEST_LOOK)
    if watched < WINDOW:
        return Cadence(longest=longest, watched=watched)
    return Cadence(longest=(*longest, 0.0)[-KEPT:], watched=0.0)


class Learned(Struct, frozen=True, kw_only=True):
    """What is kept of a training from job to job: quiets by name of the number, the lengths of
    phases by name, and rates (see speed) by name of the number.
    """

    quiets: dict[str, Cadence] = {}
    phases: dict[str, tuple[float, ...]] = {}
    rates: dict[str, tuple[float, ...]] = {}


def with_quiet(learned: Learned, name: str, quiet: float, spacing: float) -> Learned:
    """One look at one number."""
    cadence = noted(learned.quiets.get(name, Cadence()), quiet, spacing)
    return replace(learned, quiets={**learned.quiets, name: cadence})


def with_phase(learned: Learned, name: str, seconds: float) -> Learned:
    """A phase that has ended."""
    seen = (*learned.phases.get(name, ()), seconds)[-KEPT:]
    return replace(learned, phases={**learned.phases, name: seen})


class Limit(Struct, frozen=True):
    """Seconds of quiet from which on it is a hang, and what that rests on, for people."""

    seconds: float
    why: str


class Bounds(Struct, frozen=True, kw_only=True):
    """`auto` never goes below the floor nor above the ceiling."""

    floor: float
    ceiling: float

    def limit(self, usual: float, spacing: float) -> float:
        """Twice the longest usual quiet, and what looking every `spacing` seconds blurs."""
        wished = 2 * (usual + spacing) + spacing
        return min(self.ceiling, max(self.floor, wished))


def quiet_limit(learned: Learned, name: str, spacing: float, bounds: Bounds) -> Limit:
    """For a number outside all phases."""
    cadence = learned.quiets.get(name, Cadence())
    if not cadence.known:
        need = ENOUGH * WINDOW / 3600
        return Limit(bounds.ceiling, f"auto: {cadence.hours:.1f} of {need:g} h watched so far")
    seconds = bounds.limit(cadence.usual, spacing)
    usual = f"auto: usually quiet for {cadence.usual:.0f}s at most, over {cadence.hours:.0f} h"
    return Limit(seconds, usual)


def phase_limit(learned: Learned, name: str, spacing: float, bounds: Bounds) -> Limit:
    """Within a phase nobody gave an allowance."""
    seen = learned.phases.get(name, ())
    if len(seen) < OCCASIONS:
        return Limit(bounds.ceiling, f"auto: {name} seen {len(seen)} times so far")
    seconds = bounds.limit(max(seen), spacing)
    return Limit(seconds, f"auto: {name} took {max(seen):.0f}s at most, {len(seen)} times")
