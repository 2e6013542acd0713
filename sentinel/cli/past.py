"""What a state remembers of file systems, for a look that keeps none itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sentinel.cli.disks import History
from sentinel.clock import SystemClock
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import SentinelError
from sentinel.core.outcome import Outcome


@contextmanager
def remembered(outcome: Outcome, config: str | None) -> Iterator[tuple[History, Instant]]:
    """The history that any check of this kind has of its subjects; empty without a state."""
    from sentinel.cli.state import State

    try:
        state = State(config)
    except SentinelError:
        yield (lambda *_: ()), SystemClock().now()
        return
    with state:
        names = [r.check for r in state.store.runs() if r.kind == outcome.kind]
        mine = sorted(names, key=lambda name: name != outcome.check)

        def history(subject: str, name: str, seconds: float) -> Sequence[tuple[Instant, float]]:
            since = state.now.wall - int(seconds * SECOND)
            found = (state.store.samples(check, subject, name, since) for check in mine)
            return next((samples for samples in found if samples), ())

        yield history, state.now
