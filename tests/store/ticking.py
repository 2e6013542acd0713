"""A monotonic clock that moves when told."""


class Ticking:
    """Seconds; call it for the present."""

    def __init__(self) -> None:
        self._now = 1000.0

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds
