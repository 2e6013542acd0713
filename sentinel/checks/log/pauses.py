"""Finds pauses that come at regular numbers, e.g. an evaluation every 500 iterations without a line
about it.

A pause is a quiet time that lasts several runs of the check. If pauses are a fixed number of steps
apart, the next one is expected only there. Anywhere else, a hang can be reported much sooner. Pure.
"""

from collections.abc import Sequence

from msgspec import Struct

MAX_KEPT_PAUSES = 48
"""Pauses that are remembered."""
PAUSE_MEMORY_S = 48 * 3600.0
"""Seconds of watched time after which a pause is forgotten."""
MIN_RHYTHM_PAUSES = 3
"""How many pauses make a rhythm."""
MIN_PERIOD_BLURS = 20
"""A period must be at least this many times the blur. With a shorter period, a pause would be due
everywhere, which says nothing."""
MIN_KEPT_SHARE = 0.25
"""A rhythm must have had a pause at this share of its turns. Jobs end, checkpoints coincide, and a
short pause may be missed."""
MIN_CHANCE_FACTOR = 3
"""A rhythm must explain more pauses than chance would, by this factor."""
MAX_RHYTHMS = 3
"""How many rhythms are kept: evaluations, checkpoints, and one more."""


class TrainingPause(Struct, frozen=True):
    """A quiet time that has ended: its number, its seconds, and the watched time before it."""

    at: float  # The number at which it occurred.
    seconds: float  # Its length in seconds.
    watched: float  # Seconds of watched time before it.


class PauseRhythm(Struct, frozen=True):
    """Pauses at `anchor` and then at every `period`, within `blur`. Also the longest of them."""

    anchor: float
    period: float
    blur: float
    longest: float  # Seconds of its longest pause.

    def is_pause_due(self, number: float) -> bool:
        """Whether a pause is expected at this number."""
        off = (number - self.anchor) % self.period
        return min(off, self.period - off) <= self.blur


def append_pause(
    pauses: Sequence[TrainingPause], pause: TrainingPause
) -> tuple[TrainingPause, ...]:
    """The pauses with one more, and without old ones."""
    return (*select_recent_pauses(pauses, pause.watched), pause)[-MAX_KEPT_PAUSES:]


def select_recent_pauses(pauses: Sequence[TrainingPause], watched: float) -> list[TrainingPause]:
    """The pauses that still count after this many seconds of watched time."""
    return [pause for pause in pauses if watched - pause.watched < PAUSE_MEMORY_S]


def find_rhythms(pauses: Sequence[TrainingPause], blur: float) -> tuple[PauseRhythm, ...]:
    """At most MAX_RHYTHMS rhythms. Each is the one that explains most of the pauses that are left.

    `blur` says how exactly the numbers are known. If it is 0, no rhythm is found.
    """
    found: list[PauseRhythm] = []
    left = list(pauses)
    while len(left) >= MIN_RHYTHM_PAUSES and len(found) < MAX_RHYTHMS and blur > 0:
        fits = [_fit_rhythm(left, *guess, blur) for guess in _guess_rhythms(left, blur)]
        count, best = max(fits, key=lambda fit: (fit[0], fit[1].period), default=(0, None))
        if best is None or count < MIN_RHYTHM_PAUSES:
            break
        found.append(best)
        left = [pause for pause in left if not best.is_pause_due(pause.at)]
    return tuple(found)


def list_unexplained_pauses(
    pauses: Sequence[TrainingPause], known: Sequence[PauseRhythm]
) -> list[float]:
    """The lengths of the pauses that no rhythm explains, in seconds, the longest first."""
    odd = (p.seconds for p in pauses if not any(rhythm.is_pause_due(p.at) for rhythm in known))
    return sorted(odd, reverse=True)


def _guess_rhythms(pauses: Sequence[TrainingPause], blur: float) -> list[tuple[float, float]]:
    """Possible anchors and periods: the distances from each pause to the next few."""
    return [
        (one.at, abs(other.at - one.at))
        for n, one in enumerate(pauses)
        for other in pauses[n + 1 : n + 1 + MAX_RHYTHMS]
        if abs(other.at - one.at) >= MIN_PERIOD_BLURS * blur
    ]


def _fit_rhythm(
    pauses: Sequence[TrainingPause], anchor: float, period: float, blur: float
) -> tuple[int, PauseRhythm]:
    """How many pauses the rhythm explains, and the rhythm, refined.

    The number is 0 if fewer than MIN_RHYTHM_PAUSES of its turns had a pause, or less than
    MIN_KEPT_SHARE of them. It is also 0 if the rhythm does not explain MIN_CHANCE_FACTOR times as
    many pauses as chance would, and MIN_RHYTHM_PAUSES more.
    """
    rhythm = PauseRhythm(anchor, period, blur, 0.0)
    held = [pause for pause in pauses if rhythm.is_pause_due(pause.at)]
    turns = {round((pause.at - anchor) / period) for pause in held}
    by_chance = len(pauses) * 2 * blur / period
    kept = (
        len(turns) >= MIN_RHYTHM_PAUSES
        and len(turns) >= MIN_KEPT_SHARE * (max(turns) - min(turns) + 1)
        and len(held) >= MIN_RHYTHM_PAUSES + MIN_CHANCE_FACTOR * by_chance
    )
    return (len(held), _refine_rhythm(held, rhythm)) if kept else (0, rhythm)


def _refine_rhythm(held: Sequence[TrainingPause], guess: PauseRhythm) -> PauseRhythm:
    """Fit the rhythm's anchor and period by least squares. A guess from two pauses gets less exact
    with each turn."""
    turns = [round((pause.at - guess.anchor) / guess.period) for pause in held]
    middle, mean = sum(turns) / len(held), sum(pause.at for pause in held) / len(held)
    spread = sum((turn - middle) ** 2 for turn in turns)
    period = sum((t - middle) * (p.at - mean) for t, p in zip(turns, held, strict=True)) / spread
    longest = max(pause.seconds for pause in held)
    return PauseRhythm(mean - middle * period, period, guess.blur, longest)
