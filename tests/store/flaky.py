"""A primary that fails when told, over a real store."""

from typing import Any

from sentinel.core.model import Batch
from sentinel.store.errors import Unavailable
from sentinel.store.sql import SqlStore


class Flaky(SqlStore):
    """`broken`: why nothing works, or empty. `after`: how many commits still work before.

    `asked`: how often samples were read.
    """

    broken = ""
    after = 0
    late = False
    asked = 0

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
