"""Reads for a one-shot what the state remembers of its subjects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sentinel.alerting.observations import RunOutcome
from sentinel.cli import disks
from sentinel.cli.outcome_cells import SampleHistory
from sentinel.cli.outcome_tables import print_check_table
from sentinel.cli.state import OpenState
from sentinel.clock import SystemClock
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import SentinelError, StoreError


def print_outcome(outcome: RunOutcome, plugin: Any, config: str | None) -> None:
    """Print the kind's table, with what the state of `config` remembers."""
    with open_sample_history(outcome, config) as (history, now):
        print_check_table(outcome, plugin, history, now)


def draw_disks(outcome: RunOutcome, config: str | None) -> str:
    """An SVG picture of the file systems."""
    with open_sample_history(outcome, config) as (history, now):
        return disks.draw_disk_plot(outcome, history, now)


@contextmanager
def open_sample_history(
    outcome: RunOutcome, config: str | None
) -> Iterator[tuple[SampleHistory, Instant]]:
    """The history of the subjects, from any check of this kind. Empty without a state, or if it
    cannot be read: the look itself is what was requested."""
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
