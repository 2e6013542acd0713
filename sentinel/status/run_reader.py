"""Reads the ledger of runs for what is shown, at most once a minute: rows that grow are written
every 5 minutes."""

from __future__ import annotations

from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.status.types import RunFact

REREAD_S = 60.0
WEEK_US = 7 * 86_400 * SECOND


class RunReader:
    """Reads the ledger for one viewer after another. It is for one thread at a time."""

    def __init__(self) -> None:
        self._read_at: Instant | None = None
        self._cluster = ""
        self._runs: tuple[RunFact, ...] = ()

    def read_runs(self, store: Store, cluster: str, now: Instant) -> tuple[RunFact, ...]:
        """The runs that held something in the last week, at most REREAD_S old. Raises StoreError."""
        age = get_elapsed_s(self._read_at, now) if self._read_at else None
        if age is None or age >= REREAD_S or cluster != self._cluster:
            self._runs = _read_run_facts(store, cluster, now)
            self._read_at, self._cluster = now, cluster
        return self._runs


def _read_run_facts(store: Store, cluster: str, now: Instant) -> tuple[RunFact, ...]:
    since = now.wall - WEEK_US
    rows = store.read_ledger(since - WEEK_US)  # those of the week before know the last checkpoint
    if not rows:
        return ()
    from sentinel.status.run_facts import build_run_facts  # most commands find no ledger

    return build_run_facts(rows, cluster, since, now.wall)
