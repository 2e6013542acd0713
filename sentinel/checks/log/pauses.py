"""Pauses that come at regular numbers: every 500 iterations an evaluation that nobody announces.

A pause is a quiet of several looks. Where pauses lie a fixed number of steps apart, the next
one is due there and only there: elsewhere the training may be told to hang much sooner. Pure.
"""

from collections.abc import Sequence

from msgspec import Struct

KEPT = 48
"""Pauses that are remembered."""
REMEMBERED = 48 * 3600.0
"""Seconds of watching after which a pause is forgotten."""
ENOUGH = 3
"""Pauses that make a rhythm."""
RARE = 20
"""Times the blur that a period has to be: what is due everywhere says nothing."""
KEEPS = 0.25
"""Share of its turns at which a rhythm has to have paused: jobs end, checkpoints coincide, and
a pause shorter than usual is none."""
SURELY = 3
"""Times what chance explains that a rhythm has to, beyond ENOUGH."""
RHYTHMS = 3
"""Rhythms that are told apart: evaluations, checkpoints, and one more."""


class Pause(Struct, frozen=True):
    """A quiet that has ended: at which number, for how many seconds, after how much watching."""

    at: float
    seconds: float
    watched: float


class Rhythm(Struct, frozen=True):
    """Pauses at `anchor` and every `period` from there, give or take `blur`; the longest."""

    anchor: float
    period: float
    blur: float
    longest: float

    def due(self, number: float) -> bool:
        """Whether a pause is to be expected at this number."""
        off = (number - self.anchor) % self.period
        return min(off, self.period - off) <= self.blur


def added(pauses: Sequence[Pause], pause: Pause) -> tuple[Pause, ...]:
    """With one more, without those of long ago."""
    return (*recent(pauses, pause.watched), pause)[-KEPT:]


def recent(pauses: Sequence[Pause], watched: float) -> list[Pause]:
    """Those that still count after so many seconds of watching."""
    return [pause for pause in pauses if watched - pause.watched < REMEMBERED]


def rhythms(pauses: Sequence[Pause], blur: float) -> tuple[Rhythm, ...]:
    """The fewest rhythms that explain most pauses; `blur`: how exactly numbers are known."""
    found: list[Rhythm] = []
    left = list(pauses)
    while len(left) >= ENOUGH and len(found) < RHYTHMS and blur > 0:
        fits = [_fit(left, *guess, blur) for guess in _guesses(left, blur)]
        count, best = max(fits, key=lambda fit: (fit[0], fit[1].period), default=(0, None))
        if best is None or count < ENOUGH:
            break
        found.append(best)
        left = [pause for pause in left if not best.due(pause.at)]
    return tuple(found)


def unexplained(pauses: Sequence[Pause], known: Sequence[Rhythm]) -> list[float]:
    """Seconds of those that no rhythm explains, the longest first."""
    odd = (p.seconds for p in pauses if not any(rhythm.due(p.at) for rhythm in known))
    return sorted(odd, reverse=True)


def _guesses(pauses: Sequence[Pause], blur: float) -> list[tuple[float, float]]:
    """Anchors with periods: the distances of each to the next few."""
    return [
        (one.at, abs(other.at - one.at))
        for n, one in enumerate(pauses)
        for other in pauses[n + 1 : n + 1 + RHYTHMS]
        if abs(other.at - one.at) >= RARE * blur
    ]


def _fit(pauses: Sequence[Pause], anchor: float, period: float, blur: float) -> tuple[int, Rhythm]:
    """How many it explains: none where chance would explain as many, or where most of its turns
    went by without a pause."""
    rhythm = Rhythm(anchor, period, blur, 0.0)
    held = [pause for pause in pauses if rhythm.due(pause.at)]
    turns = {round((pause.at - anchor) / period) for pause in held}
    by_chance = len(pauses) * 2 * blur / period
    kept = (
        len(turns) >= ENOUGH
        and len(turns) >= KEEPS * (max(turns) - min(turns) + 1)
        and len(held) >= ENOUGH + SURELY * by_chance
    )
    return (len(held), _refined(held, rhythm)) if kept else (0, rhythm)


def _refined(held: Sequence[Pause], guess: Rhythm) -> Rhythm:
    """The line of least squares through turns and numbers: a guess between two pauses is off by
    more with each turn."""
    turns = [round((pause.at - guess.anchor) / guess.period) for pause in held]
    middle, mean = sum(turns) / len(held), sum(pause.at for pause in held) / len(held)
    spread = sum((turn - middle) ** 2 for turn in turns)
    period = sum((t - middle) * (p.at - mean) for t, p in zip(turns, held, strict=True)) / spread
    longest = max(pause.seconds for pause in held)
    return Rhythm(mean - middle * period, period, guess.blur, longest)
