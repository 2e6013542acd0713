"""A primary that fails when told, over a real store."""

from typing import Any

from sentinel.core.clock import Instant
from sentinel.core.model import Batch
from sentinel.store.errors import Unavailable
from sentinel.store.rows import Snapshot
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

    def lead(self, holder: str, now: Instant) -> int:
        if self.away:
            raise Unavailable(self.away)
        return super().lead(holder, now)

    def renew(self) -> None:
        self.renewals += 1
        self._answer()
        super().renew()

    def snapshot(self) -> Snapshot:
        if self.away:
            raise Unavailable(self.away)
        return super().snapshot()

    def commit(self, batch: Batch) -> None:
        """`late`: the commit is done and its answer is lost."""
        if self.late:
            super().commit(batch)
        if self.broken and self.after <= 0:
            raise Unavailable(self.broken)
        self.after -= 1
        super().commit(batch)

    def sent(self, *given: Any) -> None:
        self._answer()
        super().sent(*given)

    def samples(self, *given: Any) -> Any:
        self.asked += 1
        self._answer()
        return super().samples(*given)

    def alerts(self) -> Any:
        self._answer()
        return super().alerts()

    def _answer(self) -> None:
        if self.broken:
            raise Unavailable(self.broken)
