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
KEEPS = 0.5
"""Share of its turns at which a rhythm has to have paused: chance explains some of anything."""
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
    """How many it explains, none where too many of its turns went by without a pause."""
    rhythm = Rhythm(anchor, period, blur, 0.0)
    held = [pause for pause in pauses if rhythm.due(pause.at)]
    turns = {round((pause.at - anchor) / period) for pause in held}
    kept = len(turns) >= ENOUGH and len(turns) >= KEEPS * (max(turns) - min(turns) + 1)
    longest = max((pause.seconds for pause in held), default=0.0)
    return len(held) if kept else 0, Rhythm(anchor, period, blur, longest)
