"""Lets checks and notifications go on while the state cannot be written.

On a full, read-only or hung file system, or after a lost connection, writes go to a journal and to
memory. They are repeated in order once the state can be written. Only if no journal can be written
either, messages are sent before their facts are safe."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from sentinel.alerting.silences import Ack, Orders, Remark, Silence
from sentinel.alerting.state import StateTrouble, Store
from sentinel.core.clock import Instant
from sentinel.core.errors import StoreError
from sentinel.core.model import Alert, Batch, CheckRun, Outgoing, Receipt, Sending, Transition
from sentinel.core.run_ledger import LedgerRow
from sentinel.proc.threads import BoundedWorker
from sentinel.store.backlog import MAX_BACKLOG_ROWS, PendingWrite
from sentinel.store.errors import StateDamaged, StateUnavailable
from sentinel.store.failover import STATE_TIMEOUT_S, FailoverStore, PrimaryStore
from sentinel.store.memory import MemoryStore
from sentinel.store.spare_journals import SpareJournals

DeliveryRecord = tuple[Outgoing, Instant | None, str]


class BufferedStore(Store):
    """Implements alerting.state.Store with a primary store and its mirror; several threads may use
    it.

    While the primary works it answers. Fenced and StoreBusy are always raised to the caller."""

    def __init__(
        self,
        primary: PrimaryStore,
        mirror: MemoryStore,
        *,
        limit: int = MAX_BACKLOG_ROWS,
        monotonic: Callable[[], float] = time.monotonic,
        spare: SpareJournals | None = None,
        patience: BoundedWorker | None = None,
    ) -> None:
        patience = patience or BoundedWorker(STATE_TIMEOUT_S, "state's own")
        self._pair = FailoverStore(
            primary, mirror, limit, monotonic, spare or SpareJournals(), patience
        )
        self._primary, self._turn = primary, self._pair.turn

    @property
    def trouble(self) -> StateTrouble | None:
        with self._turn:
            return self._pair.trouble

    @property
    def is_durable(self) -> bool:
        with self._turn:
            return self._pair.is_durable

    @property
    def refused_journals(self) -> tuple[str, ...]:
        with self._turn:
            return self._pair.refused_journals

    def open_or_reopen(self, now: Instant, *, mending: bool) -> tuple[str, ...]:
        """Open the state now. Returns notices for people. Raises StoreError for a fault that does
        not pass by itself."""
        try:
            self._pair.call_primary(self._primary.open_database)
        except StateDamaged:
            if not mending:
                self.close()
                raise
            with suppress(StateUnavailable):
                notice = self._pair.call_primary(lambda: self._primary.replace_damaged(now))
                self._pair.anew = True
                return (notice,)
        except StateUnavailable:
            pass  # `take_lead` checks whether this still holds
        return ()

    def take_notices(self) -> tuple[str, ...]:
        with self._turn:
            notices, self._pair.notices = tuple(self._pair.notices), []
            return notices

    def write_pending(self) -> bool:
        """Try to write what waits, if the last try is long enough ago. Returns whether the state
        works."""
        with self._turn:
            return self._pair.write_pending()

    def close(self) -> None:
        self.release_lead()
        with suppress(StoreError):
            self._pair.call_primary(self._primary.close)

    # Leading

    def take_lead(self, holder: str, now: Instant) -> int:
        """Take the lead as the port says. Returns 0 if only the lock could be taken, and the token
        has to wait."""
        with self._turn:
            return self._pair.take_lead(holder, now)

    def release_lead(self) -> None:
        """Stop leading, after one last attempt to write what waits."""
        with self._turn:
            self._pair.release_lead()

    def renew_lease(self) -> None:
        with self._turn:
            self._pair.renew_lease()

    def get_lease_left_s(self) -> float:
        """Seconds until the lease ends. It takes no lock and asks no server, so a connection that
        hangs does not delay it."""
        return float("inf") if self._pair.is_leading_alone else self._primary.get_lease_left_s()

    @property
    def term(self) -> float:
        """Seconds until a lease expires. 0 if it needs no renewal."""
        return self._primary.term

    def read_leader(self) -> str:
        with self._turn:
            return self._pair.read_either(lambda store: store.read_leader())

    # Reading

    def read_alerts(self) -> list[Alert]:
        with self._turn:
            return self._pair.read_either(lambda store: store.read_alerts())

    def read_runs(self) -> list[CheckRun]:
        with self._turn:
            return self._pair.read_either(lambda store: store.read_runs())

    def read_memory(self, check: str) -> Mapping[str, Any]:
        with self._turn:
            return self._pair.read_either(lambda store: store.read_memory(check))

    def read_outbox(self) -> list[Outgoing]:
        with self._turn:
            return self._pair.read_either(lambda store: store.read_outbox())

    def read_transitions(self, limit: int = 100, alert: str = "") -> list[Transition]:
        with self._turn:
            older, recent = self._pair.read_both(lambda store: store.read_transitions(limit, alert))
        told = {t.id: t for t in reversed(older)} | {t.id: t for t in reversed(recent)}
        return list(reversed(told.values()))[:limit]

    def read_deliveries(self, alert: str) -> list[DeliveryRecord]:
        with self._turn:
            older, recent = self._pair.read_both(lambda store: store.read_deliveries(alert))
        told = {d[0].seq: d for d in older} | {d[0].seq: d for d in recent}
        return [told[seq] for seq in sorted(told)]

    def read_sendings(self, since: int) -> list[Sending]:
        with self._turn:
            older, recent = self._pair.read_both(lambda store: store.read_sendings(since))
        return list({_key_of_sending(one): one for one in [*older, *recent]}.values())

    def read_samples(
        self, check: str, subject: str, name: str, since: int
    ) -> list[tuple[Instant, float]]:
        with self._turn:
            older, recent = self._pair.read_both(
                lambda s: s.read_samples(check, subject, name, since)
            )
        return list((dict(older) | dict(recent)).items())

    def read_ledger(self, since: int) -> list[LedgerRow]:
        with self._turn:
            older, recent = self._pair.read_both(lambda store: store.read_ledger(since))
        if not older:
            return recent
        return list({row.unique_parts: row for row in (*older, *recent)}.values())

    def read_orders(self) -> Orders:
        """The orders of people; those that were read last while the primary cannot be read."""
        with self._turn:
            self._pair.orders = (
                self._pair.read_primary(lambda store: store.read_orders()) or self._pair.orders
            )
            return self._pair.orders

    # Writing

    def put_silence(self, silence: Silence) -> None:
        """Store an order of a person who waits for the answer. It is never kept for later."""
        self._pair.call_primary(lambda: self._primary.put_silence(silence))

    def put_ack(self, ack: Ack) -> None:
        """Store an acknowledgement, as `put_silence`."""
        self._pair.call_primary(lambda: self._primary.put_ack(ack))

    def put_remark(self, remark: Remark) -> None:
        """Store a remark, as `put_silence`."""
        self._pair.call_primary(lambda: self._primary.put_remark(remark))

    def commit(self, batch: Batch) -> None:
        with self._turn:
            outbox = self._pair.mirror.number_outgoing(batch.outbox)
            self._pair.write_or_queue(
                PendingWrite(method="commit", batch=replace(batch, outbox=outbox)), batch.at
            )

    def sent(self, rows: Sequence[Outgoing], now: Instant, receipt: Receipt) -> None:
        with self._turn:
            self._pair.write_or_queue(
                PendingWrite(method="sent", rows=tuple(rows), at=now, receipt=receipt), now
            )

    def failed(self, rows: Sequence[Outgoing]) -> None:
        with self._turn:
            self._pair.write_or_queue(PendingWrite(method="failed", rows=tuple(rows)))

    def dropped(self, rows: Sequence[Outgoing], now: Instant, why: str) -> None:
        with self._turn:
            self._pair.write_or_queue(
                PendingWrite(method="dropped", rows=tuple(rows), at=now, why=why), now
            )

    def prune(self, now: Instant) -> None:
        with self._turn:
            self._pair.write_or_queue(PendingWrite(method="prune", at=now), now)


def _key_of_sending(one: Sending) -> tuple[object, ...]:
    """What tells rows apart that were sent. Rows that are in both stores are the same."""
    about = one.notification
    return one.channel, one.bundle, one.at, one.message, about.alert, about.reason
