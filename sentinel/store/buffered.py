"""Watching and telling go on while the state cannot be written.

On a full disk, a read-only file system, one that hangs or a lost connection, writes go to a journal
and to memory, and are repeated in order once writing works. Only where no journal can be written
either, messages are sent before what they rest on is safe.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from sentinel.alerting.silences import Ack, Orders, Remark, Silence
from sentinel.alerting.state import Store, Trouble
from sentinel.core.clock import Instant
from sentinel.core.errors import StoreError
from sentinel.core.model import Alert, Batch, Outgoing, Receipt, Run, Sending, Transition
from sentinel.proc.threads import Patience
from sentinel.store.backlog import LIMIT, Write
from sentinel.store.errors import Damaged, Unavailable
from sentinel.store.failover import PATIENCE, Pair, Primary
from sentinel.store.memory import MemoryStore
from sentinel.store.spare import Spare

Delivery = tuple[Outgoing, Instant | None, str]


class Buffered(Store):
    """alerting.state.Store over a primary and its mirror; safe to use from several threads.

    While all is well it is the primary. Fenced and StoreBusy always pass through.
    """

    def __init__(
        self,
        primary: Primary,
        mirror: MemoryStore,
        *,
        limit: int = LIMIT,
        monotonic: Callable[[], float] = time.monotonic,
        spare: Spare | None = None,
        patience: Patience | None = None,
    ) -> None:
        patience = patience or Patience(PATIENCE, "state's own")
        self._pair = Pair(primary, mirror, limit, monotonic, spare or Spare(), patience)
        self._primary, self._turn = primary, self._pair.turn

    @property
    def trouble(self) -> Trouble | None:
        with self._turn:
            return self._pair.trouble

    @property
    def safe(self) -> bool:
        with self._turn:
            return self._pair.safe

    @property
    def refused(self) -> tuple[str, ...]:
        with self._turn:
            return self._pair.refused

    def prepare(self, now: Instant, *, mending: bool) -> tuple[str, ...]:
        """Open now; what a person must hear of it. Raises StoreError for what time will not heal."""
        try:
            self._pair.there(self._primary.prepare)
        except Damaged:
            if not mending:
                self.close()
                raise
            with suppress(Unavailable):
                notice = self._pair.there(lambda: self._primary.reopen(now))
                self._pair.anew = True
                return (notice,)
        except Unavailable:
            pass  # `lead` tells whether it is still so
        return ()

    def take_notices(self) -> tuple[str, ...]:
        with self._turn:
            notices, self._pair.notices = tuple(self._pair.notices), []
            return notices

    def catch_up(self) -> bool:
        """Try to write what waits, now and then; whether all is well."""
        with self._turn:
            return self._pair.catch_up()

    def close(self) -> None:
        self.release()
        with suppress(StoreError):
            self._pair.there(self._primary.close)

    # Leading

    def lead(self, holder: str, now: Instant) -> int:
        """As the port says; 0 where only the lock could be had and the token waits."""
        with self._turn:
            return self._pair.lead(holder, now)

    def release(self) -> None:
        """After one last attempt to write what waits."""
        with self._turn:
            self._pair.release()

    def renew(self) -> None:
        with self._turn:
            self._pair.renew()

    def lease_left(self) -> float:
        """Asks nobody and waits for nobody: a connection that hangs must not keep it back."""
        return float("inf") if self._pair.leads_alone else self._primary.lease_left()

    @property
    def term(self) -> float:
        """Seconds a lease lasts, 0 where it needs no renewing."""
        return self._primary.term

    def leader(self) -> str:
        with self._turn:
            return self._pair.read(lambda store: store.leader())

    # Reading

    def alerts(self) -> list[Alert]:
        with self._turn:
            return self._pair.read(lambda store: store.alerts())

    def runs(self) -> list[Run]:
        with self._turn:
            return self._pair.read(lambda store: store.runs())

    def memory(self, check: str) -> Mapping[str, Any]:
        with self._turn:
            return self._pair.read(lambda store: store.memory(check))

    def outbox(self) -> list[Outgoing]:
        with self._turn:
            return self._pair.read(lambda store: store.outbox())

    def history(self, limit: int = 100, alert: str = "") -> list[Transition]:
        with self._turn:
            older, recent = self._pair.both(lambda store: store.history(limit, alert))
        told = {t.id: t for t in reversed(older)} | {t.id: t for t in reversed(recent)}
        return list(reversed(told.values()))[:limit]

    def deliveries(self, alert: str) -> list[Delivery]:
        with self._turn:
            older, recent = self._pair.both(lambda store: store.deliveries(alert))
        told = {d[0].seq: d for d in older} | {d[0].seq: d for d in recent}
        return [told[seq] for seq in sorted(told)]

    def sendings(self, since: int) -> list[Sending]:
        with self._turn:
            older, recent = self._pair.both(lambda store: store.sendings(since))
        return list(dict.fromkeys([*older, *recent]))

    def samples(
        self, check: str, subject: str, name: str, since: int
    ) -> list[tuple[Instant, float]]:
        with self._turn:
            older, recent = self._pair.both(lambda s: s.samples(check, subject, name, since))
        return list((dict(older) | dict(recent)).items())

    def orders(self) -> Orders:
        """As last read while the primary cannot be."""
        with self._turn:
            self._pair.orders = self._pair.first(lambda store: store.orders()) or self._pair.orders
            return self._pair.orders

    # Writing

    def silence(self, silence: Silence) -> None:
        """Of a person who waits for the answer: never kept for later."""
        self._pair.there(lambda: self._primary.silence(silence))

    def acknowledge(self, ack: Ack) -> None:
        """As `silence`."""
        self._pair.there(lambda: self._primary.acknowledge(ack))

    def remark(self, remark: Remark) -> None:
        """As `silence`."""
        self._pair.there(lambda: self._primary.remark(remark))

    def commit(self, batch: Batch) -> None:
        with self._turn:
            outbox = self._pair.mirror.numbered(batch.outbox)
            self._pair.write(Write(method="commit", batch=replace(batch, outbox=outbox)), batch.at)

    def sent(self, rows: Sequence[Outgoing], now: Instant, receipt: Receipt) -> None:
        with self._turn:
            self._pair.write(Write(method="sent", rows=tuple(rows), at=now, receipt=receipt), now)

    def failed(self, rows: Sequence[Outgoing]) -> None:
        with self._turn:
            self._pair.write(Write(method="failed", rows=tuple(rows)))

    def dropped(self, rows: Sequence[Outgoing], now: Instant, why: str) -> None:
        with self._turn:
            self._pair.write(Write(method="dropped", rows=tuple(rows), at=now, why=why), now)

    def prune(self, now: Instant) -> None:
        with self._turn:
            self._pair.write(Write(method="prune", at=now), now)
