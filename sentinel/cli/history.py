"""What a state remembers of file systems, for a look that keeps none itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from sentinel.alerting.observations import RunOutcome
from sentinel.cli.disks import SampleHistory
from sentinel.cli.state import OpenState
from sentinel.clock import SystemClock
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import SentinelError, StoreError


@contextmanager
def open_sample_history(
    outcome: RunOutcome, config: str | None
) -> Iterator[tuple[SampleHistory, Instant]]:
    """The history that any check of this kind has of its subjects; empty without a state, and
    where it cannot be read: the look is what was asked for."""
    state = _open_state_or_none(config)
    if state is None:
        yield (lambda *_: ()), SystemClock().now()
        return

    def read_samples(subject: str, name: str, seconds: float) -> Sequence[tuple[Instant, float]]:
        since = state.now.wall - int(seconds * SECOND)
        with suppress(StoreError):
            runs = [r.check for r in state.store.read_runs() if r.kind == outcome.kind]
            mine = sorted(runs, key=lambda check: check != outcome.check)
            found = (state.store.read_samples(check, subject, name, since) for check in mine)
            return next((samples for samples in found if samples), ())
        return ()

    with state:
        yield read_samples, state.now


def _open_state_or_none(config: str | None) -> OpenState | None:
    try:
        return OpenState(config, telling=False)
    except SentinelError:
        return None
