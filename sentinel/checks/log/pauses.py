"""Pauses that come at regular numbers: every 500 iterations an evaluation that nobody announces.

A pause is a quiet of several looks. Where pauses lie a fixed number of steps apart, the next
one is due there and only there: elsewhere the training may be told to hang much sooner. Pure.
"""

from collections.abc import Sequence

from msgspec import Struct

MAX_KEPT_PAUSES = 48
"""Pauses that are remembered."""
PAUSE_MEMORY_S = 48 * 3600.0
"""Seconds of watching after which a pause is forgotten."""
MIN_RHYTHM_PAUSES = 3
"""Pauses that make a rhythm."""
MIN_PERIOD_BLURS = 20
"""Times the blur that a period has to be: what is due everywhere says nothing."""
MIN_KEPT_SHARE = 0.25
"""Share of its turns at which a rhythm has to have paused: jobs end, checkpoints coincide, and
a pause shorter than usual is none."""
MIN_CHANCE_FACTOR = 3
"""Times what chance explains that a rhythm has to, beyond ENOUGH."""
MAX_RHYTHMS = 3
"""Rhythms that are told apart: evaluations, checkpoints, and one more."""


class TrainingPause(Struct, frozen=True):
    """A quiet that has ended: at which number, for how many seconds, after how much watching."""

    at: float
    seconds: float
    watched: float


class PauseRhythm(Struct, frozen=True):
    """Pauses at `anchor` and every `period` from there, give or take `blur`; the longest."""

    anchor: float
    period: float
    blur: float
    longest: float

    def is_pause_due(self, number: float) -> bool:
        """Whether a pause is to be expected at this number."""
        off = (number - self.anchor) % self.period
        return min(off, self.period - off) <= self.blur


def append_pause(
    pauses: Sequence[TrainingPause], pause: TrainingPause
) -> tuple[TrainingPause, ...]:
    """With one more, without those of long ago."""
    return (*select_recent_pauses(pauses, pause.watched), pause)[-MAX_KEPT_PAUSES:]


def select_recent_pauses(pauses: Sequence[TrainingPause], watched: float) -> list[TrainingPause]:
    """Those that still count after so many seconds of watching."""
    return [pause for pause in pauses if watched - pause.watched < PAUSE_MEMORY_S]


def find_rhythms(pauses: Sequence[TrainingPause], blur: float) -> tuple[PauseRhythm, ...]:
    """The fewest rhythms that explain most pauses; `blur`: how exactly numbers are known."""
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
    """Seconds of those that no rhythm explains, the longest first."""
    odd = (p.seconds for p in pauses if not any(rhythm.is_pause_due(p.at) for rhythm in known))
    return sorted(odd, reverse=True)


def _guess_rhythms(pauses: Sequence[TrainingPause], blur: float) -> list[tuple[float, float]]:
    """Anchors with periods: the distances of each to the next few."""
    return [
        (one.at, abs(other.at - one.at))
        for n, one in enumerate(pauses)
        for other in pauses[n + 1 : n + 1 + MAX_RHYTHMS]
        if abs(other.at - one.at) >= MIN_PERIOD_BLURS * blur
    ]


def _fit_rhythm(
    pauses: Sequence[TrainingPause], anchor: float, period: float, blur: float
) -> tuple[int, PauseRhythm]:
    """How many it explains: none where chance would explain as many, or where most of its turns
    went by without a pause."""
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
    """The line of least squares through turns and numbers: a guess between two pauses is off by
    more with each turn."""
    turns = [round((pause.at - guess.anchor) / guess.period) for pause in held]
    middle, mean = sum(turns) / len(held), sum(pause.at for pause in held) / len(held)
    spread = sum((turn - middle) ** 2 for turn in turns)
    period = sum((t - middle) * (p.at - mean) for t, p in zip(turns, held, strict=True)) / spread
    longest = max(pause.seconds for pause in held)
    return PauseRhythm(mean - middle * period, period, guess.blur, longest)
