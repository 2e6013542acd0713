"""A primary that fails when told, over a real store."""

from typing import Any

from sentinel.core.clock import Instant
from sentinel.core.model import Batch
from sentinel.store.errors import StateUnavailable
from sentinel.store.rows import StateSnapshot
from sentinel.store.sql import SqlStore


class Flaky(SqlStore):
    """`broken`: why nothing works, or empty. `after`: how many commits still work before.

    `away`: why it can neither be led nor locked, or empty. `asked`: how often samples were read.
    `renewals`: how often it was asked to renew the lease.
    """

    broken = ""
    away = ""
    renewals = 0
    after = 0
    late = False
    asked = 0

    def take_lead(self, holder: str, now: Instant) -> int:
        if self.away:
            raise StateUnavailable(self.away)
        return super().take_lead(holder, now)

    def renew_lease(self) -> None:
        self.renewals += 1
        self._answer()
        super().renew_lease()

    def read_snapshot(self) -> StateSnapshot:
        if self.away:
            raise StateUnavailable(self.away)
        return super().read_snapshot()

    def commit(self, batch: Batch) -> None:
        """`late`: the commit is done and its answer is lost."""
        if self.late:
            super().commit(batch)
        if self.broken and self.after <= 0:
            raise StateUnavailable(self.broken)
        self.after -= 1
        super().commit(batch)

    def sent(self, *given: Any) -> None:
        self._answer()
        super().sent(*given)

    def read_samples(self, *given: Any) -> Any:
        self.asked += 1
        self._answer()
        return super().read_samples(*given)

    def read_alerts(self) -> Any:
        self._answer()
        return super().read_alerts()

    def _answer(self) -> None:
        if self.broken:
            raise StateUnavailable(self.broken)
