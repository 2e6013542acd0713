"""What a state remembers of file systems, for a look that keeps none itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from sentinel.alerting.observations import Outcome
from sentinel.cli.disks import History
from sentinel.cli.state import State
from sentinel.clock import SystemClock
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import SentinelError, StoreError


@contextmanager
def remembered(outcome: Outcome, config: str | None) -> Iterator[tuple[History, Instant]]:
    """The history that any check of this kind has of its subjects; empty without a state, and
    where it cannot be read: the look is what was asked for."""
    state = _state(config)
    if state is None:
        yield (lambda *_: ()), SystemClock().now()
        return

    def history(subject: str, name: str, seconds: float) -> Sequence[tuple[Instant, float]]:
        since = state.now.wall - int(seconds * SECOND)
        with suppress(StoreError):
            runs = [r.check for r in state.store.runs() if r.kind == outcome.kind]
            mine = sorted(runs, key=lambda check: check != outcome.check)
            found = (state.store.samples(check, subject, name, since) for check in mine)
            return next((samples for samples in found if samples), ())
        return ()

    with state:
        yield history, state.now


def _state(config: str | None) -> State | None:
    try:
        return State(config, telling=False)
    except SentinelError:
        return None
